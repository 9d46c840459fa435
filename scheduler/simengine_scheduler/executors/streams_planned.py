"""The streams executor with a planner: the calls that emitters yield before they wait are planned together.

    emitters --pull--> run of calls --hazards--> graph --planner--> order and streams --waits still needed--> streams

Invariants
    1. A run of calls ends where every emitter has ended or awaits, or at `_LONGEST` calls. It is issued at once.
    2. Calls of a run are issued in the order of the planner. Each comes after those that it must wait for, of this run
       or an earlier one: by the order of its stream, or by an event where `StreamClocks` finds that a wait is needed.
    3. Each call that a later run may have to wait for has an event. In the last run only calls that others of the run
       wait for have one, since the home stream waits for whole streams.
    4. Fixed lists are planned once; see `scripts.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter

from ..core.calls import Emitter, KernelCall
from ..core.emission import Feeder
from ..planning.planners import PLANNERS, Placement, Work, by_plan
from ..planning.profiles import Profile
from ..tracing.trace import Trace
from .base import Options
from .cuda import issue_call
from .measured import FirstRuns
from .streams import Issuer, StreamsExecutor

_LONGEST = 2048  # calls that are planned together at most


class _ByPlan(Issuer):
    """Issues runs of calls as the planner orders them."""

    def __init__(self, executor: PlannedExecutor, trace: Trace, home: int) -> None:
        super().__init__(executor, trace, home)
        self.planner = executor.planner
        self.profile = executor.profile
        self.unissued = executor.following  # number of the first call of the run that is being pulled

    def is_complete(self, seq: int) -> bool:
        """Whether call `seq` has been issued and is known to be complete, or is found to be so by a query."""
        if seq >= self.unissued:
            return False
        if seq in self.flights and self.driver.query(self.flights[seq].event):
            for other in self.clocks.all_behind(seq):
                self.retire(other)
        return seq not in self.flights

    def issue_run(self, calls: dict[int, KernelCall], last: bool) -> None:
        """Plan and issue the calls of a run. No call of another run can wait for those of the last run."""
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
    """Issues runs of calls to CUDA streams as a planner orders them."""

    def __init__(self, options: Options) -> None:
        self.planner = PLANNERS[options.stream_policy]
        self.profile = options.profile if options.profile is not None else Profile()
        self._first = FirstRuns(self.name, options, self.profile)
        super().__init__(options)

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Issue the emitters' calls. In the first runs calls are timed, if the options have no profile."""
        return self._first.run(emitters) or super().run(emitters)

    def _compiled_streams(self) -> None:
        """Return None: planners are written in Python."""

    def _placing(self) -> Placement:
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
