"""`Target`: the memory and processor of a workload, which is the host, a GPU or a fake device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...core.calls import Launch
from ...cuda.driver import CudaDriver
from ...device.linking import compile_body
from ...launch.cuda import CudaLaunch
from ...launch.host import PythonLaunch
from ...launch.tasks import DeviceBody, DeviceTask
from .kernels import KERNELS, OPTIONS, REGISTERS, THREADS, Kernel, module_source


class Visible(NamedTuple):
    """int32 numbers that kernels write and the host reads: the argument of the kernels, and the host's view."""

    values: np.ndarray
    argument: Any


class Target(Protocol):
    """Memory and launches. `options` are the options of `make_executor` that suit the target."""

    options: dict[str, Any]

    def array(self, values: np.ndarray) -> Any:
        """Return a copy of an array in this target."""
        ...

    def fill(self, array: Any, values: np.ndarray) -> None:
        """Write an array of this target, after all work issued before and before all work issued later."""
        ...

    def to_host(self, array: Any) -> np.ndarray:
        """Return a copy on the host of an array of this target, once all issued work is done."""
        ...

    def visible(self, count: int) -> Visible:
        """Return numbers that both kernels and the host can access."""
        ...

    def launch(self, kernel: Kernel, tiles: int, args: Sequence[Any]) -> Launch:
        """Return the launch of a kernel with a number of tiles and its arguments."""
        ...

    def with_tiles(self, launch: Any, tiles: int) -> Launch:
        """Return the launch with another number of tiles."""
        ...


class HostTarget:
    """NumPy arrays, and kernels in NumPy. `launcher` makes the launch of a Python body, such as `FakeDevice.launch`."""

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

    def launch(self, kernel: Kernel, tiles: int, args: Sequence[Any]) -> Launch:
        """Bind the NumPy body, which takes its sizes from the arguments."""
        return self._launcher(partial(kernel.body, *args))

    def with_tiles(self, launch: Launch, tiles: int) -> Launch:
        """Return the launch itself."""
        return launch


class CudaTarget:
    """CuPy arrays and compiled kernels. Raises RuntimeError if there is no CuPy or no GPU."""

    def __init__(self) -> None:
        CudaDriver()  # raises an error that says what is missing
        import cupy

        self.options: dict[str, Any] = {"device": "cuda", "keep": _keep}
        self._cupy: Any = cupy
        self._arch = int(cupy.cuda.Device().compute_capability)
        self._module = cupy.RawModule(code=module_source(), options=OPTIONS)
        self._bodies: dict[str, DeviceBody] = {}
        self._pinned: list[Any] = []

    def array(self, values: np.ndarray) -> Any:
        """Return a copy on the current device."""
        return self._cupy.asarray(values)

    def fill(self, array: Any, values: np.ndarray) -> None:
        """Copy on CuPy's current stream, the home stream of every executor."""
        array.set(values)

    def to_host(self, array: Any) -> np.ndarray:
        """Return a copy, once CuPy's current stream is done."""
        return self._cupy.asnumpy(array)

    def visible(self, count: int) -> Visible:
        """Return pinned memory, which has the same address on host and device."""
        memory = self._cupy.cuda.alloc_pinned_memory(4 * count)
        self._pinned.append(memory)
        values = np.frombuffer(memory, np.int32, count)
        values[:] = 0
        return Visible(values, np.uint64(values.ctypes.data))

    def launch(self, kernel: Kernel, tiles: int, args: Sequence[Any]) -> CudaLaunch:
        """Bind the CUDA function, and the body for workers of executor `device`."""
        task = DeviceTask(self._body(kernel), tiles, kernel.memory)
        function = self._module.get_function(kernel.name)
        return CudaLaunch.from_kernel(function, (tiles,), (THREADS,), args, kernel.memory, task=task)

    def with_tiles(self, launch: CudaLaunch, tiles: int) -> CudaLaunch:
        """Return a launch that shares the packed arguments."""
        task = None if launch.task is None else replace(launch.task, tiles=tiles)
        return launch.with_shape((tiles,), launch.block, launch.shared, task)

    def _body(self, kernel: Kernel) -> DeviceBody:
        if kernel.name not in self._bodies:
            code = partial(_body_code, kernel.name, self._arch)
            self._bodies[kernel.name] = DeviceBody(kernel.body_name, code, THREADS, REGISTERS)
        return self._bodies[kernel.name]


_KEPT: dict[str, bytes] = {}


def _keep(key: str, make: Callable[[], bytes]) -> bytes:
    """Store the workers of executor `device` for the life of the process, because linking them takes long."""
    if key not in _KEPT:
        _KEPT[key] = make()
    return _KEPT[key]


@cache
def _body_code(name: str, arch: int) -> bytes:
    kernel = next(kernel for kernel in KERNELS if kernel.name == name)
    return compile_body(kernel.body_source(), kernel.body_name, arch)
