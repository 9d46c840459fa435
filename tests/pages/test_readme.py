"""The README: its commands and programs run, its links lead somewhere, and it is short. Each folder has one, too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers import pages
from tests.helpers.checkout import ROOT

README = ROOT / "README.md"
PROGRAMS = dict(enumerate(pages.blocks(README, "python")))
COMMANDS = pages.commands(README)
MAKE = [command for command in COMMANDS if command.startswith("make ")]
LIGHT = [command for command in COMMANDS if command not in MAKE]
SHORTER = " total_steps=8192"  # of a training, which in the second stage is as long as on the page
MOST_WORDS = 900
MOST_BYTES = 2_000_000  # of the moving picture


def test_readme_has_what_the_tests_look_for() -> None:
    assert len(MAKE) == 2
    assert len(LIGHT) >= 3
    assert len(PROGRAMS) >= 3
    text = " ".join(PROGRAMS.values())
    assert all(name in text for name in ("simengine.Simulation(", "gymnasium.make_vec(", "jax.jit("))


def test_readme_is_short() -> None:
    assert len(pages.text_of(README).split()) < MOST_WORDS


@pytest.mark.parametrize("command", MAKE)
def test_make_command_is_run_by_ci(command: str) -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(rf"^stage \"README[^\"]*\" {re.escape(command)}$", ci, re.MULTILINE)


@pytest.mark.parametrize("command", LIGHT)
def test_command_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages.run_command(command + SHORTER * command.startswith("simengine train"), tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in LIGHT if command.startswith("simengine train")])
def test_training_runs_to_its_end(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages.run_command(command, tmp_path, monkeypatch)


@pytest.mark.parametrize("number", PROGRAMS)
def test_program_runs(number: int, tmp_path: Path) -> None:
    pages.run_program(PROGRAMS[number], tmp_path)


def test_links_lead_to_files() -> None:
    assert pages.missing_links(README) == []
    assert pages.missing_paths(README) == []


FOLDERS = ("scheduler", "envs", "training", "configs", "benchmarks", "examples", "tests")


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_says_what_it_holds_and_where_to_read_on(folder: str) -> None:
    page = ROOT / folder / "README.md"
    assert pages.missing_links(page) == []
    assert pages.missing_paths(page) == []


def test_the_examples_are_all_named() -> None:
    named = set(re.findall(r"examples/(\w+\.py)", pages.text_of(ROOT / "examples" / "README.md")))
    assert named == {path.name for path in (ROOT / "examples").glob("*.py")}


def test_the_moving_picture_is_small() -> None:
    (picture,) = re.findall(r"\]\(([^)]+\.(?:webp|gif))\)", pages.text_of(README))
    assert (ROOT / picture).stat().st_size < MOST_BYTES
