"""Sparse factors of large islands on the host: right, and with the same bits whatever the width of the vectors."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from simengine.kernels.host_build import NO_CONTRACTION, compiler, defines
from simengine.kernels.prelude import constants
from simengine.physics.files import path_of
from tests.kernels.test_dense import INCLUDES
from tests.kernels.test_vector_matrices import WIDTHS

SOURCE = Path(__file__).with_name("sparse_hessian.cpp")
CHECKED = ("-std=c++17", "-O0", "-fsanitize=address", "-w")  # compiles in a quarter of the time of -O1 with more checks
FOLDERS = [f"-I{path_of(name).parent}" for name in ("row_law.cuh", "large.cuh")]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_sparse_factor_solves_and_every_width_has_its_bits(tmp_path: Path, dtype: str) -> None:
    (tmp_path / "constants.h").write_text(constants())
    sums = set()
    for width, flags in WIDTHS.items():
        program = tmp_path / width.replace(" ", "_")
        options = [*CHECKED, *NO_CONTRACTION, *flags, *defines(dtype, lanes=1), *INCLUDES, *FOLDERS, f"-I{tmp_path}"]
        subprocess.run([compiler()[0], *options, str(SOURCE), "-o", str(program)], check=True)
        done = subprocess.run([str(program)], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        sums.add(done.stdout)
    assert len(sums) == 1
