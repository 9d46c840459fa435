"""Streams whose calls compiled code issues. The rules are those of `streams.py`, `scripts.py` and `streams_polling.py`.

Emitters are asked for many calls, which are then issued together. So an emitter whose awaited call has completed
meanwhile may resume some calls later than if Python issued them.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from ..core.calls import Emitter, FixedList
from ..core.counted import CountedList
from ..cuda.driver import Driver, EventPool
from ..native.issuer import Plan
from ..tracing.trace import Trace
from .base import Options, finish_run
from .compiled import CompiledCalls, taking_turns, together
from .compiled_lists import CompiledLists, are_fixed, are_lists
from .cuda import Lanes
from .feeding import make_feeder
from .flowing import make_flow
from .kept_pieces import KeptPieces, make_pieces
from .pieces_trial import PiecesTrial
from .streams_run import StreamsRun

_BATCH = 512  # calls that are issued together where runs of them may be pieces, which a batch would cut


class CompiledStreams:
    """Runs emitters and fixed lists on the streams of an executor."""

    def __init__(
        self, executor: str, options: Options, driver: Driver, lanes: Lanes, pool: EventPool, calls: CompiledCalls
    ) -> None:
        self.executor = executor
        self.options = options
        self.driver = driver
        self.lanes = lanes
        self.pool = pool
        self.calls = calls
        self.pieces = make_pieces(executor, options, driver, calls)
        self.active: KeptPieces | None = None  # the pieces of the present run
        self._trials: dict[str, PiecesTrial] = {}
        self.handles = array("q", lanes.handles)  # of which each run replaces the first by the home stream
        self.joins = array("q", lanes.joins)
        self._events = array("q")
        self.lists = CompiledLists(calls, self.pieces)
        self._plans: OrderedDict[tuple[int, ...], Plan] = OrderedDict()
        self._flow = make_flow(calls)

    def run(self, emitters: Iterable[Emitter], home: int, trace: Trace) -> Trace:
        """Run emitters, fixed lists or counted lists."""
        if are_fixed(emitters):
            kind: Callable[..., Trace] = self.run_lists
        elif trace.record == "off" and are_lists(emitters):
            kind = self.run_counted
        else:
            kind = self.run_emitters
        self.make_room()
        if self.pieces is None:
            return kind(emitters, home, trace)
        trial = self._trials.get(kind.__name__)
        if trial is None:
            synchronize = lambda: self.driver.synchronize(self.handles[0])  # noqa: E731
            trial = self._trials[kind.__name__] = PiecesTrial(synchronize, self.driver.now)
        self.active = self.pieces if trial.begins() else None
        began = self.driver.now()
        kind(emitters, home, trace)
        trial.ended(trace.counters.calls, self.pieces.built)
        if self.active is not None:
            self.pieces.build(self.driver.now() - began)
        return trace

    @property
    def learning(self) -> bool:
        """Whether it is not known yet which runs of calls are worth a graph."""
        return any(trial.learning for trial in self._trials.values())

    @property
    def comparing(self) -> bool:
        """Whether runs with pieces are being compared with runs call by call."""
        return any(trial.comparing for trial in self._trials.values())

    def run_emitters(self, emitters: Iterable[Emitter], home: int, trace: Trace) -> Trace:
        """Issue the calls of emitters."""
        with StreamsRun(self, trace, home, self.options.window) as run:
            if run.recorder is None and self._flow is not None:
                run.flow_through(self._flow, emitters)
                return trace
            feeder = run.feeder = make_feeder(emitters, run.is_complete, asks=False)
            while True:
                feeder.take(together(feeder) if run.pieces is None else _BATCH)
                if feeder.taken:
                    run.issue_taken(feeder)
                elif feeder.exhausted:
                    break
                if feeder.waiting:
                    for seq in run.ended(feeder):
                        feeder.release(seq)
            run.join()
            return finish_run(trace, feeder, run.recorder)

    def run_counted(self, lists: Sequence[CountedList | FixedList], home: int, trace: Trace) -> Trace:
        """Issue counted lists, with fixed ones among them."""
        known = self.lists.known(lists)
        with StreamsRun(self, trace, home, self.options.window, begins=False) as run:
            run.issue_counted(self.lists, known)
            return trace

    def run_lists(self, lists: Sequence[FixedList], home: int, trace: Trace) -> Trace:
        """Issue fixed lists by their plan. The plans of the latest runs are kept. With polling there are none."""
        numbers = [self.calls.numbers_of(fixed) for fixed in lists]
        self.calls.hand_over()
        if self.options.completion == "polling":
            with StreamsRun(self, trace, home, self.options.window) as run:
                run.issue_in_turn(array("i", taking_turns(numbers)), lists)
                run.join()
                if run.recorder is not None:
                    run.recorder.finish()
                return trace
        if self.active is not None and self._run_pieces(self.active, numbers, lists, home, trace):
            return trace
        plan = self._plan(lists, numbers)
        with StreamsRun(self, trace, home, plan.events) as run:
            run.issue_plan(plan, lists)
            run.join()
            trace.counters.calls = plan.calls
            if run.recorder is not None:
                run.recorder.finish()
            return trace

    def _run_pieces(
        self, pieces: KeptPieces, numbers: list[array[int]], lists: Sequence[FixedList], home: int, trace: Trace
    ) -> bool:
        """Issue fixed lists as pieces if this costs at most half of what the calls cost. Returns whether it does."""
        calls = sum(map(len, numbers))
        pieces.look()
        pieces.native.begin()
        pays = 0 < pieces.native.divide_lists(numbers) <= calls
        if pays:
            with StreamsRun(self, trace, home, self.options.window) as run:
                run.issue_divided(pieces)
                run.latest = next(fixed for fixed in reversed(lists) if fixed)[-1]
                run.join()
            trace.counters.calls = calls
        return pays

    def events(self, number: int) -> array[int]:
        """Return at least so many events, of which no run is using any."""
        while len(self._events) < number:
            self._events.append(self.pool.take())
        return self._events

    def clear(self) -> None:
        """Forget all plans, and destroy the graphs of pieces."""
        self._plans.clear()
        if self.pieces is not None:
            self._forget_pieces(self.pieces)

    def _forget_pieces(self, pieces: KeptPieces) -> None:
        pieces.forget()
        self._trials.clear()

    def make_room(self) -> None:
        """Forget all calls if there are too many, and with them the plans that have their numbers."""
        if self.calls.make_room():
            self._plans.clear()
            self.lists.forget()
            if self.pieces is not None:
                self._forget_pieces(self.pieces)

    def _plan(self, lists: Sequence[FixedList], numbers: Sequence[array[int]]) -> Plan:
        key = tuple(map(id, lists))
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self.calls.issuer.plan(lists, numbers)
            if len(self._plans) > self.options.graphs:
                self._plans.popitem(last=False)
        self._plans.move_to_end(key)
        return plan
