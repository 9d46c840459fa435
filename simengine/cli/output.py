"""Where the command line prints."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

_WIDTH = 140  # of tables that go to a file or a pipe, which has no width of its own


def console(width: int = _WIDTH) -> Console:
    """Standard output, for tables. Square brackets are text: messages name extras such as simengine[cuda13].

    Args:
        width: where a terminal does not say how wide it is.
    """
    return Console(width=None if sys.stdout.isatty() else width, markup=False, highlight=False)


def as_json(value: dict[str, Any], indent: int | None = None) -> str:
    """JSON that every parser reads: numbers that are not finite become null."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def write_json(result: dict[str, Any], path: Path | None) -> None:
    """Write a result to a file, whose folder is made; to standard output in one line for `-`; nowhere for None."""
    if str(path) == "-":
        print(as_json(result))
    elif path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(as_json(result, indent=1) + "\n", encoding="utf-8")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
