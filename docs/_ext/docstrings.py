"""Sphinx extension: docstrings as this project writes them, for autodoc and napoleon.

Markdown tables, which Gymnasium's environments have, become reStructuredText. Fields of a dataclass are listed with the
help texts of their metadata. The first line of a property is a sentence, which napoleon would split at a colon.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

_RULE = re.compile(r"^\s*\|?[\s:|-]*-{3}[\s:|-]*\|?\s*$")


def with_list_tables(lines: list[str]) -> list[str]:
    """The lines of a docstring with each Markdown table written as a `list-table`."""
    found: list[str] = []
    at = 0
    while at < len(lines):
        if lines[at].lstrip().startswith("|") and at + 1 < len(lines) and _RULE.match(lines[at + 1]):
            end = at
            while end < len(lines) and lines[end].lstrip().startswith("|"):
                end += 1
            found += _list_table([lines[at], *lines[at + 2 : end]])
            at = end
        else:
            found.append(lines[at])
            at += 1
    return found


def _list_table(rows: list[str]) -> list[str]:
    indent = rows[0][: len(rows[0]) - len(rows[0].lstrip())]
    lines = ["", f"{indent}.. list-table::", f"{indent}   :header-rows: 1", ""]
    for row in rows:
        for number, cell in enumerate(row.strip().strip("|").split("|")):
            lines.append(f"{indent}   {'* -' if number == 0 else '  -'} {cell.strip()}")
    return [*lines, ""]


def help_of_fields(obj: Any) -> list[str]:
    """A section of arguments, from the metadata "help" of a dataclass' fields; empty for everything else."""
    fields = dataclasses.fields(obj) if isinstance(obj, type) and dataclasses.is_dataclass(obj) else ()
    known = [f"    {field.name}: {field.metadata['help']}" for field in fields if "help" in field.metadata]
    return ["", "Args:", *known, ""] if known else []


def whole_sentence(lines: list[str]) -> list[str]:
    """A docstring that napoleon has split into a type and a description at its first colon, as it was."""
    kind = next((line.removeprefix(":type: ") for line in lines if line.startswith(":type: ")), "")
    rest = [line for line in lines if not line.startswith(":type: ")]
    return [f"{kind}: {rest[0]}", *rest[1:]] if kind else lines


def _before_napoleon(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = with_list_tables(lines) + (help_of_fields(obj) if what == "class" else [])


def _after_napoleon(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if what in ("property", "attribute", "data"):
        lines[:] = whole_sentence(lines)


def setup(app: Any) -> dict[str, bool]:
    """Connect to autodoc."""
    app.connect("autodoc-process-docstring", _before_napoleon, priority=400)
    app.connect("autodoc-process-docstring", _after_napoleon, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
