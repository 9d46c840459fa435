"""The streams executor with a planner: calls are pulled as far as emitters go without waiting, and planned together.

    emitters --pull--> run of calls --hazards--> graph --planner--> order and streams --waits still needed--> streams

Invariants
    1. A run of calls ends where every emitter has ended or awaits, or at `_LONGEST` calls. It is issued at once.
    2. Calls of a run are issued in the planner's order, each behind those that it must come after: by stream order, or
       by an event wait where `StreamClocks` finds that one is still needed, for calls of earlier runs as for its own.
    3. Whatever a later run may have to wait for has an event. In the last run only those calls have one that others of
       it wait for: the home stream waits for whole streams.
    4. Lists made as `FixedList`s are planned once, see `scripts.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter

from ..core.calls import Emitter, KernelCall
from ..core.emission import Feeder
from ..planning.planners import PLANNERS, Place, Work, by_plan
from ..planning.profiles import Profile
from ..tracing.trace import Trace
from .base import Options
from .cuda import issue_call
from .streams import Issuer, StreamsExecutor

_LONGEST = 2048  # calls planned at once


class _ByPlan(Issuer):
    """Issues runs of calls as the planner has them."""

    def __init__(self, executor: PlannedExecutor, trace: Trace, home: int) -> None:
        super().__init__(executor, trace, home)
        self.planner = executor.planner
        self.profile = executor.profile
        self.unissued = executor.following  # first call of the run being pulled

    def is_complete(self, seq: int) -> bool:
        """Whether call `seq` has been issued and is known to be complete, or is found to be."""
        if seq >= self.unissued:
            return False
        if seq in self.flights and self.driver.query(self.flights[seq].event):
            for other in self.clocks.all_behind(seq):
                self.retire(other)
        return seq not in self.flights

    def issue_run(self, calls: dict[int, KernelCall], last: bool) -> None:
        """Plan and issue the calls of a run; after the last run nothing can wait for them."""
        began = perf_counter()
        upstream = {seq: self.tracker.add(seq, call) for seq, call in calls.items()}
        placed = self.planner(Work.of(calls, upstream, self.profile), self.state)
        waits: dict[int, list[int]] = {}
        for seq, stream in placed:
            waits[seq] = self.clocks.waits(upstream[seq], stream)
            self.clocks.put(seq, stream)
        marked = {other for direct in waits.values() for other in direct} if last else calls
        if self.recorder is not None and self.recorder.times:
            self.trace.counters.check_seconds += perf_counter() - began
        for seq, stream in placed:
            self.latest = calls[seq]
            handle = self.lanes.use(stream)
            self.wait_for(waits[seq], stream, handle)
            issue_call(self, calls[seq], seq, handle, stream)
            if seq in marked:
                event = self.flights[seq].event = self.pool.take()
                self.driver.record(event, handle)
            self.state.put(seq, stream)


class PlannedExecutor(StreamsExecutor):
    """Issues runs of calls to CUDA streams as a planner has them."""

    def __init__(self, options: Options) -> None:
        self.planner = PLANNERS[options.stream_policy]
        self.profile = options.profile if options.profile is not None else Profile()
        super().__init__(options)

    def _placing(self) -> Place:
        return by_plan(self.planner, self.profile)

    def _run_emitters(self, emitters: Iterable[Emitter], home: int, trace: Trace) -> Trace:
        with _ByPlan(self, trace, home) as run:
            feeder = run.feeder = Feeder(emitters, run.is_complete, self.following)
            while True:
                calls: dict[int, KernelCall] = {}
                while len(calls) < _LONGEST and (call := feeder.pull()) is not None:
                    calls[feeder.latest] = call
                    self.following = feeder.latest + 1
                    if run.recorder is not None:
                        run.recorder.enter(call)
                if calls:
                    run.issue_run(calls, feeder.exhausted)
                    run.unissued = self.following
                elif feeder.exhausted:
                    break
                if feeder.waiting:
                    run.poll_awaited(feeder)
            return run.finish(feeder, home)
