"""Settings of a command. Typed options override the preset, and the preset overrides the defaults."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import Any

from simengine.backends.select import BACKENDS
from simengine.cli.options.errors import UsageError
from simengine_configs import load_preset, preset_names
from simengine_scheduler.registry import EXECUTORS
from simengine_scheduler.study.specs import Spec, offered

BACKEND_CHOICES = ("auto", *BACKENDS)
EXECUTOR_CHOICES = tuple(sorted(EXECUTORS))
DTYPES = ("float32", "float64")


def positive(text: str) -> int:
    """Convert an argument to an integer of at least 1. Raises ArgumentTypeError if it is not one."""
    value = int(text) if text.isascii() and text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value


def add_batch_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of all commands that build a simulation. An option that is not given is None."""
    parser.add_argument("--backend", choices=BACKEND_CHOICES, help="auto takes the fastest one present")
    parser.add_argument("--dtype", choices=DTYPES, help="precision of the physics")
    parser.add_argument("--seed", type=int, help="seed of the simulation and of the random controls")


def resolve(options: argparse.Namespace, command: str, defaults: dict[str, Any], preset: str | None) -> SimpleNamespace:
    """Merge typed options, the preset and the defaults.

    Args:
        options: parsed arguments; None for those that were not given.
        command: the command, for which the preset must be.
        defaults: all settings of the command, with their default values.
        preset: name of the preset, or None.

    Raises:
        ValueError: the command has no such preset.
        UsageError: the preset has a setting that the command does not know.
    """
    stored = load_preset(command, preset) if preset else {}
    unknown = sorted(set(stored) - set(defaults))
    if unknown:
        raise UsageError(f"preset {preset!r} has unknown setting(s) {', '.join(unknown)}; remove them from its file")
    typed = {name: value for name, value in vars(options).items() if name in defaults and value is not None}
    return SimpleNamespace(**{**defaults, **stored, **typed})


def executor_spec(text: str) -> Spec:
    """Parse an executor: a name, or a name with options. Raises UsageError if there is no such executor."""
    try:
        spec = Spec.parse(text)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if reason := offered(spec):
        raise UsageError(reason)
    return spec


def presets_of(command: str) -> list[str]:
    """Return names of the presets for a command."""
    return preset_names(command)
