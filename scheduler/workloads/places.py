"""Where a workload's arrays are and its kernels run: on the host, on a GPU, or on a fake one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..calls import Launch
from ..driver import CudaDriver
from ..launch import CudaLaunch, PythonLaunch
from .kernels import SOURCE, Kernel


class Visible(NamedTuple):
    """int32 numbers that kernels write, as `argument`, and the host reads, as `values`."""

    values: np.ndarray
    argument: Any


class Place(Protocol):
    """Memory and launches. `options` are those of `make_executor` that choose this place."""

    options: dict[str, Any]

    def array(self, values: np.ndarray) -> Any:
        """Return a copy of an array there."""
        ...

    def fill(self, array: Any, values: np.ndarray) -> None:
        """Write all of an array there, behind what was issued and ahead of what will be."""
        ...

    def to_host(self, array: Any) -> np.ndarray:
        """Return a copy on the host of an array there, once what was issued is done."""
        ...

    def visible(self, count: int) -> Visible:
        """Return numbers that both sides can reach."""
        ...

    def launch(self, kernel: Kernel, grid: Sequence[int], block: Sequence[int], args: Sequence[Any]) -> Launch:
        """Return a kernel bound to its arguments."""
        ...

    def with_grid(self, launch: Any, grid: Sequence[int]) -> Launch:
        """Return the launch with another grid."""
        ...


class HostPlace:
    """NumPy arrays, and kernels in NumPy. `launcher` makes the launch of a Python body, e.g. `FakeDevice.launch`."""

    def __init__(
        self, launcher: Callable[[Callable[[], None]], Launch] = PythonLaunch, options: dict[str, Any] | None = None
    ) -> None:
        self.options = {"device": "host"} if options is None else options
        self._launcher = launcher

    def array(self, values: np.ndarray) -> np.ndarray:
        """Return a copy."""
        return np.array(values)

    def fill(self, array: np.ndarray, values: np.ndarray) -> None:
        """Assign."""
        array[...] = values

    def to_host(self, array: np.ndarray) -> np.ndarray:
        """Return a copy."""
        return np.array(array)

    def visible(self, count: int) -> Visible:
        """Return a plain array."""
        values = np.zeros(count, np.int32)
        return Visible(values, values)

    def launch(self, kernel: Kernel, grid: Sequence[int], block: Sequence[int], args: Sequence[Any]) -> Launch:
        """Bind the NumPy body; it takes its sizes from the arguments."""
        return self._launcher(partial(kernel.body, *args))

    def with_grid(self, launch: Launch, grid: Sequence[int]) -> Launch:
        """Return the launch itself."""
        return launch


class CudaPlace:
    """CuPy arrays and compiled kernels. Raises RuntimeError where there is no CuPy or no GPU."""

    def __init__(self) -> None:
        CudaDriver()  # says what is missing
        import cupy

        self.options: dict[str, Any] = {"device": "cuda"}
        self._cupy: Any = cupy
        # without contraction, as everywhere, so that a kernel's sums do not depend on how the compiler saw it
        self._module = cupy.RawModule(code=SOURCE, options=("--std=c++17", "--fmad=false"))
        self._pinned: list[Any] = []

    def array(self, values: np.ndarray) -> Any:
        """Return a copy on the current device."""
        return self._cupy.asarray(values)

    def fill(self, array: Any, values: np.ndarray) -> None:
        """Copy on CuPy's current stream, which every executor's run begins and ends on."""
        array.set(values)

    def to_host(self, array: Any) -> np.ndarray:
        """Return a copy, behind CuPy's current stream."""
        return self._cupy.asnumpy(array)

    def visible(self, count: int) -> Visible:
        """Return pinned memory, which has one address on both sides."""
        memory = self._cupy.cuda.alloc_pinned_memory(4 * count)
        self._pinned.append(memory)
        values = np.frombuffer(memory, np.int32, count)
        values[:] = 0
        return Visible(values, np.uint64(values.ctypes.data))

    def launch(self, kernel: Kernel, grid: Sequence[int], block: Sequence[int], args: Sequence[Any]) -> CudaLaunch:
        """Bind the CUDA function."""
        return CudaLaunch.from_kernel(self._module.get_function(kernel.name), grid, block, args)

    def with_grid(self, launch: CudaLaunch, grid: Sequence[int]) -> CudaLaunch:
        """Return a launch that shares the packed arguments."""
        return launch.with_grid(grid)
