"""Noslip by a warp: host threads run the GPU's code under the thread sanitizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels.test_dense import passes
from tests.kernels.test_pgs import FOLDERS


@pytest.mark.sanitizer
@pytest.mark.parametrize("rows", [(8, 9, 30, 31), (32, 33, 64, 35), (65, 90, 120, 40)])
def test_a_warp_has_the_bits_of_loops_over_memory(tmp_path: Path, rows: tuple[int, ...]) -> None:
    printed = [
        passes(tmp_path / f"noslip{gpu}", "noslip_of_threads.cpp", rows, f"-DSIMENGINE_GPU={gpu}", *FOLDERS)
        for gpu in (0, 1)
    ]
    assert printed[0].count("force") == len(rows)
    assert printed[0] == printed[1]
