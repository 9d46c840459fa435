"""What executors need to issue calls by compiled code: the numbers of calls, and one run.

    emitters --pull--> calls --numbers--> issuer (C++): hazards, window, streams --> driver

Invariants
    1. A call is defined once, and again when a buffer of its arguments has moved. The issuer has the address of its
       packed arguments, which the launch keeps alive until then.
    2. A call whose launch has no node, such as a Python function, is launched from Python in its turn.
    3. Calls that are known are forgotten between runs only.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from ..core.calls import FixedList, KernelCall
from ..core.errors import call_failed
from ..core.policies import STREAM_POLICIES, follow, least_loaded, round_robin
from ..cuda.driver import Driver
from ..native.issuer import Issuer, Outcome
from .base import Options
from .cuda import CudaRun

_MOST_CALLS = 100_000  # at so many known calls all are forgotten
_BY_POLICY = {"follow": follow, "least_loaded": least_loaded, "round_robin": round_robin}


class _Known:
    """A call that the issuer knows, and what tells whether its arguments have moved."""

    __slots__ = ("buffers", "epoch", "number")

    def __init__(self, number: int, buffers: Any, epoch: int) -> None:
        self.number = number
        self.buffers = buffers
        self.epoch = epoch

    def has_moved(self) -> bool:
        """Whether the call must be defined again."""
        return self.buffers is not None and self.buffers.epoch != self.epoch


class _KnownList:
    """The numbers of a fixed list, and its calls with other sets of buffers each."""

    __slots__ = ("fixed", "moving", "numbers")

    def __init__(self, fixed: FixedList, numbers: array[int], known: Sequence[_Known]) -> None:
        self.fixed = fixed  # kept alive, so that no other list gets its id()
        self.numbers = numbers
        self.moving = list({id(each.buffers): each for each in known if each.buffers is not None}.values())


class CompiledCalls:
    """An issuer, and the numbers of the calls that it knows. Raises RuntimeError where there is no compiler."""

    def __init__(self, issuer: Issuer, conflicts: list[tuple[int, ...]] | None, lists: int) -> None:
        self.issuer = issuer
        self._conflicts = conflicts  # None if hazards are not looked for
        self._most_lists = lists
        self._segments = -1
        self._known: dict[KernelCall, _Known] = {}
        self._lists: OrderedDict[int, _KnownList] = OrderedDict()
        self._combinations: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        self._words = array("q")  # definitions that the issuer does not have yet

    def begin(self) -> bool:
        """Begin a run. Returns whether all calls were forgotten, with whatever was made of them."""
        if len(self._known) <= _MOST_CALLS:
            return False
        for table in (self._known, self._lists, self._combinations):
            table.clear()  # type: ignore[attr-defined]
        self.issuer.forget()
        return True

    def number(self, call: KernelCall) -> int:
        """Return the number of a call. Raises ValueError if it names a segment that the table lacks."""
        known = self._known.get(call)
        if known is None or (known.buffers is not None and known.buffers.epoch != known.epoch):
            known = self._define(call, known)
        return known.number

    def numbers(self, fixed: FixedList) -> array[int]:
        """Return the numbers of the calls of a list."""
        own = self._lists.get(id(fixed))
        if own is None:
            numbers = array("i", map(self.number, fixed))
            own = self._lists[id(fixed)] = _KnownList(fixed, numbers, [self._known[call] for call in fixed])
            if len(self._lists) > self._most_lists:
                self._lists.popitem(last=False)
        elif any(each.has_moved() for each in own.moving):
            for call in fixed:
                self.number(call)
        self._lists.move_to_end(id(fixed))
        return own.numbers

    def hand_over(self) -> None:
        """Give the issuer the definitions and conflicts that it lacks. Call it before numbers are issued."""
        if self._conflicts is not None and len(self._conflicts) != self._segments:
            self.issuer.set_conflicts(self._conflicts)
            self._segments = len(self._conflicts)
        if self._words:
            self.issuer.define(self._words)
            self._words = array("q")

    def _define(self, call: KernelCall, known: _Known | None) -> _Known:
        node, buffers = getattr(call.launch, "node", None), getattr(call.launch, "buffers", None)
        if known is None:
            known = self._known[call] = _Known(len(self._known), None, 0)
        combination = self._combination(call)
        if node is None:
            self._words.extend((known.number, *(0,) * 9, combination))
            return known
        known.buffers, known.epoch = buffers, 0 if buffers is None else buffers.epoch
        function, grid, block, shared, arguments = node()
        self._words.extend((known.number, function, *grid, *block, shared, arguments, combination))
        return known

    def _combination(self, call: KernelCall) -> int:
        if self._conflicts is None:
            return 0
        key = call.reads, call.writes + call.updates
        number = self._combinations.get(key)
        if number is None:
            table = len(self._conflicts)
            wrong = next((s for s in key[0] + key[1] if not 0 <= s < table), None)
            if wrong is not None:
                del self._known[call]
                raise ValueError(
                    f"call {call.name!r} names segment {wrong}, but the table holds {table}; "
                    f"intern its segments in the Segments given to the executor"
                )
            number = self._combinations[key] = self.issuer.add_combination(*key)
        return number


def make_compiled(
    options: Options, driver: Driver, conflicts: list[tuple[int, ...]] | None = None
) -> CompiledCalls | None:
    """Return what issues calls by compiled code, or None where Python issues them.

    Python does so without a compiler, for a driver that has no functions for compiled code, for policies of a program's
    own, and where times are recorded or each call is waited for.
    """
    if not options.compiled or options.record == "times" or options.check_each:
        return None
    if STREAM_POLICIES.get(options.stream_policy) is not _BY_POLICY.get(options.stream_policy):
        return None
    functions = driver.functions()
    if functions is None:
        return None
    policy = options.stream_policy if options.stream_policy in _BY_POLICY else "follow"
    try:
        issuer = Issuer(functions, options.streams, options.window, policy)
    except RuntimeError:
        return None
    return CompiledCalls(issuer, conflicts, 16 * options.graphs)


def taking_turns(lists: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the items of some lists in program order: the first of each, the second of each, and so on."""
    missing = object()
    return [item for row in zip_longest(*lists, fillvalue=missing) for item in row if item is not missing]


def issue_all(
    run: CudaRun,
    step: Callable[[int], tuple[Outcome, int]],
    call_at: Callable[[int], KernelCall],
    issuer: Issuer,
    foreign: Callable[[], int],
    follow_up: Callable[[], Outcome] | None = None,
) -> None:
    """Issue to the end, and launch calls from Python that the issuer leaves to it.

    Args:
        run: notes the latest call, and raises its faults.
        step: issues from a place on; returns how it ended and where.
        call_at: the call at a place, for errors.
        issuer: knows what failed.
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
        call = run.latest = call_at(done)
        if outcome is Outcome.FOREIGN:
            try:
                call.launch.issue(foreign())
            except Exception as error:
                raise call_failed(call, run.executor, error) from error
            outcome = follow_up() if follow_up is not None else outcome
            done += 1
        if outcome is Outcome.FAILED:
            cause = run.driver.error(issuer.state().status)
            raise call_failed(call, run.executor, cause) from cause
