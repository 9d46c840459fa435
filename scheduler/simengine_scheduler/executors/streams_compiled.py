"""Streams whose calls compiled code issues. The rules are those of `streams.py`, `scripts.py` and `streams_polling.py`.

Emitters are asked for many calls, which are then issued together. So an emitter whose awaited call has completed
meanwhile may resume some calls later than if Python issued them.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import compress

from ..core.calls import Emitter, FixedList
from ..core.counted import CountedList
from ..core.emission import Feeder
from ..cuda.driver import Driver, EventPool
from ..launch.arguments import BufferSet
from ..native.issuer import Issuer, Outcome, Plan
from ..tracing.events import Step, StepKind
from ..tracing.trace import Trace
from .base import Options, finish_run
from .compiled import CompiledCalls, failed, issue_all, taking_turns, together
from .compiled_lists import CompiledLists, Known, are_fixed, are_lists, latest_of, numbers_of, run_lists
from .cuda import CudaRun, Lanes
from .feeding import make_feeder
from .flowing import Flow, make_flow
from .kept_pieces import KeptPieces, make_pieces
from .pieces_trial import PiecesTrial
from .recorder import start_recording

_BATCH = 512  # calls that are issued together where runs of them may be pieces, which a batch would cut
_KINDS: tuple[StepKind, ...] = ("issue", "wait", "observe")


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
        with _Run(self, trace, home, self.options.window) as run:
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
        with _Run(self, trace, home, self.options.window) as run:
            run.issue_counted(self.lists, known)
            run.join()
            return trace

    def run_lists(self, lists: Sequence[FixedList], home: int, trace: Trace) -> Trace:
        """Issue fixed lists by their plan. The plans of the latest runs are kept. With polling there are none."""
        numbers = [self.calls.numbers_of(fixed) for fixed in lists]
        self.calls.hand_over()
        if self.options.completion == "polling":
            with _Run(self, trace, home, self.options.window) as run:
                run.issue_in_turn(array("i", taking_turns(numbers)), lists)
                run.join()
                if run.recorder is not None:
                    run.recorder.finish()
                return trace
        if self.active is not None and self._run_pieces(self.active, numbers, lists, home, trace):
            return trace
        plan = self._plan(lists, numbers)
        with _Run(self, trace, home, plan.events) as run:
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
            with _Run(self, trace, home, self.options.window) as run:
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


class _Run(CudaRun):
    """One run."""

    def __init__(self, streams: CompiledStreams, trace: Trace, home: int, events: int) -> None:
        super().__init__(streams.executor, streams.driver, (home, *streams.lanes.handles))
        self._streams, self._calls = streams, streams.calls
        self._issuer: Issuer = streams.calls.issuer
        self._trace, self._home, self._events = trace, home, events
        self.pieces = streams.active
        self._asked = self._needed = 0
        self._issued = 0
        self._changes = BufferSet.changes

    def start(self) -> None:
        """Let the run come after what the home stream holds."""
        self.recorder = start_recording(self._trace, self.driver, self._home)
        streams, logs = self._streams, self.recorder is not None
        streams.handles[0] = self._home
        events = streams.events(self._events)
        outcome = self._issuer.begin(streams.handles, streams.lanes.fork, events, self._events, logs)
        if outcome is Outcome.FAILED:
            raise self.driver.error(self._issuer.state().status)
        if self.pieces is not None:
            self.pieces.native.begin()

    def is_complete(self, seq: int) -> bool:
        """Whether call `seq` has been issued and is known to be complete, or is found to be so."""
        if seq >= self._issued:
            return False
        answer = self._issuer.complete(self._position(seq))
        if answer < 0:  # with polling, other calls may have been issued
            raise failed(self, self._calls)
        return answer == 1

    def ended(self, feeder: Feeder) -> list[int]:
        """Return those of the awaited calls that have ended."""
        awaited = sorted(feeder.waiting)
        pieces = None if self.pieces is None else self.pieces.native.handle
        found = self._issuer.ended(array("q", awaited), pieces)
        if found is None:  # with polling, other calls may have been issued
            raise failed(self, self._calls)
        return list(compress(awaited, found))

    def issue_taken(self, feeder: Feeder) -> None:
        """Issue the calls that a feeder has taken."""
        calls, emitters = feeder.hand_over()
        if self._calls.is_full:
            self.drain()
            self._streams.make_room()
        if self.recorder is not None:
            for call in calls:
                self.recorder.enter(call)
        if self._changes != BufferSet.changes:
            self.drain()  # with polling, calls of before may wait, which belong to the memory of before
            self._changes = BufferSet.changes
        numbers = self._calls.numbers(calls)
        self._calls.hand_over()
        if self.pieces is not None:
            self.pieces.look()
            self.pieces.native.divide(numbers, emitters)
        self._tell_awaited(feeder)
        if self.pieces is None:
            self._issue(numbers)
        else:
            self.issue_divided(self.pieces)
        self.latest = calls[-1]
        self._issued += len(calls)

    def flow_through(self, flow: Flow, emitters: Iterable[Emitter]) -> None:
        """Issue the calls of emitters, without Python between one batch and the next."""
        flow.begin(emitters, self.pieces)
        self.flow = flow
        flow.run(self, self._streams.make_room, self.drain)
        self.join()
        counters = self._trace.counters
        counters.calls, counters.awaits = flow.calls_taken, flow.awaits

    def issue_counted(self, lists: CompiledLists, known: Sequence[Known]) -> None:
        """Issue the programs of counted lists."""
        if self.pieces is not None:
            self.pieces.look()
        lists.programs.begin(numbers_of(known), pieces=None if self.pieces is None else self.pieces.native)
        counters = self._trace.counters
        counters.calls, counters.awaits = run_lists(self, lists, known, self._handle, self._issuer.issued)
        self.latest = latest_of(known) or self.latest

    def issue_plan(self, plan: Plan, lists: Sequence[FixedList]) -> None:
        """Issue the plan of some lists."""
        self._asked, self._needed = plan.asked, plan.needed
        if self.recorder is not None:
            for call in taking_turns(lists):
                self.recorder.enter(call)

        issue_all(self, partial(self._issuer.issue_plan, plan), self._calls, self._handle)
        if plan.calls:
            self.latest = next(fixed for fixed in reversed(lists) if fixed)[-1]

    def issue_in_turn(self, numbers: array[int], lists: Sequence[FixedList]) -> None:
        """Issue fixed lists through the window."""
        if self.recorder is not None:
            for call in taking_turns(lists):
                self.recorder.enter(call)
        self._issue(numbers)
        self._trace.counters.calls = len(numbers)

    def issue_divided(self, pieces: KeptPieces) -> None:
        """Issue what was divided into pieces."""
        issue_all(self, pieces.native.issue, self._calls, self._handle, self._issuer.issued)

    def _tell_awaited(self, feeder: Feeder) -> None:
        """Tell the issuer which of the calls that the feeder has taken will be awaited."""
        awaited = [seq for seq in feeder.waiting if seq >= self._issued]
        if awaited:
            self._issuer.will_await(array("q", map(self._position, awaited)))

    def _position(self, seq: int) -> int:
        """The position in the issuer's run of a call: that of its piece, if it is in one."""
        return seq if self.pieces is None else self.pieces.native.position_of(seq)

    def _issue(self, numbers: array[int]) -> None:
        issue_all(self, partial(self._issuer.issue, numbers), self._calls, self._handle, self._issuer.issued)

    def drain(self) -> None:
        """Go on until all calls are on the streams, which with polling they are only once they are ready."""
        if self._streams.options.completion != "polling":
            return
        issue_all(self, lambda done: (self._issuer.drain(), done), self._calls, self._handle)

    def _handle(self) -> int:
        return self._issuer.state().handle

    def join(self) -> None:
        """Join the streams, once all calls are on them, and complete counters and log."""
        self.drain()
        outcome = self._issuer.join(self._streams.joins)
        state = self._issuer.state()
        if outcome is Outcome.FAILED:
            raise self.driver.error(state.status)
        self._trace.counters.add_waits(state.asked + self._asked, state.needed + self._needed)
        if self.recorder is not None:
            self._trace.log += [Step(_KINDS[kind], seq, stream) for kind, seq, stream in self._issuer.log()]
