"""Launches of models with clusters stay within what a GPU has, by the functions that shape them on the CUDA backend.

The numbers are those of an H100 or H200; the launches are made on memory of the host and never issued.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from benchmarks.scaling_models import crowded_arm, furnished_room
from simengine.backends.base import Extent
from simengine.backends.cuda import CudaBackend
from simengine.engines.list_engine import ListEngine
from simengine.kernels import cuda_build
from simengine.kernels.functions import Build
from simengine.kernels.kernel import Kernel
from simengine.kernels.step_kernel import TEAMS, WARP, StepKernel
from simengine.model import ModelTable, clusters, load_table
from simengine.model.clusters import MOST_WORDS
from simengine.physics.islands.solve_large import SOLVE_LARGE
from simengine.plan import contact_kernels
from simengine.plan.islands import ISLAND_KERNELS
from simengine.plan.launches import Launch
from simengine.plan.scratch import class_bounds, column_words, columns_of, lanes_of_islands, scratch_plan
from simengine.state.island_fields import LARGE_ISLANDS
from simengine_scheduler import KernelCall, Segments
from simengine_scheduler.device.image import Image, build_image
from simengine_scheduler.device.occupancy import Multiprocessors
from simengine_scheduler.launch import CudaLaunch
from tests.emission.test_memory import GpuOnPaper
from tests.stages.test_clusters import room

driver = pytest.importorskip("cupy").cuda.driver

BLOCK_BYTES, MULTIPROCESSOR_BYTES, MULTIPROCESSORS = 227 * 1024, 228 * 1024, 132
STATIC = 4096
"""Shared memory of a block that kernels of several warps declare themselves, at most [bytes]."""

MOST_THREADS, REGISTERS, MOST_REGISTERS_OF_A_THREAD = 1024, 65536, 255
MODELS = {"room": furnished_room(512), "arm": crowded_arm(128), "searches": room()}
WORDS = {"float32": 4, "float64": 8}


class ShapesOfCuda(GpuOnPaper):
    """Memory of the host, and the launches of the CUDA backend on an H200."""

    launch = CudaBackend.launch  # type: ignore[assignment]
    resize = CudaBackend.resize  # type: ignore[assignment]
    step_shape = CudaBackend.step_shape  # type: ignore[assignment]
    _shape, _most_worlds = CudaBackend._shape, CudaBackend._most_worlds
    _shared_limit, _shared_of_multiprocessor = BLOCK_BYTES, MULTIPROCESSOR_BYTES
    _multiprocessors, _spread_blocks = MULTIPROCESSORS, 16 * MULTIPROCESSORS

    def shape(self, units: int, lanes: int, scratch: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """Grid, block and shared memory of a launch."""
        return CudaBackend._shape(
            cast(CudaBackend, self), Extent(units, lanes, scratch, False, False), self._spread_blocks
        )

    def load(self, builds: Sequence[Build], dtype: str, own_tables: bool) -> list[Any]:
        def body(kernel: Kernel, lanes: int) -> Any:
            return None if isinstance(kernel, StepKernel) else cuda_build.device_body(kernel, dtype, lanes, 90)

        return [SimpleNamespace(ptr=1, function=None, body=body(*build)) for build in builds]


@cache
def table(name: str) -> ModelTable:
    return load_table(MODELS[name])


@pytest.fixture(autouse=True)
def attributes(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """Shared memory that launches asked to be allowed, by function; as the driver would have it, from none on."""
    allowed: dict[int, int] = {}
    monkeypatch.setattr(driver, "funcGetAttribute", lambda attribute, function: allowed.get(function, 0))
    monkeypatch.setattr(driver, "funcSetAttribute", lambda function, _, value: allowed.__setitem__(function, value))
    return allowed


Made = tuple[list[tuple[Launch, KernelCall]], Segments]


def made(model: ModelTable, worlds: int, dtype: str, emission: str, **given: Any) -> Made:
    """The planned launches of a step and their calls, and the table of the segments of these.

    `given` are parameters of the worlds, by name.
    """
    engine = ListEngine([(model, worlds)], ShapesOfCuda(), "serial", dtype, 1, emission, {})
    if given:
        engine.set_params(0, None, given)
    (emitter,) = engine.emitters[0]
    (evaluation,) = engine.plan(0).step(worlds, frozenset(), emission != "counted")
    planned = [item for item in evaluation.launches if isinstance(item, Launch)]
    calls = [emitter.factory.make(item, evaluation.stored, evaluation.scalars).call for item in planned]
    return list(zip(planned, calls, strict=True)), emitter.factory.segments


def shapes(found: list[tuple[Launch, KernelCall]]) -> list[tuple[Any, ...]]:
    launches: list[Any] = [call.launch for _, call in found]
    return [(launch.grid, launch.block, launch.shared) for launch in launches]


def check(grid: tuple[int, ...], block: tuple[int, ...], shared: int, units: int) -> None:
    threads, worlds = block[0] * block[1], block[1]
    assert 0 < threads <= MOST_THREADS
    assert threads * MOST_REGISTERS_OF_A_THREAD <= REGISTERS
    assert shared + (STATIC if block[0] > WARP else 0) <= BLOCK_BYTES
    assert grid[0] * worlds >= units


@pytest.mark.parametrize(("worlds", "emission"), [(3, "ahead"), (2500, "ahead"), (2500, "counted"), (3, "whole")])
@pytest.mark.parametrize("dtype", WORDS)
@pytest.mark.parametrize("name", MODELS)
def test_launches_fit_a_block_and_worlds_share_no_scratch(
    name: str, dtype: str, worlds: int, emission: str, attributes: dict[int, int]
) -> None:
    model, backend = table(name), ShapesOfCuda()
    assert model.nmeeting > 0
    found, _ = made(model, worlds, dtype, emission)
    assert sum("culled" in item.name or "of_many" in item.name for item, _ in found) == 2
    for item, call in found:
        launch: Any = call.launch
        if item.kernel.unit == "column":
            continue
        parts = launch.task.tiles * max(1, WARP // launch.block[0]) if item.kernel.in_parts else worlds
        check(launch.grid, launch.block, launch.shared, parts)
        # a world begins where the kernel puts it, so many words behind the one before, and the block has them all
        lanes = cuda_build.kernel_lanes(item.kernel, backend.lanes(model.nv))
        plan = scratch_plan(item.kernel, model.sizes, item.nrow, backend)
        own = WORDS[dtype] * (plan.words + columns_of(item.kernel, lanes, backend))
        assert launch.shared == launch.block[1] * own
        assert launch.arguments[-1] == plan.words
        assert launch.block[0] == lanes
        assert launch.shared <= max(48 * 1024, attributes.get(1, 0))


def test_tables_of_worlds_change_no_shape() -> None:
    model = table("room")
    sizes = np.tile(model.mj.geom_size, (2500, 1, 1))
    own, _ = made(model, 2500, "float32", "ahead", geom_size=sizes)
    assert shapes(own) == shapes(made(model, 2500, "float32", "ahead")[0])


@pytest.mark.parametrize("dtype", WORDS)
@pytest.mark.parametrize("name", MODELS)
def test_whole_steps_of_such_models_fit_or_are_not_made(name: str, dtype: str) -> None:
    model = table(name)
    for worlds in (1, 100, 2500):
        plan = ListEngine([(model, worlds)], ShapesOfCuda(), "serial", dtype, 1, "whole", {}).plan(0)
        if plan.step_kernel is not None:
            assert plan.step_shape.worlds * plan.step_memory.scratch <= BLOCK_BYTES
            assert WARP * TEAMS * plan.step_shape.warps <= MOST_THREADS


@pytest.mark.parametrize("dtype", WORDS)
@pytest.mark.parametrize("moving", [0, 1, MOST_WORDS // 12, MOST_WORDS // 6])
def test_the_largest_clusters_fit_a_block(dtype: str, moving: int) -> None:
    """All of MOST_WORDS, for boxes or for bits of pairs."""
    model, backend = table("room"), ShapesOfCuda()
    sizes = {**model.sizes, "ncluster": moving + 7, "nstill": 7, "ncand": 32 * (MOST_WORDS - 6 * moving)}
    for kernel in (contact_kernels.LISTING_BY_CLUSTERS, contact_kernels.CLUSTERS_BY_BLOCK):
        plan = scratch_plan(kernel, sizes, 0, backend)
        own = {
            "list_culled_waiting": 4 * WARP,
            "list_culled_boxes": 6 * moving,
            "list_culled_near_bits": MOST_WORDS - 6 * moving,
        }
        places = sorted((plan.offsets[name], plan.offsets[name] + words) for name, words in own.items())
        assert all(end <= begin for (_, end), (begin, _) in pairwise(places))
        assert places[-1][1] <= plan.words
        scratch = WORDS[dtype] * (plan.words + columns_of(kernel, kernel.own_lanes, backend))
        assert MULTIPROCESSOR_BYTES // scratch >= 6
        for units in (1, 131, 2048, 2113, 4096, 70_000, 2**20):
            grid, block, shared = backend.shape(units, kernel.own_lanes, scratch)
            check(grid, block, shared, units)
            assert shared == block[1] * scratch


@pytest.mark.parametrize("dtype", WORDS)
@pytest.mark.parametrize("bodies", [6, 24, 25, 64, 65])
def test_sparse_factors_of_islands_fit_a_block(bodies: int, dtype: str, attributes: dict[int, int]) -> None:
    """Beside what functions over lanes of a block declare, which counts where a launch asks for no more than usual."""
    body = "<body><freejoint/><geom size='0.1'/></body>"
    model = ShapesOfCuda().form_of(load_table(f"<mujoco><worldbody>{body * bodies}</worldbody></mujoco>"), dtype)
    model.solve_by_islands(True)
    (kernel,) = (kernel for kernel in ISLAND_KERNELS if kernel.stages == (SOLVE_LARGE,))
    backend, bounds = ShapesOfCuda(), class_bounds(model)
    for bound, lanes in zip(bounds[LARGE_ISLANDS:], lanes_of_islands(model, backend)[LARGE_ISLANDS:], strict=True):
        own = scratch_plan(kernel, {**model.sizes, "nv": bound}, 0, backend).words + column_words(backend, lanes)
        grid, block, shared = backend.shape(9, lanes, WORDS[dtype] * own)
        assert block == (lanes, 1)
        CudaLaunch(1, grid, block, shared)
        assert shared + STATIC <= max(48 * 1024, attributes.get(1, 0) + STATIC)
        assert 4 * (shared + STATIC) <= MULTIPROCESSOR_BYTES * WORDS[dtype] // 4


def workers(model: ModelTable, worlds: int, dtype: str, merged: bool) -> Image | None:
    """Workers of the executor `device`, of which each has the most registers; None if they do not fit together."""
    found, segments = made(model, worlds, dtype, "ahead")
    device = Multiprocessors(number=MULTIPROCESSORS, shared=MULTIPROCESSOR_BYTES)
    try:
        return build_image([call for _, call in found], segments.conflicts, device, 64, merged=merged)
    except ValueError:
        return None


@pytest.mark.parametrize(("worlds", "merged"), [(3, False), (2500, False), (2500, True)])
@pytest.mark.parametrize("dtype", WORDS)
@pytest.mark.parametrize("name", MODELS)
def test_workers_of_the_executor_device_fit_where_they_do_without_clusters(
    name: str, dtype: str, worlds: int, merged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few worlds and searches there are six classes of workers, with clusters and without: too many registers."""
    image = workers(table(name), worlds, dtype, merged)
    if image is None:
        monkeypatch.setattr(clusters, "FEWEST_CULLED", 10**9)
        assert workers(load_table(MODELS[name]), worlds, dtype, merged) is None
        assert (name, worlds, merged) == ("searches", 3, False)
        return
    for of in image.classes:
        assert of.blocks > 0
        assert of.kind.threads <= MOST_THREADS
        assert of.kind.threads * of.kind.registers <= REGISTERS
        assert of.memory + STATIC <= BLOCK_BYTES
