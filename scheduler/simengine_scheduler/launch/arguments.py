"""Arguments of kernels, packed so that a launch costs as little Python as possible.

Arguments are packed once into 8-byte slots. They are packed again only after a buffer has moved, which
`BufferSet.moves` tells. An argument is

    int                       int32 (a value outside its range is refused)
    numpy scalar              its own type, e.g. np.float32(0.5); a plain float is refused, because its width is unknown
    Buffer, (Buffer, offset)  the buffer's address, plus an offset in bytes
    Number                    int32 that changes only when a buffer moves, such as the buffer's capacity
    Scalar                    a number that may change before any run; nothing is packed again for it
    CuPy array                its address when it is packed; the launch keeps the array alive
    bytes                     a structure passed by value, over as many slots as it needs
    None                      the null pointer
"""

from __future__ import annotations

import ctypes
import struct
import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np


class Buffer:
    """A named piece of memory that may move. `BufferSet.add` makes it.

    Attributes:
        name: in its set.
        ptr: address.
        nbytes: size [bytes].
    """

    __slots__ = ("_owner", "name", "nbytes", "ptr")

    def __init__(self, owner: BufferSet, name: str, ptr: int, nbytes: int) -> None:
        self._owner = owner
        self.name = name
        self.ptr = ptr
        self.nbytes = nbytes

    def rebind(self, ptr: int, nbytes: int) -> None:
        """Move the buffer. Launches issued afterwards use the new address; launches issued before keep the old one.

        Await calls that use the old memory first. A call that still waits in an executor's window is issued later.
        """
        self.ptr = ptr
        self.nbytes = nbytes
        self._owner.note_move()

    def __repr__(self) -> str:
        return f"Buffer({self.name!r}, {self.ptr:#x}, {self.nbytes} bytes)"


class BufferSet:
    """Buffers and scalars that launches share.

    Attributes:
        moves: grows whenever a buffer moves. Packed arguments are valid until then: scalars are read where they are.
        scalars: how often a scalar has changed.
        changes: how often a buffer has moved or a scalar has changed in any set of the process. Who has many sets looks
            at them only if this has grown.
    """

    changes = 0

    def __init__(self) -> None:
        self.moves = 0
        self.scalars = 0
        self._buffers: dict[str, Buffer] = {}

    def add(self, name: str, ptr: int, nbytes: int) -> Buffer:
        """Make a buffer. Raises ValueError if the name is taken."""
        if name in self._buffers:
            raise ValueError(f"buffer {name!r} is already in this set; rebind it or choose another name")
        buffer = self._buffers[name] = Buffer(self, name, ptr, nbytes)
        return buffer

    def note_move(self) -> None:
        """Note that a buffer has moved."""
        self.moves += 1
        BufferSet.changes += 1

    def note_scalar(self) -> None:
        """Note that a scalar has changed."""
        self.scalars += 1
        BufferSet.changes += 1

    @property
    def epoch(self) -> int:
        """Grows whenever a buffer moves or a scalar changes, so that copies of arguments are made again."""
        return self.moves + self.scalars

    def scalar(self, value: np.generic | int) -> Scalar:
        """Make a scalar of the type of its value. An int is an int32."""
        return Scalar(self, value)

    def __getitem__(self, name: str) -> Buffer:
        return self._buffers[name]

    def __contains__(self, name: str) -> bool:
        return name in self._buffers


