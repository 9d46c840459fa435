"""Executor `device` on host threads: the same protocol, built by a C++ compiler, for tests without a GPU.

A block is one thread of the host. The protocol can thus run under the sanitizers of the compiler.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..core.calls import Emitter, FixedList
from ..device.book import Memory
from ..device.occupancy import Multiprocessors
from ..device.sessions import Session, State
from ..device.workers import Kind, Worker, just_these
from ..executors.base import Options
from ..executors.device import DeviceExecutor
from ..launch.tasks import DeviceBody, DeviceTask
from ..tracing.trace import Trace

_HERE = Path(__file__).parents[1] / "device"
BODY = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint64), ctypes.c_int, ctypes.c_void_p)


@cache
def build(flags: tuple[str, ...] = ()) -> Path:
    """Compile the protocol for the host. Returns the library. Raises RuntimeError if there is no compiler."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise RuntimeError("the device protocol on the host needs a C++ compiler; install g++ or clang++, or set CXX")
    out = Path(tempfile.mkdtemp(prefix="device_protocol_")) / "worker_host.so"
    command = [compiler, "-std=c++17", "-O2", "-shared", "-fPIC", "-pthread", *flags]
    subprocess.run([*command, str(_HERE / "worker_host.cpp"), "-o", str(out)], check=True)
    return out


class PythonBody:
    """A launch whose tiles are calls of a Python function with the number of the tile."""

    def __init__(self, function: Callable[[int], None], tiles: int = 1, **task: Any) -> None:
        self.function = function
        self._callback = BODY(lambda arguments, tile, memory: function(tile))
        address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        kind = {name: task.pop(name) for name in ("threads", "registers") if name in task}
        self.task = DeviceTask(DeviceBody(f"python_{id(self)}", address=address, **kind), tiles, **task)

    def issue(self, stream: int) -> None:
        """Run all tiles, one after another."""
        for tile in range(self.task.tiles):
            self.function(tile)

    def packed_arguments(self) -> np.ndarray:
        """Return no words: the function takes the number of the tile only."""
        return np.zeros(0, np.uint64)


class HostMemory:
    """Memory of the host as memory of a device."""

    def __init__(self) -> None:
        self._blocks: list[np.ndarray] = []

    def zeros(self, nbytes: int) -> int:
        """Return the address of new memory that begins at a cache line."""
        block = np.zeros(nbytes + 128, np.uint8)
        self._blocks.append(block)
        return int(block.ctypes.data) + -block.ctypes.data % 128

    def write(self, address: int, array: np.ndarray) -> None:
        """Copy an array."""
        array = np.ascontiguousarray(array)
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def read(self, address: int, nbytes: int) -> np.ndarray:
        """Return a copy of bytes."""
        return np.frombuffer(ctypes.string_at(address, nbytes), np.uint8)


class _Run:
    """The scope of a run."""

    def __init__(self) -> None:
        self.latest: Any = None
        self.feeder: Any = None


class HostMachine:
    """Threads as blocks.

    Args:
        workers: threads of each resource class; a grid may ask for more.
        library: what `build` returned.
    """

    def __init__(self, workers: int, library: Path | None = None) -> None:
        self.multiprocessors = Multiprocessors(number=workers)
        self._workers = workers
        self._library = ctypes.CDLL(str(library or build()))
        self._library.start_session.restype = ctypes.c_void_p
        self._prepared: dict[int, tuple[Any, ...]] = {}
        self._states: dict[int, tuple[int, int]] = {}
        self._running: int | None = None

    def workers_of(self, wanted: dict[Kind, frozenset[DeviceBody]]) -> dict[Kind, Worker]:
        """Return workers of these bodies."""
        return just_these(wanted)

    def memory(self) -> Memory:
        """Return memory of the host."""
        return HostMemory()

    def visible(self, count: int) -> np.ndarray:
        """Return an array."""
        return np.zeros(count, np.int32)

    def prepare(self, session: Session, state: State) -> int:
        """Return a number for the arguments of `start_session`."""
        tables = [(ctypes.c_void_p * len(of.bodies))(*(body.address for body in of.bodies)) for of in session.classes]
        bodies = (ctypes.c_void_p * len(tables))(*(ctypes.addressof(table) for table in tables))
        blocks = (min(self._workers + session.merged, of.blocks) for of in session.classes)
        grids = (ctypes.c_int * len(tables))(*blocks)
        lists = (type(session.structs[0]) * len(tables))(*session.structs)
        most = max(of.memory for of in session.classes)
        handle = 1 + len(self._states)
        self._prepared[handle] = (
            *(lists, grids, len(tables), bodies, most, session.window_memory, int(session.merged)),
            tables,  # kept alive
        )
        self._states[handle] = state.start, state.size(1 + max(of.number for of in session.classes))
        return handle

    def drop(self, handle: int) -> None:
        """Forget a handle."""
        self._join()
        del self._prepared[handle]

    @contextmanager
    def run(self) -> Iterator[_Run]:
        """Close the emitters at the end."""
        run = _Run()
        try:
            yield run
        finally:
            if run.feeder is not None:
                run.feeder.close()

    def start(self, handle: int) -> None:
        """Wait for the session before, and start threads."""
        self._join()
        address, nbytes = self._states[handle]
        ctypes.memset(address, 0, nbytes)
        self._running = self._library.start_session(*self._prepared[handle][:-1])

    def _join(self) -> None:
        if self._running is not None:
            self._library.end_session(ctypes.c_void_p(self._running))
            self._running = None

    def is_running(self) -> bool:
        """Ask the threads. Once they have ended, they are joined."""
        if self._running is not None and not self._library.is_running(ctypes.c_void_p(self._running)):
            self._join()
        return self._running is not None

    def synchronize(self) -> None:
        """Return at once: sessions are all there is."""

    def close(self) -> None:
        """Wait for the threads."""
        self._join()


class ThreadedDevice(DeviceExecutor):
    """Executor `device` on host threads. A run has ended when it returns.

    Args:
        options: as for executor `device`.
        workers: threads of each resource class.
        library: what `build` returned.
    """

    def __init__(self, options: Options, workers: int = 2, library: Path | None = None) -> None:
        super().__init__(options, HostMachine(workers, library))

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Run every call of every emitter."""
        trace = super().run(emitters)
        self.synchronize()
        return trace

    def repeat(self, lists: Sequence[FixedList], times: int) -> Trace:
        """Run fixed lists several times in a row."""
        trace = super().repeat(lists, times)
        self.synchronize()
        return trace
