"""The streams executor with completion by events: streams wait for each other on the device, the host seldom waits.

    emitters --pull--> FIFO of N calls in flight --stream policy--> stream 0  k k   k
                            |                                       stream 1    k k
       hazard tracker: upstream set of each call                    stream S-1  k     wait(event of k) k
                            |                                            |
                            +--event wait, only where still needed-------+--join--> home stream

Invariants
    1. A call is issued as soon as it enters the window, in program order, on one stream.
    2. Each call is followed by its event. Before a call is issued, its stream waits for the events of its upstream
       calls on other streams, unless `simengine_scheduler/planning/clocks.py` finds that other waits imply this.
    3. A call leaves the window when the host has seen its event complete. The host queries events when the window is
       full, where it waits for the oldest call, and for awaited calls.
    4. Calls wait for earlier calls only, so streams cannot block each other in a circle.
    5. Every stream waits for the home stream before its first call of a run, and at the end the home stream waits for
       every stream that was used. Nothing waits for the whole device.
    6. Fixed lists are checked once, in program order, as if no call ended meanwhile; see `scripts.py`. They do not
       pass through the window.
    7. An event is reused only once its call has been seen complete or the run has ended. A wait refers to the record
       that the event had when the wait was made.

For each call the host makes one launch, one record, about one query, a hazard check and the waits. For a call of a
fixed list it makes one launch, the waits, and one record if another stream waits for the call.

So it is where Python issues. Compiled code records an event only behind calls that something waits for (2, 3), and its
first stream is the home stream (5); see `native/issuer.h`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from time import perf_counter

from ..core.calls import Emitter, KernelCall
from ..core.emission import Feeder
from ..core.hazards import HazardTracker
from ..core.policies import STREAM_POLICIES, StreamState
from ..cuda.driver import Driver, EventPool
from ..planning.clocks import StreamClocks
from ..planning.planners import Placement, in_program_order
from ..tracing.trace import Trace
from .base import Executor, Options, finish_run
from .compiled import make_compiled
from .compiled_lists import are_fixed
from .cuda import CudaRun, Lanes, driver_for, issue_call, release, wait_for
from .recorder import start_recording
from .scripts import ScriptRun, Scripts
from .streams_compiled import CompiledStreams


class Issuer(CudaRun):
    """The state of one run."""

    def __init__(self, executor: StreamsExecutor, trace: Trace, home: int) -> None:
        super().__init__(executor.name, executor.driver, executor.lanes.handles)
        self.pool = executor.pool
        self.pool.give_all()
        options = executor.options
        self.trace = trace
        self.lanes = executor.lanes
        self.tracker = executor.tracker
        self.tracker.clear()
        self.clocks = StreamClocks(options.streams)
        self.flights = self.clocks.places
        self.state = StreamState.of(options.streams)
        self.home, self.first = home, executor.following

    def start(self) -> None:
        """Let the run come after what the home stream holds."""
        self.recorder = start_recording(self.trace, self.driver, self.home, self.first)
        self.lanes.begin(self.home)

    def is_complete(self, seq: int) -> bool:
        """Whether call `seq` is known to be complete, or is found to be so by a query."""
        flight = self.flights.get(seq)
        if flight is None:
            return True
        if not self.driver.query(flight.event):
            return False
        self.retire(seq)
        return True

    def retire(self, seq: int) -> None:
        """Remove a call whose event has completed from the window."""
        flight = self.flights.pop(seq)
        self.tracker.remove(seq)
        self.pool.give(flight.event)
        self.state.load[flight.stream] -= 1
        del self.state.stream_of[seq]
        if self.recorder is not None:
            self.recorder.observe(seq, flight.stream)

    def check(self, seq: int, call: KernelCall) -> set[int]:
        """Return the calls in flight that a call must come after."""
        if self.recorder is None or not self.recorder.times:
            return self.tracker.add(seq, call)
        began = perf_counter()
        upstream = self.tracker.add(seq, call)
        self.trace.counters.check_seconds += perf_counter() - began
        return upstream

    def wait_for(self, calls: Iterable[int], stream: int, handle: int) -> None:
        """Make a stream wait for calls on other streams."""
        for seq in calls:
            self.driver.wait(handle, self.flights[seq].event)
            if self.recorder is not None:
                self.recorder.wait(seq, stream)

    def poll_awaited(self, feeder: Feeder) -> None:
        """Let the emitters go on whose awaited calls have completed."""
        for seq in list(feeder.waiting):
            if self.is_complete(seq):
                feeder.release(seq)

    def finish(self, feeder: Feeder, home: int) -> Trace:
        """Join the streams and complete the trace."""
        self.lanes.join(home)
        self.trace.counters.add_waits(self.clocks.asked, self.clocks.needed)
        if self.recorder is not None and self.recorder.times:
            self.driver.synchronize(home)
        return finish_run(self.trace, feeder, self.recorder)


class _ByPolicy(Issuer):
    """Issues each call to the stream that a policy chooses, as soon as the window can take it."""

    def __init__(self, executor: StreamsExecutor, trace: Trace, home: int) -> None:
        super().__init__(executor, trace, home)
        self.window = executor.options.window
        self.choose = STREAM_POLICIES[executor.options.stream_policy]

    def make_room(self) -> None:
        """Wait until the window can take a call."""
        while len(self.flights) >= self.window:
            oldest = next(iter(self.flights))
            while not self.driver.query(self.flights[oldest].event):
                pass
            self.retire(oldest)

    def issue(self, seq: int, call: KernelCall) -> None:
        """Issue a call to a stream, behind what it depends on, and record an event behind it."""
        upstream = self.check(seq, call)
        stream = self.choose(upstream, self.state)
        handle = self.lanes.use(stream)
        if upstream and (waits := self.clocks.waits(upstream, stream)):
            self.wait_for(waits, stream, handle)
        issue_call(self, call, seq, handle, stream)
        event = self.pool.take()
        self.driver.record(event, handle)
        self.clocks.put(seq, stream, event)
        self.state.put(seq, stream)


class StreamsExecutor(Executor):
    """Issues calls to CUDA streams at once. Events make them wait for each other on the device."""

    name = "streams"

    def __init__(self, options: Options) -> None:
        self.options = options
        self.tracker = HazardTracker(options.table(self.name).conflicts)
        self.following = 0  # sequence number of the next call
        self.driver: Driver = driver_for(options)
        self.lanes = Lanes(self.driver, options.streams)
        self.pool = EventPool(self.driver)
        self._scripts = Scripts(self._placing(), options, self.name)
        self._compiled = self._compiled_streams()
        self._home = 0
        self._finalizer = weakref.finalize(self, release, self.pool, self.lanes)

    def _placing(self) -> Placement:
        """Return what puts the calls of fixed lists on streams."""
        return in_program_order(STREAM_POLICIES[self.options.stream_policy])

    def _compiled_streams(self) -> CompiledStreams | None:
        """Return what issues calls by compiled code, or None where Python does."""
        calls = make_compiled(self.options, self.driver, self.options.table(self.name).conflicts)
        if calls is None:
            return None
        return CompiledStreams(self.name, self.options, self.driver, self.lanes, self.pool, calls)

    @property
    def built(self) -> int:
        """How many graphs of calls that come again were built."""
        pieces = None if self._compiled is None else self._compiled.pieces
        return 0 if pieces is None else pieces.built

    @property
    def learning(self) -> bool:
        """Whether runs of calls are still becoming graphs, so that later runs will take less time."""
        return self._compiled is not None and self._compiled.learning

    @property
    def comparing(self) -> bool:
        """Whether it tries ways of its own in turn, of which some are slower than what will follow."""
        return self._compiled is not None and self._compiled.comparing

    @property
    def rounds(self) -> int:
        """How many rounds of fixed lists run best as one list, since lists do not wait for each other within it.

        It is 1 where runs are recorded, so that each round has a trace.
        """
        return 8 if self.options.record == "off" else 1

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Issue the emitters' calls. On return the home stream waits for all of them."""
        home = self._home = self.driver.current_stream() if self.options.stream is None else self.options.stream
        trace = Trace(self.name, self.options.record)
        if self._compiled is not None:
            return self._compiled.run(emitters, home, trace)
        if not are_fixed(emitters):
            return self._run_emitters(emitters, home, trace)
        script = self._scripts.of(emitters, trace)  # type: ignore[arg-type]
        with ScriptRun(trace, self.driver, self.lanes, self.pool, home) as script_run:
            script_run.issue(script)
            return script_run.finish(script)

    def _run_emitters(self, emitters: Iterable[Emitter], home: int, trace: Trace) -> Trace:
        with _ByPolicy(self, trace, home) as run:
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
            return run.finish(feeder, home)

    def synchronize(self) -> None:
        """Block the host until the home stream of the last run is empty, and with it every call of the run."""
        wait_for(self._home, self.name, self.driver)

    def close(self) -> None:
        """Destroy the streams and events, and forget scripts."""
        self._finalizer()
        self._scripts.clear()
        if self._compiled is not None:
            self._compiled.clear()
