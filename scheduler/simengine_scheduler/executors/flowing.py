"""`Flow`: emitters whose calls compiled code takes and issues, without Python between one batch and the next.

    emitters <--pull-- flow (C++) --numbers, pieces--> issuer --> driver
                         |
                         +-- a call that only Python can launch, buffers that have moved, too many calls

Runs that are recorded, and calls that compiled code cannot number, go batch by batch through Python instead.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import Any

from ..core.calls import AwaitCounts, Emitter, Idle, KernelCall
from ..core.emission import close_all, iterators_of, never_yielded, not_a_call
from ..core.errors import call_failed
from ..launch.arguments import BufferSet
from ..native.intake import Intake
from ..native.issuer import Outcome
from .compiled import CompiledCalls, failed
from .cuda import CudaRun
from .kept_pieces import KeptPieces


class Halt(IntEnum):
    """Why a flow halts, as `native/flow.h` has it."""

    ENDED = 0
    RAISED = 1
    WRONG = 2
    OTHER = 3
    FOREIGN = 4
    FAILED = 5
    CHANGED = 6
    FULL = 7
    AGAIN = 8


_HALTS = tuple(Halt)  # by their numbers
_CHANGES, _LIMIT, _TAKEN, _AWAITS, _LATEST, _PLACE, _SEGMENT, _WORDS = range(8)  # of the state


class Flow:
    """The flow of an executor, for one run after the other.

    Args:
        calls: numbers and issues calls, by compiled code.

    Attributes:
        calls_taken, awaits: how many calls the emitters of the run have yielded, and how many awaits.
    """

    def __init__(self, calls: CompiledCalls) -> None:
        assert isinstance(calls.numbering, Intake)
        self._calls, self._intake = calls, calls.numbering
        self._library = self._intake.library
        self._taken: list[KernelCall] = []
        self._items: list[Iterator[Any]] = []
        self._latest: list[dict[KernelCall, int]] = []
        self._feed = self._library.feed_make(KernelCall, Idle, AwaitCounts)
        handles = self._feed, self._intake.handle, calls.issuer.handle
        self._flow = self._library.flow_make(*handles, self._taken, BufferSet)
        self._words = array("q", bytes(8 * _WORDS))
        self._at_words = self._words.buffer_info()[0]
        self._pieces: KeptPieces | None = None
        self._home: int | None = None
        self.calls_taken = self.awaits = 0

    def __del__(self) -> None:
        flow, self._flow = getattr(self, "_flow", None), None
        if flow:
            self._library.flow_free(flow)
            self._library.feed_free(self._feed)

    def begin(
        self,
        emitters: Iterable[Emitter],
        pieces: KeptPieces | None = None,
        home: int | None = None,
        take_event: Callable[[], int] | None = None,
    ) -> None:
        """Begin a run, for which the issuer is ready.

        Args:
            emitters: what yields the calls.
            pieces: of the run, if it has some.
            home: the stream of all calls, if they go to one stream in program order.
            take_event: returns an event of this stream.
        """
        items = self._items = iterators_of(emitters)
        latest = self._latest = [{} for _ in items]
        self._taken.clear()
        self._pieces, self._home = pieces, home
        events = None if take_event is None else array("q", [take_event() for _ in items])
        at_events = None if events is None else events.buffer_info()[0]
        handle = None if pieces is None else pieces.native.handle
        self._library.flow_begin(self._flow, items, latest, handle, home or 0, at_events)

    def run(self, run: CudaRun, make_room: Callable[[], None], drain: Callable[[], None] = lambda: None) -> None:
        """Issue all calls of the emitters.

        Args:
            run: notes the latest call, and raises its faults.
            make_room: forgets calls, since there are too many.
            drain: issues what waits in the window.

        Raises:
            CallError: a call could not be launched.
            ValueError, TypeError: an emitter yielded what is no call, or a call that cannot be issued.
        """
        words, calls, flow_run = self._words, self._calls, self._library.flow_run
        words[_CHANGES] = BufferSet.changes
        self._look()
        while True:
            words[_LIMIT] = calls.limit
            halt = _HALTS[flow_run(self._flow, self._at_words)]
            if halt is Halt.ENDED:
                break
            if halt is Halt.CHANGED:
                drain()  # with polling, calls of before may wait, which belong to the memory of before
                words[_CHANGES] = BufferSet.changes
                self._look()
            elif halt is Halt.FULL:
                drain()
                make_room()
            else:
                self._deal_with(halt, run)
        self.calls_taken, self.awaits = words[_TAKEN], words[_AWAITS]
        if words[_LATEST] >= 0:
            run.latest = calls.by_number[words[_LATEST]]

    def close(self) -> None:
        """Close emitters that have not ended, after a failure, so that their `finally` blocks run."""
        items, self._items = self._items, []
        self._library.flow_end(self._flow)
        self._latest.clear()
        close_all(items)

    def _deal_with(self, halt: Halt, run: CudaRun) -> None:
        words = self._words
        if halt is Halt.FOREIGN:
            self._launch(run)
        elif halt is Halt.FAILED:
            raise failed(run, self._calls)
        elif halt is Halt.WRONG:
            raise self._intake.wrong(self._taken, words[_PLACE], words[_SEGMENT])
        elif halt is Halt.OTHER:
            item = self._library.feed_item(self._feed)
            raise never_yielded(item) if type(item) is AwaitCounts else not_a_call(item)

    def _launch(self, run: CudaRun) -> None:
        """Launch a call that compiled code cannot launch."""
        issuer = self._calls.issuer
        state = issuer.state()
        call = run.latest = self._calls.by_number[state.number]
        try:
            call.launch.issue(state.handle if self._home is None else self._home)
        except Exception as error:
            raise call_failed(call, run.executor, error) from error
        if self._home is None and issuer.issued() is Outcome.FAILED:
            raise failed(run, self._calls)
        self._library.flow_advance(self._flow)

    def _look(self) -> None:
        """Drop the pieces whose arguments have changed."""
        if self._pieces is not None:
            self._pieces.look()


def make_flow(calls: CompiledCalls) -> Flow | None:
    """Return the flow of an executor, or None where compiled code cannot call Python's functions."""
    return Flow(calls) if isinstance(calls.numbering, Intake) else None
