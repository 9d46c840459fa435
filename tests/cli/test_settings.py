"""Presets, and which of several settings takes precedence."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

import simengine_configs
from simengine.cli import bench_scheduler, bench_stepping, run, train
from simengine.cli.errors import UsageError
from simengine.cli.settings import positive, presets_of, resolve

COMMANDS = ("run", bench_stepping.COMMAND, bench_scheduler.COMMAND, "train")
DEFAULTS = {"model": None, "worlds": 3, "steps": 4, "backend": "auto"}


def parsed(**values: object) -> argparse.Namespace:
    return argparse.Namespace(**{"worlds": None, "steps": None, "backend": None, **values})


def test_typed_wins_over_preset_wins_over_default() -> None:
    preset = simengine_configs.load_preset("ant")
    settings = resolve(parsed(steps=7), "run", {**run.DEFAULTS, "worlds": 1, "steps": 2}, "ant")
    assert (settings.model, settings.worlds, settings.steps, settings.seed) == ("ant", preset["worlds"], 7, 0)


def test_without_preset_the_defaults_hold() -> None:
    settings = resolve(parsed(backend="jax"), "run", DEFAULTS, None)
    assert (settings.worlds, settings.steps, settings.backend) == (3, 4, "jax")


def test_preset_of_another_command_is_refused() -> None:
    with pytest.raises(UsageError, match=r"preset 'stepping' is for `simengine bench stepping`"):
        resolve(parsed(), "run", DEFAULTS, "stepping")


def test_preset_with_unknown_setting_is_refused() -> None:
    with pytest.raises(UsageError, match=r"preset 'ant' has unknown setting\(s\) backend, steps"):
        resolve(parsed(), "run", {"model": None, "worlds": 1}, "ant")


@pytest.mark.parametrize(
    ("command", "defaults"),
    [
        ("run", run.DEFAULTS),
        (bench_stepping.COMMAND, bench_stepping.DEFAULTS),
        (bench_scheduler.COMMAND, bench_scheduler.DEFAULTS),
        ("train", train.DEFAULTS),
    ],
)
def test_every_preset_fits_its_command(command: str, defaults: dict[str, object]) -> None:
    names = presets_of(command)
    assert names
    for name in names:
        resolve(parsed(), command, defaults, name)


def test_every_preset_is_for_some_command() -> None:
    assert sorted(name for command in COMMANDS for name in presets_of(command)) == simengine_configs.preset_names()


def test_unknown_preset_names_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"there is no preset 'nothing'; the presets are ant, scheduler, stepping"):
        simengine_configs.load_preset("nothing")


@given(st.integers(min_value=1, max_value=10**9))
def test_positive_takes_whole_numbers(value: int) -> None:
    assert positive(str(value)) == value


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "many", "\N{SUPERSCRIPT TWO}"])
def test_positive_refuses_the_rest(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a whole number of at least 1"):
        positive(text)
