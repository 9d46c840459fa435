"""The guide's programs: blocks for any machine form one program, and blocks for a GPU another."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from simengine_scheduler.registry import EXECUTORS
from tests.helpers.checkout import PYTHONPATH, ROOT

GUIDE = ROOT / "docs" / "scheduler.md"


def program(mark: str) -> str:
    """The blocks of one kind, each on the line that it has in the guide, so that an error names that."""
    text = GUIDE.read_text(encoding="utf-8")
    lines = [""] * (text.count("\n") + 1)
    for block in re.finditer(rf"^```{mark}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        first = text.count("\n", 0, block.start(1))
        body = block[1].splitlines()
        lines[first : first + len(body)] = body
    return "\n".join(lines)


def run(mark: str, folder: Path) -> None:
    file = folder / "guide.py"
    file.write_text(program(mark), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(file)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_guide_has_what_the_tests_look_for() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    fences = re.findall(r"^```(.+)$", text, flags=re.MULTILINE)
    assert set(fences) == {"python", "python gpu"}
    assert fences.count("python") >= 10
    assert fences.count("python gpu") >= 4


def test_every_executor_is_in_the_guide() -> None:
    named = set(re.findall(r"^\| `([\w-]+)` \|", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert named == set(EXECUTORS)


def test_lines_of_the_guide_fit_a_screen() -> None:
    assert max(map(len, GUIDE.read_text(encoding="utf-8").splitlines())) <= 120


def test_the_program_for_any_machine(tmp_path: Path) -> None:
    run("python", tmp_path)


def test_the_program_for_a_gpu_compiles() -> None:
    compile(program("python gpu"), str(GUIDE), "exec")


@pytest.mark.gpu
def test_the_program_for_a_gpu(cupy: Any, tmp_path: Path) -> None:
    run("python gpu", tmp_path)
