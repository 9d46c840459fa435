"""The CUDA backend: kernels compiled by NVRTC, memory and launches through CuPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from threading import local
from typing import Any

import numpy as np

from simengine.backends.base import (
    Candidates,
    Extent,
    StepShape,
    along_branches_for,
    block_rows_for,
    dual_rows_for,
    form_on_a_gpu,
    lanes_for,
    matrix_rows_for,
    solves_by_warps_for,
)
from simengine.backends.block_shape import worlds_of_block
from simengine.backends.cuda_copies import FEW, row_copier
from simengine.backends.driver_start import start_driver
from simengine.errors import BackendError
from simengine.kernels import cuda_build
from simengine.kernels.functions import Build
from simengine.kernels.step_kernel import MOST_WARPS, TEAMS, WARP
from simengine.model.model_table import ModelTable
from simengine_scheduler import CudaLaunch
from simengine_scheduler.cuda import patience
from simengine_scheduler.cuda.setup import set_up_stream
from simengine_scheduler.launch import BufferSet, DeviceTask

_BLOCKS_A_MULTIPROCESSOR = 16  # up to this number of blocks, each world has a block of its own

# Rounds of blocks up to which kernels of whole steps are faster than lists. Lists of many groups slow each other down.
_STEP_ROUNDS, _STEP_ROUNDS_OF_MANY, _MANY_GROUPS = 1, 2, 5

_MOST_EXPECTED = 2**26  # bytes of a block of CuPy's pool that `expect` asks for at most

_EXECUTORS = ("serial", "streams", "graph", "graph-cached", "pipeline", "device")

_MEASURED = {
    "graph-cached": (
        "of eleven executors on an H200 none took less for steps ahead of their counts, by more than 2 %, on any of "
        "five models, and whole steps of few worlds took 0.5 to 0.6 of that on four of them "
        "(benchmarks/results/scheduler_h200.json)"
    ),
    "streams": (
        "where steps wait for counts, cached graphs took 1.1 to 1.2 times as long on each of five models on an H200 "
        "(benchmarks/results/scheduler_h200.json)"
    ),
    "without graphs": "graphs, which are faster, need cuda-bindings; install simengine[cuda13] or simengine[cuda12]",
}
"""Why an executor is the fastest, by its name."""


def _can_build_graphs() -> bool:
    """Whether cuda-bindings is installed."""
    try:
        return find_spec("cuda.bindings") is not None
    except ModuleNotFoundError:  # its parent package `cuda` is not installed either
        return False


class CudaBackend:
    """Runs kernel lists on the GPU that is current as it is made. `Backend` documents its functions.

    Raises BackendError without CuPy or a GPU.
    """

    name = "cuda"
    wide_lanes = cuda_build.WIDE_LANES
    island_lanes = cuda_build.ISLAND_LANES

    def __init__(self) -> None:
        driver = start_driver()
        try:
            import cupy  # type: ignore[import-untyped]
        except ImportError as error:
            raise BackendError(
                "the cuda backend needs CuPy; install simengine[cuda13] or simengine[cuda12], or use backend='host'"
            ) from error
        if driver is not None:
            driver.join()
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise BackendError(
                f"the cuda backend found no GPU ({error}); use backend='host' or backend='jax'"
            ) from error
        if count == 0:
            raise BackendError("the cuda backend found no GPU; use backend='host' or backend='jax'")
        self._cupy = cupy
        gpu = cupy.cuda.Device()
        self._gpu, attributes = int(gpu.id), gpu.attributes
        self._shared_limit = int(attributes["MaxSharedMemoryPerBlockOptin"])
        self._shared_of_multiprocessor = int(attributes["MaxSharedMemoryPerMultiprocessor"])
        self._multiprocessors = int(attributes["MultiProcessorCount"])
        self._spread_blocks = _BLOCKS_A_MULTIPROCESSOR * self._multiprocessors
        self._patience = patience.limit()
        # Memory is allocated and filled on a stream of its own, for which the host waits. A run may need memory while
        # its kernels run on several streams, and the caller's stream may be busy with other work.
        self._setup = set_up_stream()
        self._filling = local()

    def own_gpu(self) -> AbstractContextManager[Any]:
        """CuPy's context of the GPU, a new one each time, since each remembers one thread's GPU before it."""
        gpu: AbstractContextManager[Any] = self._cupy.cuda.Device(self._gpu)
        return gpu

    def form_of(self, model: ModelTable, dtype: str) -> ModelTable:
        """`form_on_a_gpu`."""
        return form_on_a_gpu(model, dtype)

    def lanes(self, nv: int) -> int:
        """The lane class of nv dofs."""
        return lanes_for(nv)

    def registers(self, nv: int) -> bool:
        """True if each row of the matrix has a lane, whose registers hold it."""
        return nv <= lanes_for(nv)

    def matrix_rows(self, nv: int, dtype: str) -> int:
        """nv, for matrices of 33 to 64 rows in float32."""
        return matrix_rows_for(nv, dtype)

    def block_rows(self, nv: int, dtype: str) -> int:
        """nv, for matrices of 65 to 128 rows in float32."""
        return block_rows_for(nv, dtype)

    def dual_rows(self, nv: int, dtype: str) -> int:
        """Three rows a lane in float32 and two in float64, for models of more than 16 dofs."""
        return dual_rows_for(nv, dtype)

    def along_branches(self, nv: int) -> bool:
        """True for worlds of 65 to 256 dofs."""
        return along_branches_for(nv)

    def solves_by_warps(self, nv: int, dtype: str) -> bool:
        """True for worlds of up to 32 dofs in float32."""
        return solves_by_warps_for(nv, dtype)

    def zeros(self, shape: tuple[int, ...], dtype: str) -> Any:
        """A zeroed CuPy array, ready for every stream."""
        with self._setup:
            array = self._cupy.zeros(shape, dtype=dtype)
        self._settle()
        return array

    def expect(self, nbytes: int) -> None:
        """Let CuPy's pool have one block that the arrays are cut from, up to a limit.

        Otherwise the driver is asked for each of the thousands of arrays of many groups. The limit is there because a
        block stays in the pool as long as one array is left of it.
        """
        with self._setup, suppress(MemoryError):  # the arrays themselves may still fit
            self._cupy.cuda.alloc(min(nbytes, _MOST_EXPECTED))

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Wait for the set-up stream once, at the end of the outermost such block."""
        self._filling.depth = self._depth + 1
        try:
            yield
        finally:
            self._filling.depth -= 1
            self._settle()

    @property
    def _depth(self) -> int:
        """In how many blocks of `filling` this thread is."""
        return getattr(self._filling, "depth", 0)

    def _settle(self) -> None:
        if self._depth:
            return
        patience.within(self._patience, self._setup.synchronize, "memory that the GPU fills")

    @property
    def arrays(self) -> Any:
        """CuPy."""
        return self._cupy

    def free_memory(self) -> int | None:
        """Free memory of the device, and unused memory of CuPy's pool."""
        free, _ = self._cupy.cuda.runtime.memGetInfo()
        return int(free) + int(self._cupy.get_default_memory_pool().free_bytes())

    def upload(self, array: np.ndarray) -> Any:
        """A CuPy copy of a host array, ready for every stream. It must live until all work that uses it is done."""
        with self._setup:
            copy = self._cupy.asarray(array)
        self._settle()
        return copy

    def stage(self, array: np.ndarray) -> Any:
        """A CuPy copy of a host array, made on the current stream.

        Its memory belongs to that stream's pool, so it is reused only after work of that stream has read the copy.
        Memory of the set-up stream could be reused before that.
        """
        return self._cupy.asarray(array)

    def copier(self, array: Any, rows: Any) -> Callable[[int, int], None]:
        """A function that copies asynchronously. It takes the host a tenth of the time of CuPy's assignment."""
        runtime = self._cupy.cuda.runtime
        rows = self._cupy.ascontiguousarray(rows, dtype=array.dtype)
        to, start, nbytes = array.data.ptr, rows.data.ptr, rows.nbytes // len(rows)
        kind, stream = runtime.memcpyDeviceToDevice, self._cupy.cuda.get_current_stream().ptr

        def copy(k: int, number: int, rows: Any = rows) -> None:  # the default value keeps `rows` alive
            runtime.memcpyAsync(to, start + k * nbytes, number * nbytes, kind, stream)

        return copy

    def copier_of_many(self, pairs: Sequence[tuple[Any, Any]]) -> Callable[[int], None]:
        """A function that copies asynchronously, by one launch if there are more than a few copies."""
        if len(pairs) > FEW:
            return row_copier(self._cupy, pairs)
        copies = [self.copier(array, rows) for array, rows in pairs]

        def copy_all(k: int) -> None:
            for copy in copies:
                copy(k, 1)

        return copy_all

    def drain(self) -> None:
        """Wait for the whole device."""
        patience.within(self._patience, self._cupy.cuda.Device(self._gpu).synchronize, "work of the whole GPU")

    def host_visible(self, count: int) -> np.ndarray:
        """Pinned memory, mapped at the same address on the GPU (unified addressing)."""
        memory = self._cupy.cuda.alloc_pinned_memory(4 * max(count, 1))
        view = np.frombuffer(memory, dtype=np.int32, count=max(count, 1))[:count]  # keeps the memory
        view[...] = 0
        return view

    def pointer(self, array: Any) -> int:
        """Address of a CuPy array, or of pinned memory."""
        return int(array.ctypes.data) if isinstance(array, np.ndarray) else int(array.data.ptr)

    def to_host(self, array: Any) -> np.ndarray:
        """A copy on the host, after the current stream's work."""
        if self._patience is not None:
            self.synchronize()
        return self._cupy.asnumpy(array)

    def load(self, builds: Sequence[Build], dtype: str, own_tables: bool) -> list[Any]:
        """Compile kernels with NVRTC, or find them in the cache. They always allow tables of worlds."""
        return cuda_build.load_kernels(builds, dtype)

    def launch(self, function: Any, extent: Extent, args: Sequence[Any], buffers: BufferSet) -> CudaLaunch:
        """A launch with `lanes` threads for each unit, in blocks of one or more units."""
        units, lanes, scratch_bytes, columns, _ = extent
        if columns:
            task = DeviceTask(function.body, units)
            launch = CudaLaunch(function.ptr, (units,), (cuda_build.SCAN_LANES,), 0, args, buffers, task)
        else:
            most = self._most_worlds(lanes, scratch_bytes)
            launch = CudaLaunch(function.ptr, (1,), (lanes, most), most * scratch_bytes, args, buffers)
            in_tile = max(1, WARP // lanes)
            task = DeviceTask(function.body, max(1, -(-units // in_tile)), in_tile * scratch_bytes)
            launch = launch.with_shape(*self._shape(extent, self._spread_blocks), task)
        launch._keepalive = function
        return launch

    def _most_worlds(self, lanes: int, scratch_bytes: int) -> int:
        """The largest number of units in a block, by threads and shared memory."""
        fit = self._shared_limit // max(scratch_bytes, 1)
        if fit == 0:
            raise BackendError(
                f"a world of this model needs {scratch_bytes} bytes of shared memory and the GPU offers "
                f"{self._shared_limit} a block; use backend='host'"
            )
        # the lanes of a world with several warps wait for its whole block
        return 1 if lanes > WARP else max(1, min(cuda_build.BLOCK // lanes, fit))

    def _shape(self, extent: Extent, spread: int) -> tuple[tuple[int], tuple[int, int], int]:
        """Grid, block and shared memory [bytes] of a launch; `spread` as in `worlds_of_block`.

        If kernels of other shards run at the same time, a small `spread` saves a tenth of the time, since units on a
        multiprocessor then share its instructions. Blocks that go on with further units are no more than fill the GPU a
        few times: one that finds nothing to do takes a nanosecond.
        """
        units, lanes, scratch, _, goes_on = extent
        most = self._most_worlds(lanes, scratch)
        worlds = worlds_of_block(units, lanes, scratch, most, spread, self._shared_of_multiprocessor)
        blocks = max(1, -(-units // worlds))
        return (min(blocks, self._spread_blocks) if goes_on else blocks,), (lanes, worlds), worlds * scratch

    def resize(self, launch: CudaLaunch, extent: Extent, packed: bool) -> CudaLaunch:
        """The same kernel and arguments on another grid."""
        tiles = max(1, -(-extent.units // max(1, WARP // extent.lanes)))
        task = None if launch.task is None else replace(launch.task, tiles=tiles)
        return launch.with_shape(*self._shape(extent, 1 if packed else self._spread_blocks), task)

    def step_shape(self, all_worlds: int, groups: int, lanes: int, scratch_bytes: int) -> StepShape | None:
        """The function `step_shape` of this module for this GPU."""
        return step_shape(self._multiprocessors, self._shared_limit, all_worlds, groups, lanes, scratch_bytes)

    def launch_steps(
        self,
        function: Any,
        units: int,
        shape: StepShape,
        scratch_bytes: int,
        args: Sequence[Any],
        buffers: BufferSet,
    ) -> CudaLaunch:
        """A launch whose blocks have several teams of warps."""
        grid, block = (-(-units // shape.worlds),), (WARP * TEAMS * shape.warps,)
        launch = CudaLaunch(function.ptr, grid, block, shape.worlds * scratch_bytes, args, buffers)
        launch._keepalive = function
        return launch

    def executor_options(self, name: str, num_shards: int) -> dict[str, Any]:
        """The device, the function that caches linked workers, and how long the host waits."""
        if name not in _EXECUTORS:
            raise ValueError(f"executor {name!r} cannot run on backend 'cuda'; choose one of {', '.join(_EXECUTORS)}")
        return {"device": "cuda", "keep": cuda_build.keep_worker, "patience": self._patience}

    def executor_for(self, waits: bool) -> str:
        """`graph-cached`: with whole steps it is faster than streams for 64 to 8192 worlds, within 4 % for 32768.

        Graphs of steps that wait for counts differ too much to be launched again, and streams take half the time on
        most of them. Streams are also the choice without cuda-bindings.
        """
        return "streams" if waits or not _can_build_graphs() else "graph-cached"

    def candidates(self, waits: bool, num_shards: int) -> Candidates:
        """The choice of `executor_for` alone, since measurements of kernel lists of every kind agree with it."""
        name = self.executor_for(waits)
        return Candidates((name,), _MEASURED[name if waits or _can_build_graphs() else "without graphs"])

    def emission(self, executor: str, options: Mapping[str, Any], waits: bool) -> str:
        """Whole steps for kept graphs and streams, and steps ahead of counts for other executors of fixed lists.

        A recording must show each kernel, so it has no whole steps. With polling, or a model that must wait
        for counts, `streams` goes by counts.
        Whole steps of 64 robots took it a quarter of the time of steps ahead of counts, since each launch takes 4 us
        (benchmarks/results/pauses_apart_h200.json).
        """
        if executor == "streams" and (waits or options.get("completion") == "polling"):
            return "counted"
        if executor in ("graph-cached", "streams") and options.get("record", "off") == "off":
            return "whole"
        return "ahead" if executor in ("graph-cached", "streams", "pipeline", "device") else "counted"

    def shards_for(self, num_worlds: int, executor: str, emission: str, share: float = 1.0) -> int:
        """Two shards if steps wait for counts and each shard fills the GPU, so that one runs while the other waits.

        `pipeline` needs two shards, too. Otherwise one shard is faster.
        """
        if executor == "pipeline":
            return min(2, num_worlds)
        return 2 if executor == "streams" and emission == "counted" and num_worlds >= 16384 else 1

    def synchronize(self) -> None:
        """Wait for CuPy's current stream, which every executor joins."""
        patience.within(self._patience, self._cupy.cuda.get_current_stream().synchronize, "work of the current stream")


def step_shape(
    multiprocessors: int, shared_limit: int, all_worlds: int, groups: int, lanes: int, scratch_bytes: int
) -> StepShape | None:
    """How worlds share blocks in kernels of whole steps, or None if kernel lists are faster or a world does not fit.

    Up to the number of multiprocessors, each world has a block of its own. More worlds share blocks, with one block on
    each multiprocessor if possible. Blocks of different models on one multiprocessor slow each other down by half and
    more, since it fetches the instructions of all of them. Worlds of one block run the same instructions.

    Args:
        multiprocessors: number of multiprocessors of the GPU.
        shared_limit: largest shared memory of a block [bytes].
        all_worlds, groups, lanes, scratch_bytes: as for `Backend.step_shape`.
    """
    fit = shared_limit // max(scratch_bytes, 1)
    wanted = min(fit, -(-all_worlds // multiprocessors))
    warps = min(wanted, MOST_WARPS)
    if warps == 0:
        return None
    shape = StepShape(warps, min(fit // warps, -(-wanted // warps), WARP // lanes))
    rounds = _STEP_ROUNDS if groups < _MANY_GROUPS else _STEP_ROUNDS_OF_MANY
    return shape if all_worlds <= rounds * shape.worlds * multiprocessors else None
