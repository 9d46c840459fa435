"""Sphinx extension: Markdown tables in docstrings, which Gymnasium's environments have, become reStructuredText."""

from __future__ import annotations

import re
from typing import Any

_RULE = re.compile(r"^\s*\|?[\s:|-]*-{3}[\s:|-]*\|?\s*$")


def convert(lines: list[str]) -> list[str]:
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


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = convert(lines)


def setup(app: Any) -> dict[str, bool]:
    """Connect to autodoc."""
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
