"""Kernels as bodies of workers compile and link, also with bodies for other numbers of lanes. No GPU is needed."""

from __future__ import annotations

import re

import pytest

from simengine.kernels.cuda_build import compile_task, device_body, keep_worker, task_lanes
from simengine.plan import catalogue, contact_kernels
from simengine.plan.every_kernel import all_kernels
from simengine.plan.stages import GUARD
from simengine_scheduler.device.linking import compile_body, link_worker
from simengine_scheduler.launch.tasks import DeviceBody

pytest.importorskip("cuda.bindings.nvjitlink")
ARCH = 90


def test_bodies_of_other_lanes_and_units_link_to_one_worker() -> None:
    kernels = (contact_kernels.NARROW["plane_sphere"], catalogue.single(GUARD))
    bodies = tuple(device_body(kernel, "float32", lanes, ARCH) for kernel in kernels for lanes in (8, 32))
    assert {(body.threads, body.registers) for body in bodies} == {(32, 168)}
    code = link_worker(bodies, 32, 168, ARCH, keep_worker)
    assert code[:4] == b"\x7fELF"


def test_bodies_that_are_linked_keep_the_sizes_of_their_own_models() -> None:
    # a model has the dofs of a world in one body and those of an island in the other; methods with names are merged
    island = next(kernel for kernel in all_kernels() if kernel.name == "pgs_descend_islands")
    bodies = tuple(device_body(kernel, "float32", 32, ARCH) for kernel in (catalogue.single(GUARD), island))
    names = re.findall(rb"_Z[0-9A-Za-z_]+", link_worker(bodies, 32, 168, ARCH, keep_worker))
    of_models = [name for name in names if b"5Model" in name]
    assert of_models
    assert all(b"_GLOBAL__N_" in name for name in of_models)


def test_what_a_body_is_called_tells_it_from_all_others() -> None:
    kernel, scan = catalogue.SMOOTH, contact_kernels.SCAN_KERNEL
    names = [device_body(kernel, dtype, lanes, ARCH).name for dtype in ("float32", "float64") for lanes in (8, 16)]
    assert len(set(names)) == 4
    # the scans of all models are one body
    assert device_body(scan, "float32", 8, ARCH) is device_body(scan, "float32", 32, ARCH)


@pytest.mark.parametrize("unit", ["column", "slice", "island", "large island"])
def test_kernels_of_every_unit_are_bodies(unit: str) -> None:
    kernel = next(kernel for kernel in all_kernels() if kernel.unit == unit)
    assert compile_task(kernel, "float32", task_lanes(kernel, 16), ARCH)


def test_a_body_that_is_missing_is_named() -> None:
    other = compile_body('extern "C" __device__ void other(const unsigned long long*, int, char*) {}', "other", ARCH)
    with pytest.raises(RuntimeError, match=r"nvJitLink could not link worker, wanted: .*wanted"):
        link_worker((DeviceBody("wanted", other),), 32, 128, ARCH, lambda key, make: make())


def test_a_source_that_does_not_compile_says_why() -> None:
    with pytest.raises(RuntimeError, match="NVRTC could not compile broken.cu for sm_90: .*error"):
        compile_body("this is no CUDA", "broken", ARCH)
