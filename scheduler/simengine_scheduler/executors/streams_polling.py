"""The streams executor, completion by polling: the software form of ACS (ACS-SW, arXiv 2401.12377).

    emitters --pull--> window of N --ready--> free stream   k
                          ^                   busy stream   k
                          +---event seen complete-----+

Invariants
    1. A call is issued only when its upstream set is empty: everything before it has been seen complete by the host.
    2. One call in flight a stream; a stream is free again when the event behind its call has been seen complete.
    3. No stream ever waits for another, but for the home stream at both ends of a run.

Each dependent call costs a completed query and a launch, where completion by events costs a wait on the device.
The paper gives each stream a host thread; one thread that polls all streams does the same under Python's lock.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from time import perf_counter

from ..core.calls import Emitter, KernelCall
from ..core.emission import Feeder
from ..core.policies import ORDER_POLICIES
from ..core.window import Window
from ..cuda.driver import CudaDriver, Driver, EventPool
from ..tracing.trace import Trace
from .base import Executor, Options, finish_run
from .cuda import CudaRun, Lanes, issue_call, release, wait_for
from .recorder import start_recording


class _Issuer(CudaRun):
    """The state of one run."""

    def __init__(self, executor: PollingExecutor, trace: Trace, home: int) -> None:
        super().__init__(executor.name, executor.driver, executor.lanes.handles)
        options = executor.options
        self.trace = trace
        self.lanes = executor.lanes
        self.pool = executor.pool
        self.choose = ORDER_POLICIES[options.policy]
        self.window = executor.window
        self.free = list(range(options.streams - 1, -1, -1))
        self.flights: list[tuple[int, int, int]] = []  # (seq, stream, event)
        self.home = home

    def start(self) -> None:
        """Put the run behind what the home stream holds."""
        self.recorder = start_recording(self.trace, self.driver, self.home, self.window.following)
        self.lanes.begin(self.home)

    def insert(self, call: KernelCall) -> None:
        """Take a call into the window, and time the hazard check if times are recorded."""
        if self.recorder is not None and self.recorder.times:
            began = perf_counter()
            self.window.insert(call)
            self.trace.counters.check_seconds += perf_counter() - began
        else:
            self.window.insert(call)

    def issue_ready(self) -> None:
        """Issue ready calls while there are free streams."""
        window = self.window
        while window.ready and self.free:
            seq = self.choose(window.ready, window.calls)
            call = self.latest = window.start(seq)
            stream = self.free.pop()
            handle = self.lanes.use(stream)
            issue_call(self, call, seq, handle, stream)
            event = self.pool.take()
            self.driver.record(event, handle)
            self.flights.append((seq, stream, event))

    def poll(self, feeder: Feeder) -> None:
        """Ask once after each call in flight, and complete those that are done."""
        running = []
        for flight in self.flights:
            seq, stream, event = flight
            if not self.driver.query(event):
                running.append(flight)
                continue
            self.window.complete(seq)
            self.pool.give(event)
            self.free.append(stream)
            if self.recorder is not None:
                self.recorder.observe(seq, stream)
            if feeder.waiting:
                feeder.release(seq)
        self.flights = running


class PollingExecutor(Executor):
    """Issues calls to CUDA streams once everything before them has been seen complete."""

    name = "streams"

    def __init__(self, options: Options) -> None:
        self.options = options
        self.window = Window(options.table(self.name), options.window)
        self.driver: Driver = options.driver if options.driver is not None else CudaDriver()
        self.lanes = Lanes(self.driver, options.streams)
        self.pool = EventPool(self.driver)
        self._home = 0
        self._finalizer = weakref.finalize(self, release, self.pool, self.lanes)

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Issue the emitters' calls; on return the home stream waits for all of them."""
        home = self._home = self.driver.current_stream() if self.options.stream is None else self.options.stream
        trace = Trace(self.name, self.options.record)
        self.pool.give_all()
        self.window.clear()
        with _Issuer(self, trace, home) as run:
            window = self.window
            feeder = run.feeder = Feeder(emitters, lambda seq: seq not in window.calls, window.following)
            while True:
                while not window.full and (call := feeder.pull()) is not None:
                    run.insert(call)
                    if run.recorder is not None:
                        run.recorder.enter(call)
                run.issue_ready()
                if not window.calls and not feeder.idle:
                    break
                # With nothing left to pull and nothing pending, streams finish by themselves: no need to watch them.
                if feeder.exhausted and len(run.flights) == len(window):
                    break
                run.poll(feeder)
            self.lanes.join(home)
            if run.recorder is not None and run.recorder.times:
                self.driver.synchronize(home)
            return finish_run(trace, feeder, run.recorder)

    def synchronize(self) -> None:
        """Block the host until the home stream of the last run is empty, and with it every call of the run."""
        wait_for(self._home, self.name, self.driver)

    def close(self) -> None:
        """Destroy the streams and events."""
        self._finalizer()
