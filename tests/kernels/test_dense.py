"""Matrices with more rows than lanes: host threads run the GPU's code under the thread sanitizer."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

import simengine
from tests.helpers import one_processor

HERE = Path(__file__).parent
PACKAGE = Path(simengine.__file__).parent
INCLUDES = [f"-I{folder}" for folder in (PACKAGE / "kernels", PACKAGE / "physics" / "math", HERE)]
OPTIONS = ("-std=c++17", "-Og", "-g1", "-ffp-contract=off", "-fsanitize=thread", "-Wno-unknown-pragmas", "-pthread")


def passes(program: Path, source: str, arguments: int | Iterable[int], *options: str) -> str:
    """Compile a program of this folder and run it with integer arguments; its exit status must be 0.

    Returns:
        What it prints.
    """
    command = ("g++", *OPTIONS, *options, *INCLUDES, str(HERE / source), "-o", str(program))
    subprocess.run(command, check=True)
    given = [arguments] if isinstance(arguments, int) else arguments
    done = one_processor.run([str(program), *map(str, given)], timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.sanitizer
def test_a_warp_has_the_bits_of_one_thread(tmp_path: Path) -> None:
    passes(tmp_path / "warp", "warp_of_threads.cpp", 9)


@pytest.mark.sanitizer
@pytest.mark.parametrize("rows", [36, 48, 64])
def test_a_warp_with_two_rows_in_a_lane_finds_newton_directions(tmp_path: Path, rows: int) -> None:
    passes(tmp_path / "wide", "wide_of_threads.cpp", 8, f"-DMATRIX_ROWS={rows}")


@pytest.mark.sanitizer
def test_a_warp_finds_newton_directions_of_islands_of_any_size(tmp_path: Path) -> None:
    passes(tmp_path / "islands", "wide_of_threads.cpp", 9, "-DMATRIX_ROWS=60", "-DUNIT_ISLAND")


@pytest.mark.sanitizer
def test_a_block_with_a_row_in_each_lane_finds_newton_directions(tmp_path: Path) -> None:
    passes(tmp_path / "block", "block_rows_of_threads.cpp", 4, "-DLANES=128", "-DBLOCK_ROWS=84")


@pytest.mark.sanitizer
@pytest.mark.parametrize("rows", [40, 70])
def test_a_warp_with_entries_along_branches_finds_newton_directions(tmp_path: Path, rows: int) -> None:
    passes(tmp_path / "branches", "branches_of_threads.cpp", [rows, 6])


@pytest.mark.sanitizer
def test_squares_have_the_bits_of_loops(tmp_path: Path) -> None:
    passes(tmp_path / "squares", "squares_of_threads.cpp", ())


@pytest.mark.sanitizer
def test_a_warp_solves_blocks_in_registers_and_in_memory(tmp_path: Path) -> None:
    passes(tmp_path / "blocks", "blocks_of_threads.cpp", 4)
