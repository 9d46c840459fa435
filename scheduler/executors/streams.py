"""The streams executor, completion by events: calls are chained on the device, and the host seldom waits.

    emitters --pull--> FIFO of N calls in flight --stream policy--> stream 0  k k   k
                            |                                       stream 1    k k
       hazard tracker: upstream set of each call                    stream S-1  k     wait(event of k) k
                            |                                            |
                            +--event wait, only where still needed-------+--join--> home stream

Invariants
    1. A call is issued as soon as it enters the window, in program order, on one stream.
    2. Each call is followed by its event. Before a call is issued, its stream waits for the events of its upstream
       calls that are on other streams, unless it is known to be behind them already: `seen[s][t]` is the newest call
       on stream t that stream s is behind, counting what it is behind through third streams.
    3. A call leaves the window when the host has seen its event complete; with N calls in the window the host waits for
       the oldest. Completion is looked for only then, and for awaited calls.
    4. Waits point to earlier calls only, so streams cannot block each other in a circle.
    5. Every stream waits for the home stream before its first call of a run, and the home stream waits for every stream
       used at the end; nothing waits for the whole device.
    6. An event is reused only once its call has been seen complete, or the run has ended: waits keep to the record that
       they were enqueued behind.

The host pays for each call one launch, one record, about one query, the hazard check, and the waits.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from time import perf_counter

from ..calls import Emitter, KernelCall
from ..driver import CudaDriver, Driver, EventPool
from ..emission import Feeder
from ..hazards import HazardTracker
from ..policies import STREAM_POLICIES, StreamState
from ..recorder import start_recording
from ..trace import Trace
from .base import Options, finish_run
from .cuda import CudaRun, Lanes, issue_call, release, wait_for_home


class _Flight:
    """A call in the window: its stream, its event, and what its stream was behind when it was issued."""

    __slots__ = ("event", "seen", "stream")

    def __init__(self, stream: int, event: int, seen: tuple[int, ...]) -> None:
        self.stream = stream
        self.event = event
        self.seen = seen


class _Issuer(CudaRun):
    """The state of one run."""

    def __init__(self, executor: StreamsExecutor, trace: Trace) -> None:
        super().__init__(executor.name, executor.driver, executor.lanes.handles, executor.latest)
        options = executor.options
        self.trace = trace
        self.lanes = executor.lanes
        self.pool = executor.pool
        self.window = options.window
        self.choose = STREAM_POLICIES[options.stream_policy]
        self.tracker = executor.tracker
        self.flights: dict[int, _Flight] = {}  # oldest first
        self.state = StreamState.of(options.streams)
        self.seen = [(-1,) * options.streams] * options.streams
        self.first = executor.following

    def begin(self, home: int) -> None:
        """Put the run behind what the home stream holds."""
        self.recorder = start_recording(self.trace, self.driver, home, self.first)
        self.lanes.begin(home)

    def is_complete(self, seq: int) -> bool:
        """Whether call `seq` is known to be complete, or is found to be."""
        flight = self.flights.get(seq)
        if flight is None:
            return True
        if not self.driver.query(flight.event):
            return False
        self.retire(seq)
        return True

    def retire(self, seq: int) -> None:
        """A call's event has completed: it leaves the window."""
        flight = self.flights.pop(seq)
        self.tracker.remove(seq)
        self.pool.give(flight.event)
        self.state.load[flight.stream] -= 1
        del self.state.stream_of[seq]
        if self.recorder is not None:
            self.recorder.observe(seq, flight.stream)

    def make_room(self) -> None:
        """Wait until the window can take a call."""
        while len(self.flights) >= self.window:
            oldest = next(iter(self.flights))
            while not self.driver.query(self.flights[oldest].event):
                pass
            self.retire(oldest)

    def issue(self, seq: int, call: KernelCall) -> None:
        """Put a call on a stream, behind what it depends on."""
        if self.recorder is not None and self.recorder.times:
            began = perf_counter()
            upstream = self.tracker.add(seq, call)
            self.trace.counters.check_seconds += perf_counter() - began
        else:
            upstream = self.tracker.add(seq, call)
        state = self.state
        stream = self.choose(upstream, state)
        handle = self.lanes.use(stream)
        if upstream:
            self.wait_for(upstream, stream, handle)
        issue_call(self, call, seq, handle, stream)
        event = self.pool.take()
        self.driver.record(event, handle)
        self.flights[seq] = _Flight(stream, event, self.seen[stream])
        state.stream_of[seq] = stream
        state.tail[stream] = seq
        state.load[stream] += 1
        state.issued += 1

    def wait_for(self, upstream: set[int], stream: int, handle: int) -> None:
        """Let a stream wait for upstream calls on other streams, the newest first: it may imply the others."""
        counters = self.trace.counters
        seen = self.seen[stream]
        for seq in sorted(upstream, reverse=True):
            flight = self.flights[seq]
            other = flight.stream
            if other == stream:
                continue
            if seq <= seen[other]:
                counters.waits_removed += 1
                continue
            self.driver.wait(handle, flight.event)
            counters.waits_inserted += 1
            if self.recorder is not None:
                self.recorder.wait(seq, stream)
            merged = list(map(max, seen, flight.seen))
            merged[other] = seq
            seen = tuple(merged)
        self.seen[stream] = seen

    def poll_awaited(self, feeder: Feeder) -> None:
        """Let emitters go on whose awaited calls have completed."""
        for seq in list(feeder.waiting):
            if self.is_complete(seq):
                feeder.release(seq)


class StreamsExecutor:
    """Issues calls to CUDA streams behind events, at once."""

    name = "streams"

    def __init__(self, options: Options) -> None:
        self.options = options
        self.tracker = HazardTracker(options.table(self.name).conflicts)
        self.following = 0  # sequence number of the next call
        self.driver: Driver = options.driver if options.driver is not None else CudaDriver()
        self.lanes = Lanes(self.driver, options.streams)
        self.pool = EventPool(self.driver)
        self._home = 0
        self.latest: KernelCall | None = None
        self._finalizer = weakref.finalize(self, release, self.pool, self.lanes)

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Issue the emitters' calls; on return the home stream waits for all of them."""
        home = self._home = self.driver.current_stream() if self.options.stream is None else self.options.stream
        trace = Trace(self.name, self.options.record)
        self.pool.give_all()
        self.tracker.clear()
        with _Issuer(self, trace) as run:
            run.begin(home)
            feeder = run.feeder = Feeder(emitters, run.is_complete, self.following)
            while True:
                call = feeder.pull()
                if call is not None:
                    run.latest = call
                    self.following = feeder.latest + 1
                    if run.recorder is not None:
                        run.recorder.enter(call)
                    run.make_room()
                    run.issue(feeder.latest, call)
                elif feeder.exhausted:
                    break
                if feeder.waiting:
                    run.poll_awaited(feeder)
            self.lanes.join(home)
            if run.recorder is not None and run.recorder.times:
                self.driver.synchronize(home)
            self.latest = run.latest
            return finish_run(trace, feeder, run.recorder)

    def synchronize(self) -> None:
        """Block the host until the home stream of the last run is empty, and with it every call of the run."""
        wait_for_home(self.name, self.driver, self._home, self.latest)

    def close(self) -> None:
        """Destroy the streams and events."""
        self._finalizer()
