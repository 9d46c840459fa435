"""The pages of the site: programs and commands run, links and paths exist, and every public name has its reference."""

from __future__ import annotations

import importlib
import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import pytest

from tests.helpers import pages
from tests.helpers.checkout import ROOT

ALL = [ROOT / "CONTRIBUTING.md", *sorted(pages.DOCS.rglob("*.md"))]
GUIDE = sorted((pages.DOCS / "guide").glob("*.md"))
GUIDED = [page for page in GUIDE if pages.blocks(page, "python")]
RENDERED, SHARED = pages.DOCS / "guide" / "rendering.md", pages.DOCS / "guide" / "arrays.md"
"""Pages with blocks that need OpenGL, and PyTorch. They run with those blocks, or without where there is none."""

# blocks of the other pages are programs of their own; docs/scheduler.md has tests/scheduler/test_guide.py
SINGLE = {
    f"{page.stem}-{number}": block
    for page in ALL
    if page not in GUIDE and page.name != "scheduler.md"
    for number, block in enumerate(pages.blocks(page, "python"))
}
IN_README = pages.commands(ROOT / "README.md")  # tests/pages/test_readme.py runs them
COMMANDS = [command for page in GUIDE for command in pages.commands(page) if command not in IN_README]
HEAVY = [command for command in COMMANDS if command.startswith("simengine bench stepping --mujoco --json")]
LIGHT = [command for command in COMMANDS if command not in HEAVY]
PACKAGES = {
    "simengine": "simengine",
    "scheduler": "simengine_scheduler",
    "envs": "simengine_envs",
    "training": "simengine_training",
}
MOST_TERMS = 30
# blocks of the page on training libraries, with the library that each needs; Brax also needs a JAX older than 0.10
TRAINED = {"python sb3": "stable_baselines3", "python brax": "brax", "python rsl": "rsl_rl", "python torch": "torch"}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_guide_has_what_the_tests_look_for() -> None:
    assert len(GUIDED) >= 7
    assert len(LIGHT) >= 5
    assert len(HEAVY) == 1
    fences = {fence for page in GUIDE for fence in re.findall(r"^```(.+)$", pages.text_of(page), re.MULTILINE)}
    assert fences == {"python", "python gpu", "python opengl", *TRAINED, "console", "sh"}


LONG = ("models.md", "mixed_batches.md", "policies.md", "tasks.md", "training.md")
"""Pages whose programs take long. What they show has tests of its own: `tests/cli/test_environments.py` steps own tasks
and trains in them, and `tests/envs/test_errors.py` has what their functions may return."""

PROGRAMS = [
    pytest.param(page, marks=pytest.mark.slow if page.name in LONG else (), id=name(page))
    for page in GUIDED
    if page not in (RENDERED, SHARED)
]


@pytest.mark.parametrize("page", PROGRAMS)
def test_page_of_the_guide_runs(page: Path, tmp_path: Path) -> None:
    pages.run_program(pages.program(page, "python"), tmp_path)


@pytest.mark.parametrize(
    "block", [pytest.param(block, marks=pytest.mark.slow if block == "gradients-0" else ()) for block in SINGLE]
)
def test_program_of_a_page_runs(block: str, tmp_path: Path) -> None:
    pages.run_program(SINGLE[block], tmp_path)


def test_page_of_rendering_runs(tmp_path: Path) -> None:
    if reason := pages.without_opengl():
        pages.run_program(pages.program(RENDERED, "python"), tmp_path)
        pytest.skip(f"all but the blocks that need OpenGL ran: {reason}")
    pages.run_program(pages.program(RENDERED, "python", "python opengl") + "\nassert picture.std() > 5", tmp_path)


def test_page_of_arrays_runs(tmp_path: Path) -> None:
    with_torch = find_spec("torch") is not None
    pages.run_program(pages.program(SHARED, "python", *(("python torch",) if with_torch else ())), tmp_path)
    if not with_torch:
        pytest.skip("all but the blocks that need PyTorch ran")


@pytest.mark.slow
@pytest.mark.parametrize("language", TRAINED)
def test_what_needs_a_training_library_runs(language: str, tmp_path: Path) -> None:
    if find_spec(TRAINED[language]) is None:
        pytest.skip(f"{TRAINED[language]} is not installed")
    if language == "python brax" and jax.__version_info__ >= (0, 10):
        pytest.skip("Brax needs a function that JAX 0.10 has dropped")
    program = pages.program(pages.DOCS / "guide" / "training-libraries.md", language)
    assert program.strip()
    pages.run_program(program, tmp_path)


@pytest.mark.parametrize("page", [page for page in GUIDE if pages.blocks(page, "python gpu")], ids=name)
@pytest.mark.gpu
def test_what_needs_a_gpu_runs(page: Path, tmp_path: Path) -> None:
    cupy: Any = pytest.importorskip("cupy")
    if not cupy.cuda.is_available():
        pytest.skip("there is no GPU")
    pages.run_program(pages.program(page, "python gpu"), tmp_path)


@pytest.mark.parametrize("command", LIGHT)
def test_command_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages.run_command(command, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("command", HEAVY)
def test_heavy_command_runs(command: str, tmp_path: Path) -> None:
    pages.run_in_shell(command, tmp_path, timeout=600)
    assert json.loads((tmp_path / "out" / "stepping.json").read_text())["rows"]


@pytest.mark.parametrize("page", ALL, ids=name)
def test_links_and_paths_lead_to_files(page: Path) -> None:
    assert pages.missing_links(page) == []
    assert pages.missing_paths(page) == []


def test_the_architecture_has_every_folder_of_the_engine() -> None:
    table = pages.text_of(pages.DOCS / "architecture.md").partition("## Folders")[2].partition("\n## ")[0]
    folders = {path.parent.name for path in (ROOT / "simengine").glob("*/__init__.py")}
    assert folders == set(re.findall(r"^\| `simengine/(\w+)/`", table, re.MULTILINE))


@pytest.mark.parametrize("page", PACKAGES)
def test_every_public_name_has_its_reference(page: str) -> None:
    text = pages.text_of(pages.DOCS / "api" / f"{page}.md")
    listed = [entry.rpartition(".")[2] for entry in re.findall(r"^\.\. auto\w+:: ([\w.]+)$", text, re.MULTILINE)]
    assert len(set(listed)) == len(listed)
    assert set(importlib.import_module(PACKAGES[page]).__all__) <= set(listed)


def test_the_glossary_is_short_and_sorted() -> None:
    terms = re.findall(r"^- \*\*(.+?)\*\*:", pages.text_of(pages.DOCS / "glossary.md"), re.MULTILINE)
    assert 20 <= len(terms) <= MOST_TERMS
    assert terms == sorted(set(terms), key=str.lower)
