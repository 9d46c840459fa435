"""Results of several runs of `bench peers` on one machine as one result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from simengine.cli.options.errors import UsageError

_ALIKE = ("benchmark", "hardware", "versions", "backend", "device")

Result = dict[str, Any]


def earlier_result(path: Path, now: Result) -> Result:
    """Return the result in a file to which the present run is to be added; {} if there is no file.

    Args:
        path: the file.
        now: the header of the present run.

    Raises:
        UsageError: the file is of another machine, other versions or another backend.
    """
    if not path.is_file():
        return {}
    found: Result = json.loads(path.read_text(encoding="utf-8"))
    if differs := [name for name in _ALIKE if found.get(name) != now[name]]:
        raise UsageError(
            f"{path} has other {', '.join(differs)} than this run; give another file, or leave out --append"
        )
    return found


def joined(earlier: Result, now: Result) -> Result:
    """Return an earlier result with the cases of the present one, which replace earlier cases of the same worlds.

    The commands of both are joined by " && ", in the order in which they ran.
    """
    if not earlier:
        return now
    cases = {(case["model"], case["worlds"]) for case in now["models"]}
    kept = {
        name: [row for row in earlier[name] if (row["model"], row["worlds"]) not in cases]
        for name in ("models", "rows")
    }
    changes = list(dict.fromkeys((*earlier["changes"], *now["changes"])))
    return {
        **now,
        "command": f"{earlier['command']} && {now['command']}",
        "absent": earlier["absent"] | now["absent"],
        "changes": changes,
        **{name: kept[name] + now[name] for name in kept},
    }
