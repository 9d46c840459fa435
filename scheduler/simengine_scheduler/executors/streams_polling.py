"""The streams executor with completion by polling: the software form of ACS (ACS-SW, arXiv 2401.12377).

    emitters --pull--> window of N --ready--> free stream   k
                          ^                   busy stream   k
                          +---event seen complete-----+

Invariants
    1. A call is issued only when its upstream set is empty: the host has seen complete all that it waits for.
    2. A stream has one call in flight. It is free again when the host has seen the event behind that call complete.
    3. No stream waits for another, except for the home stream at both ends of a run.

Between dependent calls there are a query and a launch by the host, where completion by events has a wait on the device.
The paper gives each stream a host thread. One thread that polls all streams does the same here, in compiled code where
it can (`streams_compiled.py`).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from time import perf_counter

from ..core.calls import Emitter, KernelCall
from ..core.emission import Feeder
from ..core.policies import ORDER_POLICIES
from ..core.window import Window
from ..cuda.driver import Driver, EventPool
from ..tracing.trace import Trace
from .base import Executor, Options, finish_run
from .compiled import make_compiled
from .cuda import CudaRun, Lanes, driver_for, issue_call, release, wait_for
from .recorder import start_recording
from .streams_compiled import CompiledStreams


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
        """Let the run come after what the home stream holds."""
        self.recorder = start_recording(self.trace, self.driver, self.home, self.window.following)
        self.lanes.begin(self.home)

    def insert(self, call: KernelCall) -> None:
        """Take a call into the window. Times the hazard check if times are recorded."""
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
        """Query each call in flight once, and complete those that have ended."""
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
    """Issues calls to CUDA streams once the host has seen complete all that they wait for."""

    name = "streams"

    def __init__(self, options: Options) -> None:
        self.options = options
        self.window = Window(options.table(self.name), options.window)
        self.driver: Driver = driver_for(options)
        self.lanes = Lanes(self.driver, options.streams)
        self.pool = EventPool(self.driver)
        calls = make_compiled(options, self.driver, options.table(self.name).conflicts)
        self._compiled = (
            None if calls is None else CompiledStreams(self.name, options, self.driver, self.lanes, self.pool, calls)
        )
        self._home = 0
        self._finalizer = weakref.finalize(self, release, self.pool, self.lanes)

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Issue the emitters' calls. On return the home stream waits for all of them."""
        home = self._home = self.driver.current_stream() if self.options.stream is None else self.options.stream
        trace = Trace(self.name, self.options.record)
        if self._compiled is not None:
            return self._compiled.run(emitters, home, trace)
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
                # When nothing is left to pull and nothing is pending, streams finish by themselves.
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
        if self._compiled is not None:
            self._compiled.clear()
