"""Launches of functions on the host, compiled or in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .arguments import Buffer, BufferSet, PackedArguments


class HostLaunch:
    """A compiled host function bound to its arguments.

    ctypes releases the interpreter lock while the function runs.

    Args:
        function: a ctypes foreign function that takes one pointer, to an array of 8-byte slots. A slot holds a pointer
            as uint64, or an int32, float32 or float64 in its low bytes, little endian.
        args: arguments, as `simengine_scheduler.launch.arguments` lists them.
        buffers: the set that the buffers among the arguments belong to.
    """

    __slots__ = ("_packed", "function")

    def __init__(
        self, function: Callable[[Any], Any], args: Sequence[Any] = (), buffers: BufferSet | None = None
    ) -> None:
        self.function = function
        self._packed = PackedArguments(args, buffers if buffers is not None else BufferSet())

    def with_argument(self, old: Buffer, new: Any) -> HostLaunch:
        """Return the launch with another argument instead of a buffer, or itself if the buffer is no argument."""
        packed = self._packed.replaced(old, new)
        if packed is None:
            return self
        copy = HostLaunch(self.function, (), self.buffers)
        copy._packed = packed
        return copy

    def slots(self) -> Any:
        """Return the arguments, packed for the buffers as they are, as a ctypes array."""
        return self._packed.current()[1]

    @property
    def buffers(self) -> BufferSet:
        """The set of buffers whose epoch tells when arguments must be packed again."""
        return self._packed.buffers

    def packed_arguments(self) -> np.ndarray:
        """The arguments as 8-byte words."""
        return self._packed.words()

    def issue(self, stream: int) -> None:
        """Run the function to its end. The stream is not used."""
        self.function(self._packed.current()[1])


class PythonLaunch:
    """A Python callable as a kernel, for tests and for work on the host."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[], None]) -> None:
        self.function = function

    def issue(self, stream: int) -> None:
        """Run the callable to its end. The stream is not used."""
        self.function()