class Number:
    """An int32 argument that may change when a buffer of its set moves. Set `value` before the buffer moves."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value


class Scalar:
    """A number that a program may change before any run. `BufferSet.scalar` makes it.

    A launch reads it when it is issued. What keeps copies of arguments, such as a graph, finds out by the set's epoch.
    """

    __slots__ = ("_cell", "_owner", "address")

    def __init__(self, owner: BufferSet, value: np.generic | int) -> None:
        typed = value if isinstance(value, np.generic) else np.int32(value)
        self._owner = owner
        self._cell = np.zeros(8 // typed.dtype.itemsize, typed.dtype)
        self._cell[0] = typed
        self.address = self._cell.ctypes.data

    @property
    def value(self) -> np.generic:
        """The number. Assign to change it, between runs only."""
        found: np.generic = self._cell[0]
        return found

    @value.setter
    def value(self, value: np.generic | float) -> None:
        self._cell[0] = value
        self._owner.note_scalar()


def _address(buffer: Buffer, offset: int) -> int:
    if offset < 0 or offset > buffer.nbytes:
        raise ValueError(f"offset {offset} lies outside buffer {buffer.name!r} of {buffer.nbytes} bytes")
    return buffer.ptr + offset


def address_of(place: Any) -> int:
    """Return the address of a buffer, a (buffer, byte offset) pair or a CuPy array."""
    return int(struct.unpack("<Q", _slot(0, place))[0])


def _int32(position: int, argument: int) -> bytes:
    if not -(2**31) <= argument < 2**31:
        raise ValueError(
            f"argument {position} is {argument}, beyond int32; pass np.int64({argument}) if the kernel takes it"
        )
    return _INT32.pack(argument)


def _array(position: int, argument: Any) -> bytes:
    """The address of an array of CuPy, or of another library with the same interface."""
    cupy = sys.modules.get("cupy")
    known = cupy is not None and type(argument) is cupy.ndarray  # whose interface takes ten times as long to ask
    return _WORD.pack(argument.data.ptr if known else argument.__cuda_array_interface__["data"][0])


_INT32, _WORD = struct.Struct("<ixxxx"), struct.Struct("<Q")
_NUMBERS = [t for t in np.sctypeDict.values() if np.dtype(t).kind in "biuf" and np.dtype(t).itemsize <= 8]
_BY_TYPE: dict[type, Callable[[int, Any], bytes]] = {
    type(None): lambda position, argument: bytes(8),
    int: _int32,
    bytes: lambda position, argument: argument.ljust(-(-max(len(argument), 1) // 8) * 8, b"\0"),
    Buffer: lambda position, argument: _WORD.pack(argument.ptr),
    Number: lambda position, argument: _slot(position, argument.value),
    Scalar: lambda position, argument: _slot(position, argument.value),
    **dict.fromkeys(_NUMBERS, lambda position, argument: argument.tobytes().ljust(8, b"\0")),
}


def _slot(position: int, argument: Any) -> bytes:
    """Return one argument as 8 bytes, little endian, with its value in the low bytes. A structure takes more slots."""
    pack = _BY_TYPE.get(type(argument))
    if pack is not None:
        return pack(position, argument)
    if hasattr(argument, "__cuda_array_interface__"):
        return _array(position, argument)
    if isinstance(argument, tuple) and len(argument) == 2 and isinstance(argument[0], Buffer):
        return _WORD.pack(_address(argument[0], int(argument[1])))
    raise TypeError(
        f"argument {position} is a {type(argument).__name__}; pass an int, a numpy scalar such as np.float32(x), "
        f"a Buffer, a (Buffer, byte offset) pair, a CuPy array or None"
    )


class PackedArguments:
    """Argument values in 8-byte slots, and a table of pointers to them. Copies of a launch share them.

    Packing makes new memory each time and overwrites nothing, because a thread that runs a call reads the old slots.
    """

    __slots__ = ("_bound", "_scalars", "_starts", "args", "buffers")

    def __init__(self, args: Sequence[Any], buffers: BufferSet) -> None:
        self.args = tuple(args)
        self.buffers = buffers
        self._scalars = [(i, argument) for i, argument in enumerate(self.args) if isinstance(argument, Scalar)]
        self._bound: tuple[int, Any, Any, int] = self._pack()

    def _pack(self) -> tuple[int, Any, Any, int]:
        moves = (
            self.buffers.moves
        )  # read before the pointers: a rebind during packing then packs again at the next issue
        parts = [_slot(i, a) for i, a in enumerate(self.args)] or [bytes(8)]
        raw = b"".join(parts)
        slots = (ctypes.c_uint64 * (len(raw) // 8)).from_buffer_copy(raw)
        self._starts = list(accumulate(map(len, parts[:-1]), initial=0))  # of the arguments in the slots
        at = ctypes.addressof(slots)
        table = array("Q", [at + start for start in self._starts])
        for i, scalar in self._scalars:
            table[i] = scalar.address
        return moves, slots, table, table.buffer_info()[0]

    def replaced(self, old: Buffer, new: Any) -> PackedArguments | None:
        """Return these arguments with another one instead of a buffer, or None if the buffer is not among them."""
        args = tuple(new if argument is old else argument for argument in self.args)
        return (
            None if all(a is b for a, b in zip(args, self.args, strict=True)) else PackedArguments(args, self.buffers)
        )

    def words(self) -> np.ndarray:
        """Return the slots, packed for buffers and scalars as they are, as a uint64 array."""
        return np.array(self.current()[1], np.uint64)

    def current(self) -> tuple[int, Any, Any, int]:
        """Return (moves, slots, table of pointers to the slots, the table's address), for the buffers as they are."""
        bound = self._bound
        if bound[0] != self.buffers.moves:
            bound = self._bound = self._pack()
        for i, scalar in self._scalars:  # in the slots; the table has the address of the scalar itself
            ctypes.memmove(ctypes.addressof(bound[1]) + self._starts[i], scalar.address, 8)
        return bound
