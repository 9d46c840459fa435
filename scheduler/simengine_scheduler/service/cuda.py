"""The service on a GPU: memory of the owner, which clients open through CUDA IPC, and kernels.

Every buffer is an allocation of its own, of whole 2 MiB pages. CUDA shares the pages of an allocation as a whole, and
no page may hold memory of another client.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ..core.calls import Launch
from ..cuda.driver import is_cuda_fault
from ..launch.arguments import BufferSet
from ..launch.cuda import CudaLaunch
from .channel import Message, take
from .memory import Block
from .wire import CallMessage

_PAGE = 2 << 20


class CudaBlock:
    """Device memory of the owner, zeroed."""

    descriptor: int | None = None

    def __init__(self, nbytes: int) -> None:
        from cupy.cuda import runtime

        self._runtime: Any = runtime
        size = -(-nbytes // _PAGE) * _PAGE
        self.ptr = int(runtime.malloc(size))
        runtime.memset(self.ptr, 0, size)
        runtime.streamSynchronize(0)
        self._handle: bytes = runtime.ipcGetMemHandle(self.ptr)

    def describe(self) -> Message:
        """Return what a client needs to open the memory."""
        return {"handle": self._handle.hex()}

    def free(self) -> None:
        """Free the memory. Waits for the device."""
        ptr, self.ptr = self.ptr, 0
        if ptr:
            try:
                self._runtime.free(ptr)
            except self._runtime.CUDARuntimeError as error:
                if not is_cuda_fault(error):  # the memory of a lost context is gone
                    raise


class _Opened:
    """In a client: a mapping of memory of the owner, which is closed with the last array on it."""

    def __init__(self, handle: bytes) -> None:
        from cupy.cuda import runtime

        self._runtime: Any = runtime
        self.ptr = int(runtime.ipcOpenMemHandle(handle))

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at the end of the interpreter CUDA may have ended before
            self._runtime.ipcCloseMemHandle(self.ptr)


def open_array(message: Message, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return, in a client, the CuPy array in memory that the owner has described."""
    import cupy

    opened = _Opened(bytes.fromhex(take(message, "handle", str)))
    size = max(1, int(np.prod(shape))) * dtype.itemsize
    memory = cupy.cuda.UnownedMemory(opened.ptr, size, opened)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))


def finish_current_stream() -> None:
    """Wait, in a client, for its current stream, so that kernels of the owner come after that work."""
    import cupy

    cupy.cuda.get_current_stream().synchronize()


class CudaKernels:
    """Compiles source and loads cubins on the owner's device."""

    memory = "cuda"

    def __init__(self) -> None:
        import cupy

        self._cupy: Any = cupy
        self._device = int(cupy.cuda.runtime.getDevice())

    def thread(self) -> AbstractContextManager[Any]:
        """Return a scope in which the owner's device is the current one."""
        device: AbstractContextManager[Any] = self._cupy.cuda.Device(self._device)
        return device

    def allocate(self, nbytes: int) -> Block:
        """Return new memory, zeroed."""
        return CudaBlock(nbytes)

    def load(self, message: Message) -> Any:
        """Return the kernel that a client asked for. Raises ValueError for one that does not compile or load."""
        options = tuple(take(message, "options", list)) if "options" in message else ()
        if "source" in message:
            module: dict[str, Any] = {"code": take(message, "source", str), "options": options}
        elif "cubin" in message:
            module = {"path": take(message, "cubin", str)}
        else:
            raise ValueError("an owner of a GPU runs CUDA kernels; use Client.cuda or Client.cubin")
        name = take(message, "symbol", str)
        try:
            kernel = self._cupy.RawModule(**module).get_function(name)
            _ = kernel.attributes  # loads the kernel here rather than at its first launch
        except Exception as error:
            raise ValueError(f"kernel {name!r} cannot be loaded: {error}") from error
        return kernel

    def launch(
        self, kernel: Any, call: CallMessage, args: Sequence[Any], buffers: BufferSet, arrays: Mapping[str, Any]
    ) -> Launch:
        """Bind a kernel to grid, block and arguments. Raises TypeError or ValueError for one that does not fit."""
        if not call.grid or not call.block:
            raise ValueError("a CUDA kernel needs grid and block")
        return CudaLaunch.from_kernel(kernel, call.grid, call.block, args, call.shared, buffers)
