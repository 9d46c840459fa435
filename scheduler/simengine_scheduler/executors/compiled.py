"""What executors need to issue calls by compiled code: the numbers of calls, and one run.

    emitters --pull--> calls --numbers--> issuer (C++): hazards, window, streams --> driver

Invariants
    1. A call is defined once, and again when a buffer of its arguments has moved. The issuer has the address of its
       packed arguments, which the launch keeps alive until then.
    2. A call whose launch has no node, such as a Python function, is launched from Python in its turn.
    3. Calls that are known are forgotten only when no numbers of theirs are to be issued any more.
"""

from __future__ import annotations

import warnings
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from ..core.calls import FixedList, KernelCall
from ..core.emission import Feeder
from ..core.errors import CallError, call_failed
from ..core.policies import STREAM_POLICIES, follow, least_loaded, round_robin
from ..cuda.driver import Driver
from ..launch.arguments import BufferSet
from ..native import compiling
from ..native.intake import Intake
from ..native.issuer import Issuer, Outcome
from .base import Options
from .cuda import CudaRun
from .numbering import Numbering, make_numbering
from .processors import processors_of_quota

_FEW_CALLS = 16_384  # so many known calls are forgotten if most of them came once, since more than these fill caches
_MOST_CALLS = 131_072  # at so many all are forgotten in any case
_SELDOM = 8  # runs between which calls may be forgotten
_LAUNCHERS = ((12, 3), (8, 2), (6, 1), (0, 0))  # from so many cores on, so many threads make the driver's calls
_BY_POLICY = {"follow": follow, "least_loaded": least_loaded, "round_robin": round_robin}


class _KnownList:
    """The numbers of a fixed list, and the sets of its buffers."""

    __slots__ = ("fixed", "looked", "moves", "numbers")

    def __init__(self, fixed: FixedList, numbers: Callable[[list[KernelCall]], array[int]]) -> None:
        self.fixed = fixed  # kept alive, so that no other list gets its id()
        sets = {
            id(buffers): buffers for call in fixed if (buffers := getattr(call.launch, "buffers", None)) is not None
        }
        self.looked = BufferSet.changes
        self.moves = [(buffers, buffers.moves) for buffers in sets.values()]  # before the arguments are packed
        self.numbers = numbers(list(fixed))

    def is_current(self) -> bool:
        """Whether no buffer has moved since. It is asked anew only once any buffer of the process has."""
        if self.looked == BufferSet.changes:
            return True
        self.looked = BufferSet.changes
        return all(sets.moves == moves for sets, moves in self.moves)


class CompiledCalls:
    """An issuer, and the numbers of the calls that it knows.

    Args:
        issuer: gets the definitions of calls.
        conflicts: of the segments of the calls, or None if hazards are not looked for.
        lists: how many fixed lists are kept.
        numbering: numbers the calls; None for compiled code where it can.

    Attributes:
        issuer: as given.
        numbering: numbers the calls.
        by_number: the calls, each at the place of its number.
        limit: how many may be known before `make_room` forgets them.
    """

    def __init__(
        self,
        issuer: Issuer,
        conflicts: list[tuple[int, ...]] | None,
        lists: int,
        numbering: Numbering | Intake | None = None,
    ) -> None:
        self.issuer = issuer
        self._most_lists = lists
        self.numbering = numbering if numbering is not None else make_numbering(issuer, conflicts)
        self.by_number = self.numbering.by_number
        self.numbers = self.numbering.numbers
        self.hand_over = self.numbering.hand_over
        self._lists: OrderedDict[int, _KnownList] = OrderedDict()
        self.limit = min(_FEW_CALLS, _MOST_CALLS)
        self._runs = 0  # since calls were forgotten

    @property
    def is_full(self) -> bool:
        """Whether there are so many calls that `make_room` may forget them."""
        return len(self.by_number) > self.limit

    def make_room(self) -> bool:
        """Forget all calls if there are too many. Returns whether it did, so that numbers and plans are void."""
        self._runs += 1
        if not self.is_full:
            return False
        if self.limit < _MOST_CALLS and self._runs < _SELDOM:  # these runs need so many
            self.limit = min(2 * self.limit, _MOST_CALLS)
            return False
        self._runs = 0
        self._lists.clear()
        self.numbering.forget()
        self.issuer.forget()
        return True

    def numbers_of(self, fixed: FixedList) -> array[int]:
        """Return the numbers of the calls of a list. They are kept."""
        own = self._lists.get(id(fixed))
        if own is None or not own.is_current():
            own = self._lists[id(fixed)] = _KnownList(fixed, self.numbers)
            if len(self._lists) > self._most_lists:
                self._lists.popitem(last=False)
        self._lists.move_to_end(id(fixed))
        return own.numbers


