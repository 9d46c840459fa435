"""Presets, and which of several settings takes precedence."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import simengine_configs
from simengine.cli import run
from simengine.cli.bench import scheduler, stepping
from simengine.cli.options.errors import UsageError
from simengine.cli.options.settings import positive, presets_of, resolve
from simengine.cli.train import command as train

COMMANDS = ("run", stepping.COMMAND, scheduler.COMMAND, "train")
DEFAULTS = {"model": None, "worlds": 3, "steps": 4, "backend": "auto"}


def parsed(**values: object) -> argparse.Namespace:
    return argparse.Namespace(**{"worlds": None, "steps": None, "backend": None, **values})


def test_typed_wins_over_preset_wins_over_default() -> None:
    preset = simengine_configs.load_preset("run", "ant")
    settings = resolve(parsed(steps=7), "run", {**run.DEFAULTS, "worlds": 1, "steps": 2}, "ant")
    assert (settings.model, settings.worlds, settings.steps, settings.seed) == ("ant", preset["worlds"], 7, 0)


def test_without_preset_the_defaults_hold() -> None:
    settings = resolve(parsed(backend="jax"), "run", DEFAULTS, None)
    assert (settings.worlds, settings.steps, settings.backend) == (3, 4, "jax")


def test_preset_of_another_command_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`simengine run` has no preset 'stepping'; its presets are ant"):
        resolve(parsed(), "run", DEFAULTS, "stepping")


def test_preset_with_unknown_setting_is_refused() -> None:
    with pytest.raises(UsageError, match=r"preset 'ant' has unknown setting\(s\) backend, steps"):
        resolve(parsed(), "run", {"model": None, "worlds": 1}, "ant")


@pytest.mark.parametrize(
    ("command", "defaults"),
    [
        ("run", run.DEFAULTS),
        (stepping.COMMAND, stepping.DEFAULTS),
        (scheduler.COMMAND, scheduler.DEFAULTS),
        ("train", train.DEFAULTS),
    ],
)
def test_every_preset_fits_its_command(command: str, defaults: dict[str, object]) -> None:
    names = presets_of(command)
    assert names
    for name in names:
        resolve(parsed(), command, defaults, name)


def test_every_file_is_a_preset_of_some_command() -> None:
    files = [path.stem for path in Path(simengine_configs.__file__).parent.glob("*/*.yaml")]
    assert sorted(name for command in COMMANDS for name in presets_of(command)) == sorted(files)


def test_the_suite_names_presets_of_trainings() -> None:
    suite = simengine_configs.load_suite()
    assert set(suite) <= set(presets_of("train"))
    assert len(suite) == 11
    assert all(isinstance(entry["threshold"], int | float) for entry in suite.values())


@given(st.integers(min_value=1, max_value=10**9))
def test_positive_takes_whole_numbers(value: int) -> None:
    assert positive(str(value)) == value


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "many", "\N{SUPERSCRIPT TWO}"])
def test_positive_refuses_the_rest(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a whole number of at least 1"):
        positive(text)
