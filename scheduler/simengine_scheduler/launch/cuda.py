"""Launches of CUDA kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from .arguments import Buffer, BufferSet, PackedArguments
from .tasks import DeviceTask

# Bytes of dynamic shared memory that a launch may ask for without telling its function. A block has 48 KiB then, of
# which the function may take some for variables of its own.
_DEFAULT_SHARED_LIMIT = 40 * 1024


def three_sizes(name: str, size: Sequence[int]) -> tuple[int, int, int]:
    """Return one to three sizes as three. Raises ValueError if they are none."""
    padded = size if type(size) is tuple and len(size) == 3 else (*size, 1, 1, 1)[:3]
    if not 1 <= len(size) <= 3 or min(padded) < 1:
        raise ValueError(
            f"{name} {tuple(size)} is not one to three positive sizes; a launch without work should not be emitted"
        )
    return padded[0], padded[1], padded[2]


class CudaLaunch:
    """A CUDA kernel bound to its grid, block and arguments. `issue` takes about 3 us.

    Args:
        function: a CUfunction handle.
        grid, block: one to three sizes each.
        shared: dynamic shared memory of a block [bytes].
        args: arguments, as `simengine_scheduler.launch.arguments` lists them.
        buffers: the set that the buffers among the arguments belong to.
        task: how workers of executor `device` run the launch, if they can.
        gpu: number of the GPU of the function, for an executor with several.
    """

    __slots__ = (
        "_allowed",
        "_dims",
        "_keepalive",
        "_launch",
        "_packed",
        "block",
        "function",
        "gpu",
        "grid",
        "shared",
        "task",
    )

    def __init__(
        self,
        function: int,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int = 0,
        args: Sequence[Any] = (),
        buffers: BufferSet | None = None,
        task: DeviceTask | None = None,
        gpu: int | None = None,
    ) -> None:
        from cupy.cuda import driver

        self._launch = cast(Callable[..., None], driver.launchKernel)
        self._packed = PackedArguments(args, buffers if buffers is not None else BufferSet())
        self._keepalive: Any = None
        self.task = task
        self.gpu = gpu
        self.function = int(function)
        self.block = three_sizes("block", block)
        self.shared = int(shared)
        self._allowed = max(self.shared, _DEFAULT_SHARED_LIMIT)  # the most that copies of this launch may ask for
        if self.shared > _DEFAULT_SHARED_LIMIT:
            attribute = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            # Other launches of the function may need more, so the limit is never lowered.
            if self.shared > driver.funcGetAttribute(attribute, self.function):
                driver.funcSetAttribute(self.function, attribute, self.shared)
        self._set_grid(grid)

    @classmethod
    def from_kernel(
        cls,
        kernel: Any,
        grid: Sequence[int],
        block: Sequence[int],
        args: Sequence[Any] = (),
        shared: int = 0,
        buffers: BufferSet | None = None,
        task: DeviceTask | None = None,
        gpu: int | None = None,
    ) -> CudaLaunch:
        """Bind a `cupy.RawKernel`. The launch keeps the kernel alive."""
        launch = cls(kernel.kernel.ptr, grid, block, shared, args, buffers, task, gpu)
        launch._keepalive = kernel
        return launch

    @property
    def buffers(self) -> BufferSet:
        """The set of buffers whose epoch tells when arguments must be packed again."""
        return self._packed.buffers

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments, as they were given."""
        return self._packed.args

    def node(self) -> tuple[int, tuple[int, int, int], tuple[int, int, int], int, int]:
        """Return what a node of a graph needs: function, grid, block, shared memory, table of arguments."""
        return self.function, self.grid, self.block, self.shared, self._packed.current()[3]

    def resources(self) -> tuple[int, int]:
        """Return the registers of a thread and the static shared memory of a block [bytes] of the compiled function."""
        from cupy.cuda import driver

        numbers = driver.CU_FUNC_ATTRIBUTE_NUM_REGS, driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
        registers, shared = (int(driver.funcGetAttribute(number, self.function)) for number in numbers)
        return registers, shared

    def packed_arguments(self) -> np.ndarray:
        """The arguments as 8-byte words."""
        return self._packed.words()

    def _set_grid(self, grid: Sequence[int]) -> None:
        self.grid = three_sizes("grid", grid)
        self._dims = (self.function, *self.grid, *self.block, self.shared)

    def with_grid(self, grid: Sequence[int]) -> CudaLaunch:
        """Return a launch with another grid that shares the packed arguments."""
        return self.with_shape(grid, self.block, self.shared)

    def with_shape(
        self, grid: Sequence[int], block: Sequence[int], shared: int, task: DeviceTask | None = None
    ) -> CudaLaunch:
        """Return a launch with another grid, block and shared memory [bytes] that shares the packed arguments.

        `task` must fit the new shape. Raises ValueError if `shared` is more than what the first of these launches asked
        for, which is what the function was told to allow.
        """
        if shared > self._allowed:
            raise ValueError(
                f"with_shape asks for {shared} bytes of shared memory where the launch was made for {self._allowed}"
            )
        return self._copy(grid, block, shared, task)

    def with_argument(self, old: Buffer, new: Any) -> CudaLaunch:
        """Return the launch with another argument instead of a buffer, or itself if the buffer is no argument."""
        packed = self._packed.replaced(old, new)
        if packed is None:
            return self
        copy = self._copy(self.grid, self.block, self.shared, self.task)
        copy._packed = packed
        return copy

    def _copy(self, grid: Sequence[int], block: Sequence[int], shared: int, task: DeviceTask | None) -> CudaLaunch:
        copy = object.__new__(CudaLaunch)
        for name in ("_allowed", "_launch", "_packed", "_keepalive", "function", "gpu"):
            setattr(copy, name, getattr(self, name))
        copy.task = task
        copy.block = three_sizes("block", block)
        copy.shared = int(shared)
        copy._set_grid(grid)
        return copy

    def issue(self, stream: int) -> None:
        """Start the kernel on a stream handle. CUDA copies the arguments before this returns."""
        packed = self._packed
        bound = packed._bound
        if bound[0] != packed.buffers.moves:
            bound = packed.current()
        self._launch(*self._dims, stream, bound[3], 0)

    def issue_with(self, grid: tuple[int, int, int], stream: int, arguments: int) -> None:
        """Start the kernel with another grid and table of arguments, of which this is the address."""
        self._launch(self.function, *grid, *self.block, self.shared, stream, arguments, 0)
