"""Matrices with more rows than lanes: host threads run the GPU's loops under the thread sanitizer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import simengine

HERE = Path(__file__).parent
PACKAGE = Path(simengine.__file__).parent
INCLUDES = [f"-I{PACKAGE / folder}" for folder in ("kernels", "physics/math")]


@pytest.mark.sanitizer
def test_a_warp_has_the_bits_of_one_thread(tmp_path: Path) -> None:
    program = tmp_path / "warp"
    options = ("-std=c++17", "-O1", "-g", "-ffp-contract=off", "-fsanitize=thread", "-Wno-unknown-pragmas", "-pthread")
    source = HERE / "warp_of_threads.cpp"
    subprocess.run(["g++", *options, *INCLUDES, str(source), "-o", str(program)], check=True)
    done = subprocess.run([str(program), "15"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
