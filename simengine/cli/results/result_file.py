"""Result files: JSON that starts with the header and has one line for each row."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

_LINE = 120  # an object or list that fits into so many characters is not broken


def as_json(value: dict[str, Any]) -> str:
    """Return JSON in one line. Numbers that are not finite become null, which every parser reads."""
    return _one_line(_finite(value))


def result_text(result: dict[str, Any]) -> str:
    """Return the text of a result file.

    Lists of rows, which are objects, come last. An entry that is longer than a line is broken: an object into its
    entries, by the same rule, and a list into its elements. An element of a list is never broken. A row is therefore
    one line, and a diff of two files shows the rows that differ.
    """
    finite = _finite(result)
    rows = {name: value for name, value in finite.items() if _is_rows(value)}
    about = {name: value for name, value in finite.items() if name not in rows}
    return _broken(about | rows, 0, 0) + "\n"


def write_json(result: dict[str, Any], path: Path | None) -> None:
    """Write a result to a file.

    The file's folder is made if it does not exist. A file whose name ends in `.gz` is compressed. The file is replaced
    atomically: if the process ends while it writes, the previous file remains.

    Args:
        result: the result.
        path: the file; `-` for standard output, in one line; None to write nothing.
    """
    if path is None:
        return
    if str(path) == "-":
        print(as_json(result))
        return
    data = result_text(result).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    part.replace(path)


def _broken(value: Any, depth: int, column: int) -> str:
    """Return the text of a value that starts in column `column` and is `depth` levels below the result."""
    line = _one_line(value)
    # one character is left for a comma
    fits = depth > 0 and column + len(line) < _LINE and not _is_rows(value)
    if fits or not value or not isinstance(value, dict | list):
        return line
    inner, end = " " * (depth + 1), "\n" + " " * depth
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + _one_line(entry) for entry in value) + end + "]"
    names = {name: f"{inner}{_one_line(str(name))}: " for name in value}
    entries = (names[name] + _broken(entry, depth + 1, len(names[name])) for name, entry in value.items())
    return "{\n" + ",\n".join(entries) + end + "}"


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) for entry in value)


def _one_line(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
