"""Presets of runs, benchmarks and trainings: YAML files, one folder a command, which only the command line reads.

A preset has the name of a command, and values of the command's options.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import yaml


def preset_names(command: str) -> list[str]:
    """The names of a command's presets, sorted. A name is the file name without `.yaml`."""
    folder = resources.files(__name__) / command.partition(" ")[0]
    if not folder.is_dir():
        return []
    names = sorted(f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml"))
    return [name for name in names if _read(command, name).get("command") == command]


def load_preset(command: str, name: str) -> dict[str, Any]:
    """Read one preset.

    Args:
        command: the command, such as "train" or "bench stepping".
        name: file name without `.yaml`.

    Returns:
        The settings of the preset, by name, without the command.

    Raises:
        ValueError: there is no such preset.
    """
    names = preset_names(command)
    if name not in names:
        raise ValueError(f"`simengine {command}` has no preset {name!r}; its presets are {', '.join(names)}")
    return {setting: value for setting, value in _read(command, name).items() if setting != "command"}


def preset_summary(command: str, name: str) -> str:
    """The first comment of a preset's file, which says what the preset does."""
    return _file(command, name).read_text(encoding="utf-8").splitlines()[0].lstrip("# ")


def load_suite() -> dict[str, dict[str, Any]]:
    """The tasks of `simengine train suite`, by the name of their presets: see `suite.yaml`."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(
        (resources.files(__name__) / "suite.yaml").read_text(encoding="utf-8")
    )
    return found


def _file(command: str, name: str) -> Any:
    return resources.files(__name__) / command.partition(" ")[0] / f"{name}.yaml"


def _read(command: str, name: str) -> dict[str, Any]:
    settings = yaml.safe_load(_file(command, name).read_text(encoding="utf-8"))
    if not isinstance(settings, dict):
        raise ValueError(f"preset {name!r} is not a mapping of settings; write `name: value` lines in its file")
    return settings
