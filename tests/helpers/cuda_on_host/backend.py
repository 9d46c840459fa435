"""The CUDA backend's choices, with kernels that run as on a GPU in memory of the host."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from simengine.backends.base import Extent
from simengine.backends.block_shape import worlds_of_block
from simengine.backends.cuda import CudaBackend
from simengine.backends.host import HostBackend
from simengine.kernels import cuda_build
from simengine.kernels.functions import Build
from simengine.kernels.kernel import Kernel
from simengine_scheduler import HostLaunch
from simengine_scheduler.launch import BufferSet
from tests.helpers.cuda_on_host.program import Schedule, program_of

SHARED_OF_BLOCK, SHARED_OF_MULTIPROCESSOR = 232448, 233472
"""Bytes of shared memory of an H100."""

FEW_BLOCKS = 2
"""Blocks of a launch whose blocks go on with further units, so that some do."""


class Built(NamedTuple):
    """A kernel in a precision, for a number of lanes."""

    kernel: Kernel
    dtype: str
    lanes: int


class FiberBackend(HostBackend):
    """Runs the kernel lists of a GPU on the host. `Backend` documents its functions.

    Attributes:
        how: how steps are issued, "counted" or "ahead".
        schedule: how the threads of a block take turns.
        spread: up to this number of blocks, each world has a block of its own.
        used: names of the kernels that ran.
    """

    name = "cuda"
    wide_lanes = CudaBackend.wide_lanes
    island_lanes = CudaBackend.island_lanes
    how = "ahead"
    schedule = Schedule()
    spread = 1
    used: ClassVar[set[str]] = set()

    lanes = CudaBackend.lanes
    registers = CudaBackend.registers
    matrix_rows = CudaBackend.matrix_rows
    block_rows = CudaBackend.block_rows
    dual_rows = CudaBackend.dual_rows
    solves_by_warps = CudaBackend.solves_by_warps
    along_branches = CudaBackend.along_branches
    form_of = CudaBackend.form_of

    def load(self, builds: Sequence[Build], dtype: str, own_tables: bool) -> list[Any]:
        """Kernels, which are compiled when they run."""
        return [Built(kernel, dtype, cuda_build.kernel_lanes(kernel, lanes)) for kernel, lanes in builds]

    def launch(self, function: Built, extent: Extent, args: Sequence[Any], buffers: BufferSet) -> HostLaunch:
        """A launch over groups of lanes, in blocks of one or more."""
        call = self._call(function, extent)
        launch = HostLaunch(call, args, buffers)
        call.built = function  # type: ignore[attr-defined]
        return launch

    def resize(self, launch: HostLaunch, extent: Extent, packed: bool) -> HostLaunch:
        """The same kernel and arguments on another grid."""
        built = launch.function.built  # type: ignore[attr-defined]
        copy = HostLaunch(self._call(built, extent), (), launch.buffers)
        copy._packed = launch._packed
        return copy

    def _call(self, built: Built, extent: Extent) -> Callable[[Any], None]:
        units, lanes, scratch, columns, goes_on = extent
        most = 1 if lanes > 32 else max(1, min(cuda_build.BLOCK // lanes, SHARED_OF_BLOCK // max(scratch, 1)))
        worlds = worlds_of_block(units, lanes, scratch, most, self.spread, SHARED_OF_MULTIPROCESSOR)

        def run(slots: Any) -> None:
            self.used.add(built.kernel.name)
            program = program_of(*built)
            address = int(ctypes.cast(slots, ctypes.c_void_p).value or 0)
            if columns:
                program.run(address, units, (cuda_build.SCAN_LANES, 1), 0, self.schedule)
            else:
                blocks = max(1, -(-units // worlds))
                blocks = min(blocks, FEW_BLOCKS) if goes_on else blocks
                program.run(address, blocks, (lanes, worlds), worlds * scratch, self.schedule)

        return run

    def executor_options(self, name: str, num_shards: int) -> dict[str, Any]:
        """Those of the host."""
        return {"device": "host", "window": 32}

    def executor_for(self, waits: bool) -> str:
        """`serial`, since the programs of kernels have state of their own."""
        return "serial"

    def emission(self, executor: str, options: Mapping[str, Any], waits: bool) -> str:
        """As the class says, unless some model must wait for counts."""
        return "counted" if waits else self.how

    def shards_for(self, num_worlds: int, executor: str, emission: str, share: float = 1.0) -> int:
        """One."""
        return 1
