"""Bodies of kernels for workers of the executor `device`, as machine code has them, on a machine without a GPU."""

from __future__ import annotations

import re

import pytest

from simengine.kernels import cuda_build
from simengine.plan.every_kernel import all_kernels
from simengine_scheduler.device import linking
from simengine_scheduler.launch.tasks import DeviceBody

pytest.importorskip("cuda.bindings.nvjitlink")
ARCH = 90


@pytest.mark.parametrize("name", ["only_rk4", "only_kinematics"])
def test_a_worker_knows_that_fields_are_in_global_memory(name: str) -> None:
    """Loads and stores that serve any memory take longer, and none may change places with those of shared memory."""
    kernel = next(kernel for kernel in all_kernels() if kernel.name == name)
    lanes = cuda_build.task_lanes(kernel, 32)
    body = DeviceBody(cuda_build.task_name(kernel, "float32", lanes), b"", max(32, lanes), 168)
    code = cuda_build.compile_task(kernel, "float32", lanes, ARCH)
    worker = linking._compile(linking.worker_source([body], body.threads, body.registers), "worker.cu", ARCH, ())
    ptx = linking._link({"worker": worker, body.name: code}, ARCH, as_text=True).decode()
    assert len(re.findall(r"\b(?:ld|st)\.global\.(?:v\d\.)?f32", ptx)) > 50
    assert re.findall(r"\b(?:ld|st)\.(?:v\d\.)?f32", ptx) == []
