"""Presets of runs and benchmarks: YAML files beside this one, read by entry points only."""

from __future__ import annotations

from importlib import resources
from typing import Any

import yaml


def preset_names() -> list[str]:
    """Names of all presets, sorted: file names without `.yaml`."""
    files = resources.files(__name__).iterdir()
    return sorted(f.name.removesuffix(".yaml") for f in files if f.name.endswith(".yaml"))


def load_preset(name: str) -> dict[str, Any]:
    """Read one preset.

    Args:
        name: file name without `.yaml`.

    Returns:
        The preset's settings by name.

    Raises:
        ValueError: there is no such preset; the message names those there are.
    """
    if name not in preset_names():
        raise ValueError(f"there is no preset {name!r}; the presets are {', '.join(preset_names())}")
    settings = yaml.safe_load(resources.files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8"))
    if not isinstance(settings, dict):
        raise ValueError(f"preset {name!r} is not a mapping of settings; write `name: value` lines in {name}.yaml")
    return settings
