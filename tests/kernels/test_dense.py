"""Matrices of more rows than a warp has lanes: the GPU's loops, by threads of the host under the thread sanitizer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import simengine.kernels

HERE = Path(__file__).parent
KERNELS = Path(simengine.kernels.__file__).parent


@pytest.mark.sanitizer
def test_a_warp_has_the_bits_of_one_thread(tmp_path: Path) -> None:
    program = tmp_path / "warp"
    options = ("-std=c++17", "-O1", "-g", "-ffp-contract=off", "-fsanitize=thread", "-Wno-unknown-pragmas", "-pthread")
    source = HERE / "warp_of_threads.cpp"
    subprocess.run(["g++", *options, f"-I{KERNELS}", str(source), "-o", str(program)], check=True)
    done = subprocess.run([str(program), "15"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
