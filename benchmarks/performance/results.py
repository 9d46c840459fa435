"""Reads result files, and states the origin of a table."""

from __future__ import annotations

import json
import re
import shlex
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"

Result = dict[str, Any]
"""A result file: `hardware`, `versions`, `date`, `command`, `rows`, and perhaps a `note` on what was special."""

Row = dict[str, Any]

_PACKAGES = ("mujoco", "mujoco_warp", "warp", "simengine", "cupy-cuda13x", "jax", "numpy", "python")


@cache
def load(name: str) -> Result:
    """Read the result file of this name under `benchmarks/results`. The name has no suffix."""
    result: Result = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return result


def scheduler_rows() -> list[Row]:
    """Rows of all kernel lists under all executors."""
    return [row for name in ("scheduler_h200", "scheduler_large_h200") for row in load(name)["rows"]]


def origin(*names: str) -> str:
    """Markdown with the hardware, the versions, the dates and the commands of some result files."""
    return "\n\n".join(_origin(name, load(name)) for name in names)


def _origin(name: str, result: Result) -> str:
    hardware = result["hardware"]
    processor = f"{hardware['cores']} cores of {hardware['cpu']}" if "cores" in hardware else hardware["cpu"]
    machine = f"{hardware['gpu']}, host {processor}" if "gpu" in hardware else processor
    versions = {"python": result.get("python"), **result.get("versions", {})}
    shown = ", ".join(f"{package} {versions[package]}" for package in _PACKAGES if versions.get(package))
    lines = [f"`benchmarks/results/{name}.json`: {machine}; {shown}; {result['date']}.", "", "```text"]
    commands = _joined(re.split("; | && ", result["command"]))
    lines += [line for command in commands for line in _folded(command)]
    return "\n".join([*lines, "```", *(("", _prose(result["note"])) if "note" in result else ())])


_OF_PEERS = r"simengine bench peers (?P<models>[^-]\S*( [^-]\S*)*) (?P<options>--.*)"


def _joined(commands: list[str]) -> list[str]:
    """The commands, where those that compare engines and differ only in their models become one with all of these.

    Such commands add rows to one file, and replace those of models that are measured again.
    """
    models: dict[str, dict[str, None]] = {}
    joined: dict[str, str] = {}  # the options of each form of command as first given
    for command in commands:
        parts = re.fullmatch(_OF_PEERS, command)
        options = parts["options"] if parts else command
        form = options.replace(" --append", "")
        joined.setdefault(form, options)
        models.setdefault(form, {}).update(dict.fromkeys(parts["models"].split() if parts else ()))
    return [" ".join(("simengine bench peers", *models[f], joined[f])) if models[f] else joined[f] for f in joined]


def _prose(text: str) -> str:
    """A note in lines of the page's width."""
    return "\n".join(wrap(text, 120, break_long_words=False, break_on_hyphens=False))


def _folded(command: str) -> list[str]:
    """A shell command, split into lines that end with a backslash."""
    lines = wrap(command, 100, break_long_words=False, break_on_hyphens=False, subsequent_indent="    ")
    shlex.split(command)  # raises an error if a quotation is not closed
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]
