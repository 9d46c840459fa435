"""The cost of elliptic cones in vectors has the bits of one cone after another, whatever the width of the vectors."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from simengine.kernels.host_build import NO_CONTRACTION, compiler, defines
from tests.kernels.test_dense import INCLUDES
from tests.kernels.test_pgs import FOLDERS
from tests.kernels.test_vector_matrices import CHECKED, WIDTHS

SOURCE = Path(__file__).with_name("cone_rows.cpp")


@pytest.mark.parametrize("width", WIDTHS)
def test_cones_in_vectors_have_the_bits_of_single_ones(tmp_path: Path, width: str) -> None:
    program = tmp_path / "cone_rows"
    flags = [*CHECKED, *NO_CONTRACTION, *WIDTHS[width], *defines("float32", lanes=1), *INCLUDES, *FOLDERS]
    subprocess.run([compiler()[0], *flags, str(SOURCE), "-o", str(program)], check=True)
    for cones in (1, 5, 16, 17, 64):
        done = subprocess.run([str(program), str(cones)], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"{cones} cones: {done.stdout}{done.stderr}"
