"""`HostBackend`: kernels that the machine's C++ compiler compiled. A world has one lane, or an entry of each vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import ceil, prod
from pathlib import Path
from typing import Any

import numpy as np

from simengine.backends.base import Candidates, Extent, StepShape
from simengine.errors import BackendError
from simengine.kernels import host_build
from simengine.kernels.functions import Build
from simengine.model.model_table import ModelTable
from simengine_scheduler import HostLaunch
from simengine_scheduler.executors.processors import usable_processors
from simengine_scheduler.launch import BufferSet

_WORLDS_A_SHARD = 64  # so that a shard's working set stays in the second-level cache of a core
_SHARDS_A_CORE = 4  # of a batch of many groups, whose shards take different times and so share the cores unevenly
_ALIGNMENT = 64  # bytes
_MEMORY = Path("/proc/meminfo")
_EXECUTORS = ("auto", "serial", "shuffled", "threads", "simulated")


def available_memory() -> int | None:
    """Linux's estimate of the bytes that can be allocated without swapping; None on other systems."""
    try:
        lines = _MEMORY.read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)


_NEWTON = ("solve_newton_unilateral", "solve_newton_general")
_WIDEST_SPARSE_BLOCK = 8
"""Most dofs of a block in sparse factors; large_sparse.cuh."""

_MOST_DENSE_DOFS = 18
"""Most dofs of an island with a dense problem where others have sparse factors: three bodies have few zeros."""


