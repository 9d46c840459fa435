"""The README: its commands and programs run, its paths exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import PYTHONPATH, ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HEAVY = "bench stepping --mujoco --json"  # minutes


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


COMMANDS = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
PROGRAMS = {
    f"{page.name}-{number}": text
    for page in PAGES
    if page.name != "scheduler.md"  # one program over several blocks; see tests/scheduler/test_guide.py
    for number, text in enumerate(blocks("python", page.read_text(encoding="utf-8")))
}
MAKE = [command for command in COMMANDS if command.startswith("make ")]
HEAVY_COMMANDS = [command for command in COMMANDS if HEAVY in command]
LIGHT = [command for command in COMMANDS if command not in MAKE + HEAVY_COMMANDS]


def run_in_shell(command: str, folder: Path, timeout: float) -> None:
    """Run a command as a reader would, with this environment's programs first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": PYTHONPATH}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def test_readme_has_what_the_tests_look_for() -> None:
    assert len(MAKE) == 2
    assert len(HEAVY_COMMANDS) == 1
    assert len(LIGHT) >= 4
    assert len(blocks("python")) >= 3


@pytest.mark.parametrize("command", MAKE)
def test_make_command_is_run_by_ci(command: str) -> None:
    bare = command.partition("#")[0].strip()
    assert re.search(rf"^stage \"README[^\"]*\" {re.escape(bare)}$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)


@pytest.mark.parametrize("command", LIGHT)
def test_command_runs(command: str, tmp_path: Path) -> None:
    run_in_shell(command, tmp_path, timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize("command", HEAVY_COMMANDS)
def test_heavy_command_runs(command: str, tmp_path: Path) -> None:
    run_in_shell(command, tmp_path, timeout=600)
    assert json.loads((tmp_path / "out" / "stepping.json").read_text())["rows"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_runs(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAMS[name], encoding="utf-8")
    run_in_shell(f"python -W error::UserWarning {program}", tmp_path, timeout=300)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_exist(page: Path) -> None:
    """Every link to a file, and in docs every path in backticks that has a slash or a suffix of ours, is there."""
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
    if page.parent.name == "docs":
        paths = [
            p for p in re.findall(r"`([\w./-]+)`", text) if "/" in p or p.endswith((".py", ".cu", ".cuh", ".yaml"))
        ]
        assert paths
        for path in paths:
            assert (ROOT / path).exists(), f"{page.name} names {path}"
