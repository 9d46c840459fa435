"""Launches: bound arguments that reach a kernel with as little work a call as Python allows.

Arguments are packed once into 8-byte slots and cached against `BufferSet.epoch`; they are packed again only after a
buffer has moved. An argument is

    int                       int32 (a value outside its range is refused)
    numpy scalar              its own type, e.g. np.float32(0.5); a plain float is refused, its width is unknown
    Buffer, (Buffer, offset)  the buffer's address, plus an offset in bytes
    Number                    int32 that changes only when a buffer moves, such as its capacity
    CuPy array                its address when packed; the launch keeps the array alive
    bytes                     a structure passed by value, over as many slots as it needs
    None                      the null pointer
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, cast

import numpy as np

from .device.body import DeviceTask

_DEFAULT_SHARED_LIMIT = 48 * 1024  # bytes a block may ask for before the function must be told to allow more


class Buffer:
    """A named piece of memory that may move: `ptr` is its address, `nbytes` its size. Made by `BufferSet.add`."""

    __slots__ = ("_owner", "name", "nbytes", "ptr")

    def __init__(self, owner: BufferSet, name: str, ptr: int, nbytes: int) -> None:
        self._owner = owner
        self.name = name
        self.ptr = ptr
        self.nbytes = nbytes

    def rebind(self, ptr: int, nbytes: int) -> None:
        """Move the buffer. Launches issued afterwards use the new address; those already issued keep the old one."""
        self.ptr = ptr
        self.nbytes = nbytes
        self._owner.epoch += 1

    def __repr__(self) -> str:
        return f"Buffer({self.name!r}, {self.ptr:#x}, {self.nbytes} bytes)"


class BufferSet:
    """Buffers that launches share. `epoch` grows with every rebind, and packed arguments are cached against it."""

    def __init__(self) -> None:
        self.epoch = 0
        self._buffers: dict[str, Buffer] = {}

    def add(self, name: str, ptr: int, nbytes: int) -> Buffer:
        """Make a buffer. Raises ValueError if the name is taken."""
        if name in self._buffers:
            raise ValueError(f"buffer {name!r} is already in this set; rebind it or choose another name")
        buffer = self._buffers[name] = Buffer(self, name, ptr, nbytes)
        return buffer

    def __getitem__(self, name: str) -> Buffer:
        return self._buffers[name]

    def __contains__(self, name: str) -> bool:
        return name in self._buffers


class Number:
    """An int32 argument that may change whenever a buffer of the launch's set is rebound: set `value` before that."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value


def _address(buffer: Buffer, offset: int) -> int:
    if offset < 0 or offset > buffer.nbytes:
        raise ValueError(f"offset {offset} lies outside buffer {buffer.name!r} of {buffer.nbytes} bytes")
    return buffer.ptr + offset


def address_of(place: Any) -> int:
    """The address of a buffer, a (buffer, byte offset) pair or a CuPy array."""
    return int(struct.unpack("<Q", _slot(0, place))[0])


