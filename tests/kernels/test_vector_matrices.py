"""The host's linear algebra in vectors has the bits of plain loops, whatever the width of the vectors."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from simengine.kernels.host_build import NO_CONTRACTION, compiler, defines, native_flags
from tests.kernels.test_dense import INCLUDES

SOURCE = Path(__file__).with_name("vector_matrices.cpp")
CHECKED = ("-std=c++17", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-w")
WIDTHS = {"native": native_flags(), "16 bytes": []}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", WIDTHS)
def test_vectors_have_the_bits_of_loops(tmp_path: Path, width: str, dtype: str) -> None:
    program = tmp_path / "vector_matrices"
    flags = [*CHECKED, *NO_CONTRACTION, *WIDTHS[width], *defines(dtype, lanes=1), *INCLUDES]
    subprocess.run([compiler()[0], *flags, str(SOURCE), "-o", str(program)], check=True)
    done = subprocess.run([str(program), "36"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
