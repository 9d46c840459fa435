"""Calls made of kernels, copies and library functions, whose segments follow from the arrays that they take.

    calls = Calls(segments)
    grow = calls.kernel(kernel, grid, block, n, read(rate), update(x))
    keep = calls.copy(kept, x)
    multiply = calls.function(lambda: cupy.matmul(a, b, out=c), reads=(a, b), writes=(c,))

What a call says of an array is what conflicts are found by, so it must be true. An array without a word counts as
updated. A call that says nothing, and has no arrays, comes after all calls before it, and before all that follow.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..core.calls import KernelCall, Launch
from ..core.segments import Segments
from .arguments import BufferSet, address_of
from .arrays import bytes_of, is_array, on_device
from .cuda import CudaLaunch
from .forms import KernelForm, Places
from .host import PythonLaunch

Addresses = Callable[..., tuple[Iterable[Any], Iterable[Any]]]
"""A function of a kernel's arguments that returns what the kernel reads and writes: arrays, or (address, bytes).

ACS (arXiv 2401.12377) has such a function for each kernel.
"""


@dataclass(frozen=True, slots=True)
class Access:
    """An argument and how a kernel uses it: "reads", "writes" or "updates"."""

    how: str
    array: Any


read = partial(Access, "reads")
"""An array that a kernel reads, as an argument of `Calls.kernel`."""
write = partial(Access, "writes")
"""An array that a kernel writes whatever was in it, as an argument of `Calls.kernel`."""
update = partial(Access, "updates")
"""An array that a kernel reads and writes, as an argument of `Calls.kernel`."""


class StreamLaunch:
    """A function that issues work to the current stream of CuPy and PyTorch, such as a library's product of matrices.

    Python issues it in its turn. It cannot be a node of a graph.
    """

    __slots__ = ("function", "gpu")

    in_graphs = False

    def __init__(self, function: Callable[[], Any], gpu: int | None = None) -> None:
        self.function = function
        self.gpu = gpu

    def issue(self, stream: int) -> None:
        """Call the function with a stream handle as the current stream of the libraries that are loaded."""
        torch = sys.modules.get("torch")
        with sys.modules["cupy"].cuda.ExternalStream(stream) if "cupy" in sys.modules else nullcontext():
            if torch is not None and torch.cuda.is_available():
                with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
                    self.function()
            else:
                self.function()


class Calls:
    """Makes calls.

    Args:
        segments: the table of the executor that will run them.
        buffers: the set of buffers among the arguments of kernels, if there are any.
        gpu: number of the GPU that the calls run on, for an executor with several (option `gpus`).
    """

    def __init__(self, segments: Segments, buffers: BufferSet | None = None, gpu: int | None = None) -> None:
        self._segments = segments
        self._gpu = gpu
        self._buffers = buffers
        self._kept: dict[int, Any] = {}  # arrays whose addresses are in the table
        self._places = Places(self._place_of)

    def _current(self) -> Any:
        return nullcontext() if self._gpu is None else sys.modules["cupy"].cuda.Device(self._gpu)

    def segment(self, place: Any) -> int:
        """Return the id of the bytes of an array or buffer, or of (address, bytes)."""
        if isinstance(place, tuple):
            start, nbytes = place
        else:
            start, nbytes = bytes_of(place)
            self._kept[id(place)] = place
        return self._segments.register_range("array", start, max(1, nbytes))

    def kernel(
        self,
        kernel: Any,
        grid: Sequence[int],
        block: Sequence[int],
        *arguments: Any,
        shared: int = 0,
        name: str | None = None,
        addresses: Addresses | None = None,
    ) -> KernelCall:
        """Return a call of a CUDA kernel.

        Args:
            kernel: a `cupy.RawKernel`.
            grid, block: one to three sizes each.
            arguments: of the kernel. `read`, `write` and `update` say what it does with an array.
            shared: dynamic shared memory of a block [bytes].
            name: of the call; None for that of the kernel.
            addresses: returns, for the arguments, what the kernel reads and what it writes.
        """
        values = [argument.array if isinstance(argument, Access) else argument for argument in arguments]
        with self._current():  # a kernel has a function on each GPU
            launch = CudaLaunch.from_kernel(kernel, grid, block, values, shared, self._buffers, gpu=self._gpu)
        return self._call(name or str(kernel.name), launch, arguments, addresses)

    def form(
        self, kernel: Any, block: Sequence[int], *kinds: Any, shared: int = 0, name: str | None = None
    ) -> KernelForm:
        """Return what makes calls of a CUDA kernel faster than `kernel`: `form(grid, *arguments)` is one.

        Args:
            kernel: a `cupy.RawKernel`.
            block: one to three sizes.
            kinds: of the arguments: `read`, `write` or `update` for an array on the GPU, and a scalar type of NumPy
                for a number.
            shared: dynamic shared memory of a block [bytes].
            name: of the calls; None for that of the kernel.

        Raises:
            TypeError: a kind is none of these.
        """
        uses = [kind.args[0] if isinstance(kind, partial) and kind.func is Access else kind for kind in kinds]
        with self._current():
            launch = CudaLaunch.from_kernel(kernel, (1,), block, (), shared, gpu=self._gpu)
        return KernelForm(launch, name or str(kernel.name), uses, self._places, self._segments.everything)

    def _place_of(self, array: Any) -> tuple[int, int]:
        start, nbytes = bytes_of(array)
        return address_of(array), self._segments.register_range("array", start, max(1, nbytes))

    def on_host(
        self, function: Callable[..., Any], *arguments: Any, name: str | None = None, addresses: Addresses | None = None
    ) -> KernelCall:
        """Return a call of a function on the host with these arguments; see `kernel`."""
        values = [argument.array if isinstance(argument, Access) else argument for argument in arguments]
        launch = PythonLaunch(partial(function, *values))
        return self._call(name or _name_of(function), launch, arguments, addresses)

    def function(
        self,
        function: Callable[[], Any],
        reads: Iterable[Any] = (),
        writes: Iterable[Any] = (),
        updates: Iterable[Any] = (),
        name: str | None = None,
    ) -> KernelCall:
        """Return a call of a function that issues work to the current stream, as those of CuPy and PyTorch do.

        It must allocate nothing that other calls use, so give such functions their outputs. If it says nothing of what
        it touches, it touches everything.
        """
        accesses = [*map(read, reads), *map(write, writes), *map(update, updates)]
        return self._call(name or _name_of(function), StreamLaunch(function, self._gpu), accesses, None)

    def copy(self, target: Any, source: Any, name: str = "copy") -> KernelCall:
        """Return a call that copies the bytes of an array to another, within a GPU or host, or between them.

        Raises:
            ValueError: the arrays differ in size, or one has gaps.
        """
        (to, nbytes), (start, size) = bytes_of(target), bytes_of(source)
        if nbytes != size or nbytes != target.nbytes or size != source.nbytes:
            raise ValueError(
                f"copy from {size} bytes to {nbytes} bytes; give arrays of the same size, whose elements have no gaps"
            )
        launch: Launch
        if on_device(target) or on_device(source):
            launch = _DeviceCopy(to, start, nbytes, self._gpu)
        else:
            launch = PythonLaunch(partial(_move, to, start, nbytes))
        return self._call(name, launch, [write(target), read(source)], None)

    def _call(self, name: str, launch: Launch, arguments: Sequence[Any], addresses: Addresses | None) -> KernelCall:
        found: dict[str, list[int]] = {"reads": [], "writes": [], "updates": []}
        if addresses is not None:
            values = (argument.array if isinstance(argument, Access) else argument for argument in arguments)
            reads, writes = addresses(*values)
            found["reads"], found["writes"] = ([self.segment(place) for place in places] for places in (reads, writes))
        else:
            for argument in arguments:
                if isinstance(argument, Access):
                    found[argument.how].append(self.segment(argument.array))
                elif is_array(argument):
                    found["updates"].append(self.segment(argument))
        if not any(found.values()):
            found["updates"].append(self._segments.everything())
        return KernelCall(name, launch, tuple(found["reads"]), tuple(found["writes"]), tuple(found["updates"]))


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", "function"))


def _move(target: int, source: int, nbytes: int) -> None:
    ctypes.memmove(target, source, nbytes)


class _DeviceCopy:
    """An asynchronous copy, to or from a GPU or within one."""

    __slots__ = ("_place", "gpu")

    in_graphs = False

    def __init__(self, target: int, source: int, nbytes: int, gpu: int | None) -> None:
        self._place = target, source, nbytes
        self.gpu = gpu

    def issue(self, stream: int) -> None:
        """Start the copy on a stream handle."""
        from cupy.cuda import runtime

        runtime.memcpyAsync(*self._place, runtime.memcpyDefault, stream)