def _slot(position: int, argument: Any) -> bytes:
    """Return one argument as 8 bytes, little endian, its value in the low bytes; a structure as a multiple of them."""
    if argument is None:
        return bytes(8)
    if isinstance(argument, Number):
        return _slot(position, argument.value)
    if isinstance(argument, bytes):
        return argument.ljust(-(-max(len(argument), 1) // 8) * 8, b"\0")
    if isinstance(argument, Buffer):
        return struct.pack("<Q", argument.ptr)
    if isinstance(argument, tuple) and len(argument) == 2 and isinstance(argument[0], Buffer):
        return struct.pack("<Q", _address(argument[0], int(argument[1])))
    if isinstance(argument, np.generic) and argument.dtype.kind in "biuf" and argument.dtype.itemsize <= 8:
        return argument.tobytes().ljust(8, b"\0")
    if type(argument) is int:
        if not -(2**31) <= argument < 2**31:
            raise ValueError(
                f"argument {position} is {argument}, beyond int32; pass np.int64({argument}) if the kernel takes it"
            )
        return struct.pack("<ixxxx", argument)
    if hasattr(argument, "__cuda_array_interface__"):
        return struct.pack("<Q", argument.__cuda_array_interface__["data"][0])
    raise TypeError(
        f"argument {position} is a {type(argument).__name__}; pass an int, a numpy scalar such as np.float32(x), "
        f"a Buffer, a (Buffer, byte offset) pair, a CuPy array or None"
    )


class PackedArguments:
    """Argument values in 8-byte slots, and a table of pointers to them; shared by the copies of one launch.

    Packing makes fresh memory each time, never overwrites: a thread that is still running a call reads the old slots.
    """

    __slots__ = ("_bound", "args", "buffers")

    def __init__(self, args: Sequence[Any], buffers: BufferSet) -> None:
        self.args = tuple(args)
        self.buffers = buffers
        self._bound: tuple[int, Any, Any, int] = self._pack()

    def _pack(self) -> tuple[int, Any, Any, int]:
        epoch = (
            self.buffers.epoch
        )  # read before the pointers: a rebind during packing then packs again at the next issue
        parts = [_slot(i, a) for i, a in enumerate(self.args)] or [bytes(8)]
        raw = b"".join(parts)
        slots = (ctypes.c_uint64 * (len(raw) // 8)).from_buffer_copy(raw)
        starts = accumulate(map(len, parts[:-1]), initial=ctypes.addressof(slots))
        table = (ctypes.c_void_p * len(parts))(*starts)
        return epoch, slots, table, ctypes.addressof(table)

    def replaced(self, old: Buffer, new: Any) -> PackedArguments | None:
        """The same with another argument in the place of a buffer; None if that is none of them."""
        args = tuple(new if argument is old else argument for argument in self.args)
        return (
            None if all(a is b for a, b in zip(args, self.args, strict=True)) else PackedArguments(args, self.buffers)
        )

    def words(self) -> np.ndarray:
        """The slots for today's buffers, as a uint64 array."""
        return np.array(self.current()[1], np.uint64)

    def current(self) -> tuple[int, Any, Any, int]:
        """Return (epoch, slots, table of pointers to the slots, the table's address), packed for today's buffers."""
        bound = self._bound
        if bound[0] != self.buffers.epoch:
            bound = self._bound = self._pack()
        return bound


def _three(name: str, size: Sequence[int]) -> tuple[int, int, int]:
    padded = (*size, 1, 1, 1)[:3]
    if not 1 <= len(size) <= 3 or min(padded) < 1:
        raise ValueError(
            f"{name} {tuple(size)} is not one to three positive sizes; a launch without work should not be emitted"
        )
    return padded[0], padded[1], padded[2]


class CudaLaunch:
    """A CUDA kernel bound to grid, block and arguments.

    `function` is a CUfunction handle, `shared` the dynamic shared memory a block [bytes]. `issue` costs about 3 us.
    `task` says how workers of executor `device` run it, if they can.
    """

    __slots__ = ("_allowed", "_dims", "_keepalive", "_launch", "_packed", "block", "function", "grid", "shared", "task")

    def __init__(
        self,
        function: int,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int = 0,
        args: Sequence[Any] = (),
        buffers: BufferSet | None = None,
        task: DeviceTask | None = None,
    ) -> None:
        from cupy.cuda import driver

        self._launch = cast(Callable[..., None], driver.launchKernel)
        self._packed = PackedArguments(args, buffers if buffers is not None else BufferSet())
        self._keepalive: Any = None
        self.task = task
        self.function = int(function)
        self.block = _three("block", block)
        self.shared = int(shared)
        self._allowed = max(self.shared, _DEFAULT_SHARED_LIMIT)  # what copies of this launch may ask for
        attribute = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        # other launches of the function may need more, and rely on what they have been allowed
        if self.shared > max(_DEFAULT_SHARED_LIMIT, driver.funcGetAttribute(attribute, self.function)):
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
    ) -> CudaLaunch:
        """Bind a `cupy.RawKernel`; the launch keeps it alive."""
        launch = cls(kernel.kernel.ptr, grid, block, shared, args, buffers, task)
        launch._keepalive = kernel
        return launch

    @property
    def buffers(self) -> BufferSet:
        """The set whose epoch tells when arguments must be packed again."""
        return self._packed.buffers

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments, as they were given."""
        return self._packed.args

    def node(self) -> tuple[int, tuple[int, int, int], tuple[int, int, int], int, int]:
        """What a graph's node needs: function, grid, block, shared bytes, address of the table of packed arguments."""
        return self.function, self.grid, self.block, self.shared, self._packed.current()[3]

    def resources(self) -> tuple[int, int]:
        """Registers a thread and static shared memory a block [bytes] of the compiled function."""
        from cupy.cuda import driver

        numbers = driver.CU_FUNC_ATTRIBUTE_NUM_REGS, driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
        registers, shared = (int(driver.funcGetAttribute(number, self.function)) for number in numbers)
        return registers, shared

    def packed_arguments(self) -> np.ndarray:
        """The arguments as 8-byte words."""
        return self._packed.words()

    def _set_grid(self, grid: Sequence[int]) -> None:
        self.grid = _three("grid", grid)
        self._dims = (self.function, *self.grid, *self.block, self.shared)

    def with_grid(self, grid: Sequence[int]) -> CudaLaunch:
        """Return a launch of another grid that shares the packed arguments."""
        return self.with_shape(grid, self.block, self.shared)

    def with_shape(
        self, grid: Sequence[int], block: Sequence[int], shared: int, task: DeviceTask | None = None
    ) -> CudaLaunch:
        """Return a launch of another grid, block and shared memory [bytes] that shares the packed arguments.

        `shared` is at most that of the launch first made, which has told the function how much to allow. `task` must
        fit the new shape.
        """
        if shared > self._allowed:
            raise ValueError(
                f"with_shape asks for {shared} bytes of shared memory where the launch was made for {self._allowed}"
            )
        return self._copy(grid, block, shared, task)

    def with_argument(self, old: Buffer, new: Any) -> CudaLaunch:
        """Return the launch with another argument in the place of a buffer; itself if that is none of its arguments."""
        packed = self._packed.replaced(old, new)
        if packed is None:
            return self
        copy = self._copy(self.grid, self.block, self.shared, self.task)
        copy._packed = packed
        return copy

    def _copy(self, grid: Sequence[int], block: Sequence[int], shared: int, task: DeviceTask | None) -> CudaLaunch:
        copy = object.__new__(CudaLaunch)
        for name in ("_allowed", "_launch", "_packed", "_keepalive", "function"):
            setattr(copy, name, getattr(self, name))
        copy.task = task
        copy.block = _three("block", block)
        copy.shared = int(shared)
        copy._set_grid(grid)
        return copy

    def issue(self, stream: int) -> None:
        """Start the kernel on a stream handle. CUDA copies the arguments before this returns."""
        packed = self._packed
        bound = packed._bound
        if bound[0] != packed.buffers.epoch:
            bound = packed.current()
        self._launch(*self._dims, stream, bound[3], 0)


class HostLaunch:
    """A compiled host function bound to its arguments.

    `function` is a ctypes foreign function taking one pointer, to an array of 8-byte slots: pointers as uint64, int32,
    float32 and float64 in the low bytes, little endian. ctypes releases the interpreter lock while it runs.
    """

    __slots__ = ("_packed", "function")

    def __init__(
        self, function: Callable[[Any], Any], args: Sequence[Any] = (), buffers: BufferSet | None = None
    ) -> None:
        self.function = function
        self._packed = PackedArguments(args, buffers if buffers is not None else BufferSet())

    def with_argument(self, old: Buffer, new: Any) -> HostLaunch:
        """Return the launch with another argument in the place of a buffer; itself if that is none of its arguments."""
        packed = self._packed.replaced(old, new)
        if packed is None:
            return self
        copy = HostLaunch(self.function, (), self.buffers)
        copy._packed = packed
        return copy

    def slots(self) -> Any:
        """The arguments, packed for today's buffers, as a ctypes array."""
        return self._packed.current()[1]

    @property
    def buffers(self) -> BufferSet:
        """The set whose epoch tells when arguments must be packed again."""
        return self._packed.buffers

    def packed_arguments(self) -> np.ndarray:
        """The arguments as 8-byte words."""
        return self._packed.words()

    def issue(self, stream: int) -> None:
        """Run the function to its end; the stream is not used."""
        self.function(self._packed.current()[1])


class PythonLaunch:
    """A Python callable as a kernel: for tests and for work that lives on the host."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[], None]) -> None:
        self.function = function

    def issue(self, stream: int) -> None:
        """Run the callable to its end; the stream is not used."""
        self.function()
