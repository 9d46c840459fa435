"""Launches of functions on the host, compiled or in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .arguments import Buffer, BufferSet, PackedArguments


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
