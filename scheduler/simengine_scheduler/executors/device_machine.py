"""The GPU as a machine for executor `device`: a session is a CUDA graph of a window and its workers.

    reset --> window   finds hazards and admits calls
              worker   of one resource class
              worker   of another resource class; all of them run at once
    or, `merged`: reset --> worker of all bodies, whose first block is the window until all calls are admitted

Sessions of a process follow each other, because two of them could each hold the room that the other needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import ref

import numpy as np

from ..cuda import graph as cuda_graph
from ..cuda.driver import CudaDriver, Driver, EventPool
from ..device.book import Memory
from ..device.occupancy import Multiprocessors
from ..device.programs import CudaPrograms
from ..device.sessions import WINDOW_THREADS, Session, State
from ..device.workers import Kind, Worker
from ..launch.cuda import CudaLaunch
from ..launch.tasks import DeviceBody
from .base import Options
from .cuda import CudaRun, Lanes, release, wait_for

_RESET = (64, 256)  # grid and block of `reset`
_OVERLAPS = 90  # architecture from which kernels of one stream may run together


class _Last:
    """The machine that started a session last in this process."""

    machine: Callable[[], CudaMachine | None] | None = None


_LAST = _Last()


class CudaMachine:
    """The current GPU."""

    def __init__(self, executor: str, options: Options) -> None:
        self._executor = executor
        self._options = options
        self._driver: Driver = options.driver if options.driver is not None else CudaDriver()
        self._programs = of = CudaPrograms(options.keep)
        self.multiprocessors = Multiprocessors(of.multiprocessors, of.registers, of.shared, of.threads, of.blocks)
        self._pool = EventPool(self._driver)
        self._lanes = Lanes(self._driver, 1)
        self._ended = self._pool.take()
        self._started = False
        self._home = 0

    def workers_of(self, wanted: dict[Kind, frozenset[DeviceBody]]) -> dict[Kind, Worker]:
        """Return workers that are linked and loaded."""
        return self._programs.workers_of(wanted)

    def memory(self) -> Memory:
        """Return memory of the device."""
        return self._programs.memory()

    def visible(self, count: int) -> np.ndarray:
        """Return pinned memory, which has the same address on the device."""
        return self._programs.pinned(count)

    def prepare(self, session: Session, state: State) -> int:
        """Build the graph of a session."""
        programs = self._programs
        structs = [bytes(struct) for struct in session.structs]
        reset, window = programs.window()
        workers = [programs.function(of.kind, of.bodies) for of in session.classes]
        programs.reserve([window, *workers], session.shared)
        nbytes = state.size(1 + max(of.number for of in session.classes))
        launches = [CudaLaunch(reset, (_RESET[0],), (_RESET[1],), 0, (np.uint64(state.start), nbytes // 16))]
        if not session.merged:
            launches.append(CudaLaunch(window, (1,), (WINDOW_THREADS,), session.window_memory, (structs[0],)))
        for worker, of, struct in zip(workers, session.classes, structs, strict=True):
            launches.append(CudaLaunch(worker, (of.blocks,), (of.kind.threads,), of.memory, (struct, of.arguments)))
        if programs.arch >= _OVERLAPS:
            return cuda_graph.build_overlapping(launches, ordered=2)
        return self._driver.build_graph(launches, [(), *((0,) for _ in launches[1:])], None)

    def drop(self, handle: int) -> None:
        """Destroy the graph of a session."""
        self._driver.destroy_graph(handle)

    @contextmanager
    def run(self) -> Iterator[CudaRun]:
        """Run on a stream that waits for the home stream, which waits for it afterwards."""
        home = self._home = self._driver.current_stream() if self._options.stream is None else self._options.stream
        with CudaRun(self._executor, self._driver, self._lanes.handles) as run:
            self._lanes.begin(home)
            yield run
            self._lanes.join(home)

    def start(self, handle: int) -> None:
        """Launch a session after that of the executor that started one last."""
        lane = self._lanes.use(0)
        last = _LAST.machine() if _LAST.machine is not None else None
        if last is not None and last is not self and last._started:
            self._driver.wait(lane, last._ended)
        self._driver.launch_graph(handle, lane)
        self._driver.record(self._ended, lane)
        self._started = True
        _LAST.machine = ref(self)

    def is_running(self) -> bool:
        """Ask for the event behind the session."""
        return self._started and not self._driver.query(self._ended)

    def synchronize(self) -> None:
        """Wait for the home stream of the last run."""
        wait_for(self._home, self._executor, self._driver)

    def close(self) -> None:
        """Destroy streams and events."""
        if _LAST.machine is not None and _LAST.machine() is self:
            _LAST.machine = None
        self._started = False
        release(self._pool, self._lanes)
