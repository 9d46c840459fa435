"""Fixed lists on streams. The calls to issue, their streams and their waits are computed once and stored.

    FixedLists --round-robin--> program order --hazards, planner, clocks--> script: call, stream, waits, event
    run: streams wait for the home stream, the script is issued, the home stream waits for the streams

Invariants
    1. A script assumes that no call ends while it is issued, so it is correct however fast calls run.
    2. A call has an event if others of the script wait for it. The home stream waits for whole streams.
    3. Scripts are found by the id() of their lists. They keep the lists alive, so that no other lists get these ids.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from time import perf_counter

from ..core.calls import FixedList
from ..core.emission import Feeder
from ..cuda.driver import Driver, EventPool
from ..planning.planners import Placement, plan_calls
from ..tracing.trace import Trace
from .base import Options
from .cuda import CudaRun, Lanes, issue_call
from .recorder import start_recording


class Script:
    """What is issued for fixed lists.

    Attributes:
        calls: in program order.
        steps: in order of issue: position in program order, call, stream, positions of the calls to wait for, and
            whether others wait for this one.
        asked, inserted: how many waits hazards ask for, and how many are made.
    """

    __slots__ = ("asked", "calls", "inserted", "lists", "steps")

    def __init__(self, lists: Sequence[FixedList], place: Placement, options: Options, name: str) -> None:
        self.calls = tuple(iter(Feeder(lists, lambda seq: True).pull, None))
        plan = plan_calls(place, self.calls, options.table(name).conflicts, options.streams)
        marked = {other for direct in plan.waits for other in direct}
        self.lists = tuple(lists)
        self.steps = [(seq, self.calls[seq], plan.streams[seq], plan.waits[seq], seq in marked) for seq in plan.order]
        self.asked, self.inserted = plan.asked, sum(map(len, plan.waits))


class Scripts:
    """The scripts of an executor. `place` puts calls on streams, and `options.graphs` scripts are stored."""

    def __init__(self, place: Placement, options: Options, name: str) -> None:
        self._place = place
        self._options = options
        self._name = name
        self._kept: OrderedDict[tuple[int, ...], Script] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        """Forget all scripts."""
        self._kept.clear()

    def of(self, lists: Sequence[FixedList], trace: Trace) -> Script:
        """Return the script of some lists. The time to make it counts as the time of the hazard check."""
        key = tuple(map(id, lists))
        script = self._kept.get(key)
        if script is None:
            began = perf_counter()
            script = self._kept[key] = Script(lists, self._place, self._options, self._name)
            if trace.record == "times":
                trace.counters.check_seconds += perf_counter() - began
            if len(self._kept) > self._options.graphs:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return script


class ScriptRun(CudaRun):
    """One run of a script."""

    def __init__(self, trace: Trace, driver: Driver, lanes: Lanes, pool: EventPool, home: int) -> None:
        super().__init__(trace.executor, driver, lanes.handles)
        self._trace = trace
        self._lanes = lanes
        self._pool = pool
        self._home = home

    def start(self) -> None:
        """Let the run come after what the home stream holds."""
        self._pool.give_all()
        self.recorder = start_recording(self._trace, self.driver, self._home)
        self._lanes.begin(self._home)

    def issue(self, script: Script) -> None:
        """Issue all calls to their streams."""
        events: dict[int, int] = {}
        driver, lanes, recorder = self.driver, self._lanes, self.recorder
        if recorder is not None:
            for call in script.calls:
                recorder.enter(call)
        for seq, call, stream, waits, marked in script.steps:
            handle = lanes.use(stream)
            for other in waits:
                driver.wait(handle, events[other])
                if recorder is not None:
                    recorder.wait(other, stream)
            self.latest = call
            issue_call(self, call, seq, handle, stream)
            if marked:
                event = events[seq] = self._pool.take()
                driver.record(event, handle)

    def finish(self, script: Script) -> Trace:
        """Join the streams and complete the trace."""
        self._lanes.join(self._home)
        self._trace.counters.calls = len(script.steps)
        self._trace.counters.add_waits(script.asked, script.inserted)
        if self.recorder is not None:
            if self.recorder.times:
                self.driver.synchronize(self._home)
            self.recorder.finish()
        return self._trace