class HostBackend:
    """Runs kernel lists on a CPU. `Backend` documents its functions.

    Raises:
        BackendError: there is no C++ compiler.
    """

    name = "host"
    wide_lanes = 1
    island_lanes = (1, 1)

    def __init__(self) -> None:
        host_build.compiler()

    def own_gpu(self) -> None:
        """None."""

    def form_of(self, model: ModelTable, dtype: str) -> ModelTable:
        """The model in its fastest form on a CPU, where smaller worlds, too, are solved by islands, and sparse factors
        pay for most islands."""
        form = model.on_a_cpu()
        small = form.has_islands and form.sizes["nwidest"] <= _WIDEST_SPARSE_BLOCK
        return form.with_dense_islands(_MOST_DENSE_DOFS) if small and form.solver in _NEWTON else form

    def lanes(self, nv: int) -> int:
        """One lane, which loops over the dofs."""
        return 1

    def registers(self, nv: int) -> bool:
        """False: matrices are factored in memory."""
        return False

    def matrix_rows(self, nv: int, dtype: str) -> int:
        """0: matrices are in memory."""
        return 0

    def block_rows(self, nv: int, dtype: str) -> int:
        """0: matrices are in memory."""
        return 0

    def dual_rows(self, nv: int, dtype: str) -> int:
        """0: one lane has all rows in memory."""
        return 0

    def solves_by_warps(self, nv: int, dtype: str) -> bool:
        """False: one lane works on a world."""
        return False

    def along_branches(self, nv: int) -> bool:
        """False: large matrices have an envelope, and smaller ones are dense."""
        return False

    def zeros(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        """A zeroed array that starts on a cache line."""
        kind = np.dtype(dtype)
        nbytes = prod(shape) * kind.itemsize
        raw = np.zeros(nbytes + _ALIGNMENT, dtype=np.uint8)
        start = -raw.ctypes.data % _ALIGNMENT
        return raw[start : start + nbytes].view(kind).reshape(shape)

    def expect(self, nbytes: int) -> None:
        """Nothing: the allocator of the system needs no preparation."""

    def filling(self) -> AbstractContextManager[None]:
        """Nothing, since memory is filled at once."""
        return nullcontext()

    @property
    def arrays(self) -> Any:
        """NumPy."""
        return np

    def free_memory(self) -> int | None:
        """As `available_memory`."""
        return available_memory()

    def upload(self, array: np.ndarray) -> np.ndarray:
        """A copy that starts on a cache line."""
        copy = self.zeros(array.shape, str(array.dtype))
        copy[...] = array
        return copy

    def copier_of_many(self, pairs: Sequence[tuple[Any, Any]]) -> Callable[[int], None]:
        """A function that assigns."""
        copies = [self.copier(array, rows) for array, rows in pairs]

        def copy_all(k: int) -> None:
            for copy in copies:
                copy(k, 1)

        return copy_all

    def stage(self, array: np.ndarray) -> np.ndarray:
        """The array itself."""
        return array

    def copier(self, array: Any, rows: Any) -> Callable[[int, int], None]:
        """A function that assigns."""

        def copy(k: int, number: int) -> None:
            part = rows[k : k + number]
            array.reshape(-1)[: part.size] = part.reshape(-1)

        return copy

    def drain(self) -> None:
        """Returns at once, since all calls are done when a run returns."""

    def host_visible(self, count: int) -> np.ndarray:
        """An array in ordinary memory."""
        return self.zeros((count,), "int32")

    def pointer(self, array: Any) -> int:
        """The address of the array."""
        return int(array.ctypes.data)

    def to_host(self, array: Any) -> np.ndarray:
        """The array itself."""
        return np.asarray(array)

    def load(self, builds: Sequence[Build], dtype: str, own_tables: bool) -> list[Any]:
        """Compile kernels with the C++ compiler, or find them in the cache."""
        return host_build.load_kernels(builds, dtype, own_tables)

    def launch(self, function: Any, extent: Extent, args: Sequence[Any], buffers: BufferSet) -> HostLaunch:
        """Bind a function to its arguments, one of which gives the number of units."""
        return HostLaunch(function, args, buffers)

    def resize(self, launch: HostLaunch, extent: Extent, packed: bool) -> HostLaunch:
        """The launch itself, since host kernels read the number of units from memory."""
        return launch

    def step_shape(self, all_worlds: int, groups: int, lanes: int, scratch_bytes: int) -> StepShape | None:
        """None, since on a CPU whole steps are programs of kernels (`simengine.backends.host_program`)."""
        return None

    def launch_steps(
        self,
        function: Any,
        units: int,
        shape: StepShape,
        scratch_bytes: int,
        args: Sequence[Any],
        buffers: BufferSet,
    ) -> HostLaunch:
        """Raises BackendError, since a CPU has no such kernels."""
        raise BackendError("kernels of whole steps are for GPUs; use emission='whole', which makes them programs here")

    def executor_options(self, name: str, num_shards: int) -> dict[str, Any]:
        """The device, and a window that holds calls of all shards."""
        if name not in _EXECUTORS:
            raise ValueError(f"executor {name!r} cannot run on backend 'host'; choose one of {', '.join(_EXECUTORS)}")
        return {"device": "host", "window": max(32, 4 * num_shards)}

    def executor_for(self, waits: bool) -> str:
        """`threads`, since no other executor uses more than one core."""
        return "threads"

    def candidates(self, waits: bool, num_shards: int) -> Candidates:
        """`threads` or `serial`. Serial is faster if a step takes less time than waking another core."""
        if num_shards == 1:
            return Candidates(("serial",), "all worlds are in one shard, of which nothing can run at once")
        return Candidates(("threads", "serial"), "")

    def emission(self, executor: str, options: Mapping[str, Any], waits: bool) -> str:
        """Whole steps, unless calls are recorded, simulated or shuffled one by one."""
        recorded = options.get("record", "off") != "off"
        return "counted" if recorded or executor in ("shuffled", "simulated") else "whole"

    def shards_for(self, num_worlds: int, executor: str, emission: str, share: float = 1.0) -> int:
        """Enough shards to occupy every core together with other groups, and to keep each shard in cache."""
        by_cache = -(-num_worlds // _WORLDS_A_SHARD)
        cores = usable_processors()
        of_batch = max(1, ceil(_SHARDS_A_CORE * cores * share))
        by_cores = min(num_worlds, cores, of_batch) if executor == "threads" else 1
        return max(by_cache, by_cores)

    def synchronize(self) -> None:
        """Returns at once, since host executors return when all work is done."""