def make_compiled(
    options: Options, driver: Driver, conflicts: list[tuple[int, ...]] | None = None
) -> CompiledCalls | None:
    """Return what issues calls by compiled code, or None where Python issues them.

    Python does so without a compiler, for a driver that has no functions for compiled code, for policies of a program's
    own, for polling in another order than that of the list, and where times are recorded or each call is waited for.
    Warns with a UserWarning if the compiler fails.
    """
    if not options.compiled or options.record == "times" or options.check_each:
        return None
    if options.completion == "polling" and options.policy != "fifo":
        return None
    if STREAM_POLICIES.get(options.stream_policy) is not _BY_POLICY.get(options.stream_policy):
        return None
    functions = driver.functions()
    if functions is None:
        return None
    policy = options.stream_policy if options.stream_policy in _BY_POLICY else "follow"
    try:
        polling = options.completion == "polling"
        threads = _launchers(options) if conflicts is not None and functions.set_context else 0
        issuer = Issuer(functions, options.streams, options.window, policy, polling, options.chains, threads)
    except RuntimeError as error:
        if compiling.compiler() is not None:
            warnings.warn(f"Python issues calls, which is slower than compiled code: {error}", stacklevel=2)
        return None
    return CompiledCalls(issuer, conflicts, 16 * options.graphs)


def _launchers(options: Options) -> int:
    """How many threads make the driver's calls: none where the program's own threads would have too few cores."""
    if options.launchers is not None:
        return options.launchers
    return next(threads for cores, threads in _LAUNCHERS if processors_of_quota() >= cores)


def together(feeder: Feeder) -> int:
    """Return how many calls emitters are asked for before these are issued.

    They are few at first, so that the device begins soon, and while emitters wait, so that these are looked after.
    """
    return 32 if feeder.waiting or feeder.calls < 32 else 128


def taking_turns(lists: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the items of some lists in program order: the first of each, the second of each, and so on."""
    missing = object()
    return [item for row in zip_longest(*lists, fillvalue=missing) for item in row if item is not missing]


def issue_all(
    run: CudaRun,
    step: Callable[[int], tuple[Outcome, int]],
    calls: CompiledCalls,
    foreign: Callable[[], int],
    follow_up: Callable[[], Outcome] | None = None,
) -> None:
    """Issue to the end, and launch calls from Python that the issuer leaves to it.

    Args:
        run: notes the latest call, and raises its faults.
        step: issues from a place on; returns how it ended and where.
        calls: knows which call could not be launched.
        foreign: returns the stream handle of a call that Python launches.
        follow_up: called behind such a call.

    Raises:
        CallError: a call could not be launched.
    """
    done = 0
    while True:
        outcome, done = step(done)
        if outcome is Outcome.DONE:
            return
        if outcome is Outcome.FOREIGN:
            call = run.latest = calls.by_number[calls.issuer.state().number]
            try:
                call.launch.issue(foreign())
            except Exception as error:
                raise call_failed(call, run.executor, error) from error
            outcome = follow_up() if follow_up is not None else outcome
            done += 1
        if outcome is Outcome.FAILED:
            raise failed(run, calls)


def failed(run: CudaRun, calls: CompiledCalls) -> CallError:
    """Return the error of the issuer, which names the call that it was at."""
    state = calls.issuer.state()
    cause = run.driver.error(state.status)
    call = run.latest = calls.by_number[state.number]
    error = call_failed(call, run.executor, cause)
    error.__cause__ = cause
    return error
