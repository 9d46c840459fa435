"""The CUDA sources of custom calls compile, without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

import simengine.xla
from simengine.kernels.host_build import defines
from simengine.xla.cuda_memory import COPIES_OPTIONS

SOURCES = sorted(Path(simengine.xla.__file__).parent.glob("*.cu"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_a_source_compiles(source: Path, dtype: str) -> None:
    nvrtc = pytest.importorskip("cupy").cuda.nvrtc
    program = nvrtc.createProgram(source.read_text(), source.name, (), ())
    try:
        nvrtc.compileProgram(program, ("--gpu-architecture=sm_90", *COPIES_OPTIONS, *defines(dtype, 32)))
        assert nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError as error:
        pytest.fail(f"{error}\n{nvrtc.getProgramLog(program)}")
    finally:
        nvrtc.destroyProgram(program)
