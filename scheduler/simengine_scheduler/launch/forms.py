"""Forms of kernels: calls that differ only in grid and arguments are made in 1 to 2 us.

    move = calls.form(kernel, (128,), np.int32, read, update)
    yield move((n // 128,), n, rate, x)

What all calls have in common is worked out once. A call then packs its arguments into memory that many calls share, and
takes the segments of its arrays from a table, which knows each array that it has seen as long as the array lives.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from ..core.calls import KernelCall
from .arguments import Buffer
from .cuda import CudaLaunch, three_sizes

_CALLS_TOGETHER = 256  # whose arguments share one piece of memory
_FORMATS = {"b": "?", "i": " bh i   q", "u": " BH I   Q", "f": "  e f   d"}  # by kind, at the number of bytes
_READ, _WRITE, _UPDATE = range(3)
_USES = {"reads": _READ, "writes": _WRITE, "updates": _UPDATE}


class Places:
    """Addresses and segments of arrays, by identity. An array is forgotten when it dies.

    Args:
        segment_of: returns the address and the segment of an array.
    """

    def __init__(self, segment_of: Callable[[Any], tuple[int, int]]) -> None:
        self._segment_of = segment_of
        self.known: dict[int, tuple[Any, int, int]] = {}

    def add(self, array: Any) -> tuple[Any, int, int]:
        """Return what keeps the entry of an array valid, its address and its segment.

        Raises TypeError if it is no array of a GPU, or a buffer, which may move.
        """
        if isinstance(array, Buffer):
            raise TypeError(f"a form cannot take buffer {array.name!r}, which may move; make the call by Calls.kernel")
        address, segment = self._segment_of(array)
        known, key = self.known, id(array)

        def forget(_: Any) -> None:
            known.pop(key, None)

        try:
            keeps: Any = ref(array, forget)
        except TypeError:
            keeps = array
        entry = known[key] = keeps, address, segment
        return entry


class FormLaunch:
    """A launch of a form: a CUDA kernel with a grid and packed arguments."""

    __slots__ = ("_alive", "_at", "_form", "grid")

    buffers = None
    task = None

    def __init__(self, form: KernelForm, grid: tuple[int, int, int], at: int, alive: Any) -> None:
        self._form = form
        self.grid = grid
        self._at = at
        self._alive = alive  # the arrays, and the memory of the packed arguments

    @property
    def gpu(self) -> int | None:
        """Number of the GPU, for an executor with several."""
        return self._form.launch.gpu

    @property
    def function(self) -> int:
        """The CUfunction handle."""
        return self._form.launch.function

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a block."""
        return self._form.launch.block

    @property
    def shared(self) -> int:
        """Dynamic shared memory of a block [bytes]."""
        return self._form.launch.shared

    def resources(self) -> tuple[int, int]:
        """Return the registers of a thread and the static shared memory of a block [bytes] of the compiled function."""
        return self._form.launch.resources()

    def node(self) -> tuple[int, tuple[int, int, int], tuple[int, int, int], int, int]:
        """Return what a node of a graph needs: function, grid, block, shared memory, table of arguments."""
        launch = self._form.launch
        return launch.function, self.grid, launch.block, launch.shared, self._at

    def issue(self, stream: int) -> None:
        """Start the kernel on a stream handle. CUDA copies the arguments before this returns."""
        self._form.issue(self.grid, stream, self._at)


class KernelForm:
    """Makes calls of one kernel; `Calls.form` returns it.

    Args:
        launch: says all but the grid and the arguments.
        name: of the calls.
        kinds: of the arguments: the name of a use of an array, or a scalar type of NumPy; int is int32.
        places: addresses and segments of arrays.
        everything: returns the segment of calls that say nothing of what they touch.

    Raises:
        TypeError: a kind is none of these.
    """

    def __init__(
        self, launch: CudaLaunch, name: str, kinds: Sequence[Any], places: Places, everything: Callable[[], int]
    ) -> None:
        self.launch = launch
        self.name = name
        self.issue = launch.issue_with
        self._places = places
        self._uses = [(i, _USES[kind]) for i, kind in enumerate(kinds) if isinstance(kind, str)]
        self._everything = everything
        self._kinds = [kind if isinstance(kind, str) else np.dtype(np.int32 if kind is int else kind) for kind in kinds]
        self._packing = struct.Struct("<" + "".join(map(_format_of, self._kinds)))
        self._pack = self._packing.pack_into
        self._slots = max(1, len(kinds))
        self._grids: dict[Sequence[int], tuple[int, int, int]] = {}
        self._memory = bytearray()
        self._base = self._next = self._end = 0

    def __call__(self, grid: Sequence[int], *arguments: Any) -> KernelCall:
        """Return a call of the kernel.

        Args:
            grid: one to three sizes.
            arguments: as many as the form has kinds. An array must keep its memory as long as it lives.

        Raises:
            TypeError: another number of arguments, or no array where one belongs.
            ValueError: a number is beyond its type.
        """
        values, segments, known = list(arguments), ([], [], []), self._places.known  # type: ignore[var-annotated]
        if len(values) != len(self._kinds):
            raise TypeError(f"a call of {self.name} takes {len(self._kinds)} arguments, not {len(values)}")
        for i, use in self._uses:
            array = values[i]
            place = known.get(id(array)) or self._places.add(array)
            values[i] = place[1]
            segments[use].append(place[2])
        at = self._next
        if at == self._end:
            at = self._take_memory()
        try:
            self._pack(self._memory, at, *values)
        except struct.error as error:
            raise ValueError(f"{arguments} are no arguments of {self.name}: {error}") from None
        self._next = at + 16 * self._slots
        sizes = self._grids.get(tuple(grid)) or self._three(grid)
        launch = FormLaunch(self, sizes, self._base + at + 8 * self._slots, (arguments, self._memory))
        reads, writes, updates = segments
        if not self._uses:
            updates = [self._everything()]
        return KernelCall(self.name, launch, tuple(reads), tuple(writes), tuple(updates))

    def _three(self, grid: Sequence[int]) -> tuple[int, int, int]:
        if len(self._grids) == _CALLS_TOGETHER:
            self._grids.clear()
        sizes = self._grids[tuple(grid)] = three_sizes("grid", grid)
        return sizes

    def _take_memory(self) -> int:
        """Take memory for the next calls: of each the slots of its arguments, and a table of pointers to them."""
        slots = self._slots
        self._memory = bytearray(16 * slots * _CALLS_TOGETHER)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        words = np.frombuffer(self._memory, np.uint64).reshape(_CALLS_TOGETHER, 2, slots)
        starts = self._base + 16 * slots * np.arange(_CALLS_TOGETHER, dtype=np.uint64)
        words[:, 1] = starts[:, None] + 8 * np.arange(slots, dtype=np.uint64)
        self._end = len(self._memory)
        return 0


def _format_of(kind: Any) -> str:
    """Return how a kind is packed, in 8 bytes."""
    if isinstance(kind, str):
        return "Q"
    formats = _FORMATS.get(kind.kind, "").ljust(9)
    code = formats[0] if kind.kind == "b" else formats[kind.itemsize] if kind.itemsize <= 8 else " "
    if code == " ":
        raise TypeError(f"a form takes no {kind} by value; give read, write, update or a scalar type of NumPy")
    return f"{code}{8 - kind.itemsize}x"
