"""The Hessian of rows of every type by a warp: host threads run the GPU's code under the thread sanitizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels.test_dense import passes
from tests.kernels.test_pgs import FOLDERS


@pytest.mark.sanitizer
@pytest.mark.parametrize("rows", [40, 100])
def test_a_warp_has_the_bits_of_rows_added_one_by_one(tmp_path: Path, rows: int) -> None:
    passes(tmp_path / "weighted", "weighted_of_threads.cpp", rows, *FOLDERS)


@pytest.mark.sanitizer
@pytest.mark.parametrize(
    ("warps", "lanes", "dofs"), [(2, 64, 8), (2, 64, 32), (4, 128, 16), (2, 32, 16)], ids=["2", "2 32", "4", "1 as 2"]
)
def test_several_warps_find_newton_directions(tmp_path: Path, warps: int, lanes: int, dofs: int) -> None:
    sizes = (f"-DLANES={lanes}", f"-DSOLVER_WARPS={warps}", f"-DSOLVER_DOFS={dofs}")
    passes(tmp_path / "warps", "warps_of_threads.cpp", 60, *FOLDERS, *sizes)
