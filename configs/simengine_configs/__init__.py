"""Presets of runs, benchmarks and trainings: YAML files in this folder, which only the command line reads.

A preset has the name of a command, and values of the command's options.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import yaml


def preset_names() -> list[str]:
    """The names of all presets, sorted. A name is the file name without `.yaml`."""
    files = resources.files(__name__).iterdir()
    return sorted(f.name.removesuffix(".yaml") for f in files if f.name.endswith(".yaml"))


def load_preset(name: str) -> dict[str, Any]:
    """Read one preset.

    Args:
        name: file name without `.yaml`.

    Returns:
        The settings of the preset, by name.

    Raises:
        ValueError: there is no such preset, or its file is not a mapping.
    """
    if name not in preset_names():
        raise ValueError(f"there is no preset {name!r}; the presets are {', '.join(preset_names())}")
    settings = yaml.safe_load(resources.files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8"))
    if not isinstance(settings, dict):
        raise ValueError(f"preset {name!r} is not a mapping of settings; write `name: value` lines in {name}.yaml")
    return settings
