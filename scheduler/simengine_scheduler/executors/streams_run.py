"""One run on streams whose calls compiled code issues: what `CompiledStreams` has issued, and in which form."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import compress
from typing import Protocol

from ..core.calls import Emitter, FixedList
from ..core.emission import Feeder
from ..cuda.driver import Driver
from ..launch.arguments import BufferSet
from ..native.issuer import Issuer, Outcome, Plan
from ..native.programs import Pause
from ..tracing.events import Step, StepKind
from ..tracing.trace import Trace
from .base import Options
from .compiled import CompiledCalls, failed, issue_all, taking_turns
from .compiled_lists import CompiledLists, Known, latest_of, numbers_of, run_lists
from .cuda import CudaRun, Lanes
from .flowing import Flow
from .kept_pieces import KeptPieces
from .recorder import start_recording

_KINDS: tuple[StepKind, ...] = ("issue", "wait", "observe")


class Streams(Protocol):
    """What a run needs of the streams of an executor.

    Attributes:
        executor: its name.
        options, driver, lanes, calls: of the executor.
        active: the pieces of the run.
        handles, joins: the streams, of which a run replaces the first, and events that join them.
    """

    executor: str
    options: Options
    driver: Driver
    lanes: Lanes
    calls: CompiledCalls
    active: KeptPieces | None
    handles: array[int]
    joins: array[int]

    def events(self, number: int) -> array[int]:
        """Return at least so many events, of which no run is using any."""
        ...

    def make_room(self) -> None:
        """Forget all calls if there are too many."""
        ...


class StreamsRun(CudaRun):
    """One run.

    Args:
        streams: of the executor.
        trace: of the run.
        home: the home stream.
        events: how many the issuer may need.
        begins: whether the issuer begins with the run. Otherwise it does in `issue_counted`, which comes first.
    """

    def __init__(self, streams: Streams, trace: Trace, home: int, events: int, begins: bool = True) -> None:
        super().__init__(streams.executor, streams.driver, (home, *streams.lanes.handles))
        self._streams, self._calls = streams, streams.calls
        self._issuer: Issuer = streams.calls.issuer
        self._trace, self._home, self._events, self._begins = trace, home, events, begins
        self.pieces = streams.active
        self._asked = self._needed = 0
        self._issued = 0
        self._changes = BufferSet.changes

    def start(self) -> None:
        """Let the run come after what the home stream holds."""
        self.recorder = start_recording(self._trace, self.driver, self._home)
        streams, logs = self._streams, self.recorder is not None
        streams.handles[0] = self._home
        if not self._begins:
            return
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
        """Begin, issue the programs of counted lists, and join the streams. Nothing is recorded."""
        if self.pieces is not None:
            self.pieces.look()
        streams, native = self._streams, None if self.pieces is None else self.pieces.native
        found = lists.programs.run_whole(
            *(numbers_of(known), native, streams.handles, streams.lanes.fork),
            *(streams.events(self._events), self._events, streams.joins),
        )
        if found is None:
            raise self.driver.error(self._issuer.state().status)
        halt, asked, needed = found
        joined = halt.pause is Pause.ENDED and streams.options.completion != "polling"
        counters = self._trace.counters
        counters.calls, counters.awaits = run_lists(self, lists, known, self._handle, self._issuer.issued, halt)
        self.latest = latest_of(known) or self.latest
        if joined:
            counters.add_waits(asked, needed)
        else:
            self.join()

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
