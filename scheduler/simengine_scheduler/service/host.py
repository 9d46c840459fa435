"""The service on the host: anonymous shared memory, and kernels from shared libraries.

Memory has no name that could remain after a crash. Its file descriptor travels through the socket, and the memory is
freed with the last process that maps it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..core.calls import Launch
from ..launch.arguments import Buffer, BufferSet
from ..launch.host import HostLaunch, PythonLaunch
from .channel import Message, take
from .memory import Block
from .wire import CallMessage


class HostBlock:
    """Shared memory of the owner, zeroed."""

    def __init__(self, nbytes: int) -> None:
        self.descriptor: int | None = _anonymous_file(nbytes)
        self._map: mmap.mmap | None = mmap.mmap(self.descriptor, nbytes)
        self.bytes: Any = np.frombuffer(self._map, np.uint8)
        self.ptr = int(self.bytes.ctypes.data)

    def describe(self) -> Message:
        """Return what a client needs beside the file descriptor: nothing."""
        return {}

    def free(self) -> None:
        """Free the memory. Its pages stay as long as a client maps them."""
        self.bytes = self._map = None
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


def _anonymous_file(nbytes: int) -> int:
    if not hasattr(os, "memfd_create"):
        with tempfile.TemporaryFile() as file:
            file.truncate(nbytes)
            return os.dup(file.fileno())
    import fcntl  # not on every system, but wherever memfd_create is

    descriptor = os.memfd_create("scheduler", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, nbytes)
    # If a client could shrink the file, the next access would kill the owner.
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return descriptor


def map_array(descriptor: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return, in a client, the array in memory whose file descriptor has come. The array keeps the memory alive."""
    try:
        shared = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)
    return np.ndarray(shape, dtype, buffer=shared)


class HostKernels:
    """Loads functions of shared libraries, and offers Python functions of the owner by name."""

    memory = "host"

    def __init__(self, functions: Mapping[str, Callable[..., None]]) -> None:
        self._functions = functions

    def thread(self) -> AbstractContextManager[Any]:
        """Return a scope that does nothing."""
        return nullcontext()

    def allocate(self, nbytes: int) -> Block:
        """Return new memory, zeroed."""
        return HostBlock(nbytes)

    def load(self, message: Message) -> Any:
        """Return what a client asked for. Raises ValueError, or OSError for a library that cannot be loaded."""
        if "function" in message:
            name = take(message, "function", str)
            if name not in self._functions:
                known = ", ".join(sorted(self._functions)) or "none"
                raise ValueError(f"the owner offers no function {name!r}; it offers {known}")
            return _Offered(self._functions[name])
        if "library" not in message:
            raise ValueError("an owner of host memory runs functions of shared libraries; use Client.library")
        path, symbol = take(message, "library", str), take(message, "symbol", str)
        try:
            function = ctypes.CDLL(path)[symbol]
        except AttributeError as error:
            raise ValueError(f"library {path} has no function {symbol!r}") from error
        function.argtypes = [ctypes.POINTER(ctypes.c_uint64)]
        function.restype = None
        if take(message, "status", bool):
            function.restype = ctypes.c_int32
            function.errcheck = _raise_status
        return function

    def launch(
        self, kernel: Any, call: CallMessage, args: Sequence[Any], buffers: BufferSet, arrays: Mapping[str, Any]
    ) -> Launch:
        """Bind a kernel to its arguments. Raises TypeError or ValueError for one that does not fit."""
        if not isinstance(kernel, _Offered):
            return HostLaunch(kernel, args, buffers)
        if any(isinstance(a, tuple) for a in args):
            raise ValueError("a function of the owner takes whole buffers; leave out the offset")
        return PythonLaunch(partial(kernel.function, *(arrays[a.name] if isinstance(a, Buffer) else a for a in args)))


@dataclass(frozen=True, slots=True)
class _Offered:
    """A Python function of the owner."""

    function: Callable[..., None]


def _raise_status(status: Any, function: Any, arguments: Any) -> Any:
    if status != 0:
        raise RuntimeError(f"the kernel reports status {status}")
    return status
