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
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

from ..core.calls import FixedList, KernelCall
from ..core.errors import call_failed
from ..core.policies import STREAM_POLICIES, follow, least_loaded, round_robin
from ..cuda.driver import Driver
from ..native import compiling
from ..native.issuer import Issuer, Outcome
from .base import Options
from .cuda import CudaRun

_MOST_CALLS = 100_000  # at so many known calls all are forgotten
_BY_POLICY = {"follow": follow, "least_loaded": least_loaded, "round_robin": round_robin}


_Known = tuple[int, Any, int]  # number of a call, the set of its buffers or None, and the moves of the set


class _KnownList:
    """The numbers of a fixed list, and the sets of its buffers."""

    __slots__ = ("fixed", "moves", "numbers")

    def __init__(self, fixed: FixedList, numbers: array[int], known: Iterable[_Known]) -> None:
        self.fixed = fixed  # kept alive, so that no other list gets its id()
        self.numbers = numbers
        self.moves = list({id(sets): (sets, moves) for _, sets, moves in known if sets is not None}.values())


class CompiledCalls:
    """An issuer, and the numbers of the calls that it knows. Raises RuntimeError where there is no compiler.

    Attributes:
        issuer: as given.
        by_number: the calls, each at the place of its number.
    """

    def __init__(self, issuer: Issuer, conflicts: list[tuple[int, ...]] | None, lists: int) -> None:
        self.issuer = issuer
        self._conflicts = conflicts  # None if hazards are not looked for
        self._most_lists = lists
        self._segments = 0  # whose conflicts the issuer has
        self.by_number: list[KernelCall] = []
        self._known: dict[KernelCall, _Known] = {}
        self._lists: OrderedDict[int, _KnownList] = OrderedDict()
        self._combinations: dict[tuple[tuple[int, ...], ...], int] = {}
        self._words = array("q")  # definitions of calls that the issuer does not have yet
        self._segments_of = array("i")  # combinations that it does not have yet

    @property
    def is_full(self) -> bool:
        """Whether there are so many calls that `make_room` will forget them."""
        return len(self._known) > _MOST_CALLS

    def make_room(self) -> bool:
        """Forget all calls if there are too many. Returns whether it did, so that numbers and plans are void."""
        if not self.is_full:
            return False
        self._known.clear()
        self.by_number.clear()
        self._lists.clear()
        self._combinations.clear()
        self._words, self._segments_of = array("q"), array("i")
        self.issuer.forget()
        return True

    def numbers(self, calls: Iterable[KernelCall]) -> array[int]:
        """Return the numbers of calls. Raises ValueError if one names a segment that the table lacks."""
        found, known_of, define = array("i"), self._known.get, self._define
        for call in calls:
            known = known_of(call)
            if known is not None and (known[1] is None or known[1].moves == known[2]):
                found.append(known[0])
            else:
                found.append(define(call, None if known is None else known[0]))
        return found

    def numbers_of(self, fixed: FixedList) -> array[int]:
        """Return the numbers of the calls of a list. They are kept."""
        own = self._lists.get(id(fixed))
        if own is None or any(sets.moves != moves for sets, moves in own.moves):
            numbers = self.numbers(fixed)
            own = self._lists[id(fixed)] = _KnownList(fixed, numbers, map(self._known.__getitem__, fixed))
            if len(self._lists) > self._most_lists:
                self._lists.popitem(last=False)
        self._lists.move_to_end(id(fixed))
        return own.numbers

    def hand_over(self) -> None:
        """Give the issuer the definitions and conflicts that it lacks. Call it before numbers are issued."""
        if self._conflicts is not None and len(self._conflicts) != self._segments:
            self._hand_over_conflicts(self._conflicts)
        if self._segments_of:
            self.issuer.add_combinations(self._segments_of)
            self._segments_of = array("i")
        if self._words:
            self.issuer.define(self._words)
            self._words = array("q")

    def _hand_over_conflicts(self, conflicts: list[tuple[int, ...]]) -> None:
        """Give the issuer the conflicts of new segments, and of those that conflict with new ones."""
        new = range(self._segments, len(conflicts))
        changed = {other for segment in new for other in conflicts[segment] if other < self._segments}
        words = array("i")
        for segment in (*changed, *new):
            words.extend((segment, len(conflicts[segment]), *conflicts[segment]))
        self.issuer.set_conflicts(words)
        self._segments = len(conflicts)

    def _define(self, call: KernelCall, number: int | None) -> int:
        """Define a call under its number, or under a new one."""
        combination, launch = 0, call.launch
        if self._conflicts is not None:
            key = call.reads, call.writes, call.updates
            found = self._combinations.get(key)
            combination = self._combine(call, key) if found is None else found
        if number is None:
            number = len(self.by_number)
            self.by_number.append(call)
        node = getattr(launch, "node", None)
        if node is None or not getattr(launch, "in_graphs", True):
            self._known[call] = number, None, 0
            self._words.extend((number, 0, 0, 0, 0, 0, 0, 0, 0, 0, combination))
            return number
        buffers = getattr(launch, "buffers", None)
        moves = 0 if buffers is None else buffers.moves  # read before the arguments are packed
        self._known[call] = number, buffers, moves
        function, grid, block, shared, arguments = node()
        self._words.extend((number, function, *grid, *block, shared, arguments, combination))
        return number

    def _combine(self, call: KernelCall, key: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]) -> int:
        """Number a new combination of segments."""
        reads, writes, updates = key
        touched, table = (*reads, *writes, *updates), len(self._conflicts or ())
        if touched and not 0 <= min(touched) <= max(touched) < table:
            wrong = next(segment for segment in touched if not 0 <= segment < table)
            raise ValueError(
                f"call {call.name!r} names segment {wrong}, but the table holds {table}; "
                f"intern its segments in the Segments given to the executor"
            )
        number = self._combinations[key] = len(self._combinations)
        self._segments_of.extend((len(reads), len(writes) + len(updates), *touched))
        return number


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
        issuer = Issuer(functions, options.streams, options.window, policy, polling)
    except RuntimeError as error:
        if compiling.compiler() is not None:
            warnings.warn(f"Python issues calls, which is slower than compiled code: {error}", stacklevel=2)
        return None
    return CompiledCalls(issuer, conflicts, 16 * options.graphs)


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
        call = run.latest = calls.by_number[calls.issuer.state().number]
        if outcome is Outcome.FOREIGN:
            try:
                call.launch.issue(foreign())
            except Exception as error:
                raise call_failed(call, run.executor, error) from error
            outcome = follow_up() if follow_up is not None else outcome
            done += 1
        if outcome is Outcome.FAILED:
            cause = run.driver.error(calls.issuer.state().status)
            raise call_failed(call, run.executor, cause) from cause
