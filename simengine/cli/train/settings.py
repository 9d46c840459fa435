"""Settings of a training that are typed or stand in a file of the user's."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import yaml

from simengine.cli.options.errors import UsageError
from simengine.errors import did_you_mean

_ENV = "env."  # how a setting of the environment starts, such as env.frame_skip=2


def typed_settings(options: argparse.Namespace, known: dict[str, Any]) -> dict[str, Any]:
    """The settings of --config, over which come NAME=VALUE and options.

    Args:
        options: the parsed arguments.
        known: all settings, with their defaults.

    Raises:
        UsageError: a setting is unknown, or is not written as NAME=VALUE.
    """
    found = _from_file(options.config) if options.config else {}
    environment = dict(found.pop("env", None) or {})
    for text in options.settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{text!r} is not a setting; write NAME=VALUE, such as gamma=0.995")
        if name.startswith(_ENV):
            environment[name.removeprefix(_ENV)] = _value(value)
        else:
            found[name] = _value(value)
    for name in found:
        if name not in known:
            raise UsageError(f"there is no setting {name!r}{did_you_mean(name, known)}; see simengine train --help")
        if isinstance(known[name], int) and isinstance(found[name], float) and found[name].is_integer():
            found[name] = int(found[name])  # such as 1e6
    given = {name: value for name in known if (value := getattr(options, name, None)) is not None}
    return found | given | ({"env": environment} if environment else {})


def _from_file(path: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); name a YAML file of settings") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not YAML ({str(error).splitlines()[0]}); write `name: value` lines") from error
    if not isinstance(found, dict):
        raise UsageError(f"{path} is not a mapping of settings; write `name: value` lines")
    return {name: _number(value) for name, value in found.items() if name != "command"}


def _value(text: str) -> Any:
    """A value as YAML reads it, and numbers such as 3e-4, which YAML takes for text."""
    return _number(yaml.safe_load(text))


def _number(value: Any) -> Any:
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
