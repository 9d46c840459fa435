"""The loop of a CUDA worker for lists whose waits are known, with threads of the host for the threads of its block."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import simengine_scheduler.device
from simengine_scheduler import Options, validate
from simengine_scheduler.testing.threaded_device import ThreadedDevice
from tests.scheduler.device.programs import random_program

SOURCES = Path(simengine_scheduler.device.__file__).parent
MEMORY = "extern __shared__ __align__(16) unsigned long long arguments[];"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The worker, built for the host. The test has the shared memory of its block."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("lanes")
    text = (SOURCES / "worker.cu").read_text()
    assert MEMORY in text
    (folder / "worker.inc").write_text(text.replace(MEMORY, ""))
    made = folder / "lanes.so"
    own = f'-DWORKER="{folder / "worker.inc"}"'
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", f"-I{SOURCES}", own]
    subprocess.run([compiler, *flags, str(Path(__file__).parent / "lanes.cpp"), "-o", str(made)], check=True)
    return made


@pytest.mark.parametrize("seed", range(8))
def test_threads_of_a_block_run_chains_of_calls_together(library: Path, seed: int) -> None:
    """One block runs all tickets, in the order of chains. A class of its own has all bodies."""
    program = random_program(seed, tiled=0.9)
    options = Options(segments=program.segments, record="times", watchdog=60.0, merged=True, hazards="host")
    trace = ThreadedDevice(options, workers=1, library=library).run([program.calls])
    got = program.data.copy()
    assert validate(trace.order, trace, program.segments) == []
    np.testing.assert_array_equal(got, program.expected(trace.order))
