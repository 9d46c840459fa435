"""Hazards: which earlier calls must complete before a call may start.

For an earlier call a and a later call b, on segments that conflict:

    RAW   a writes what b reads     b would read a stale value
    WAR   a reads what b writes     a would read b's value
    WAW   a writes what b writes    a's value would survive

An update counts as a read and a write. ACS (arXiv 2401.12377), from which the window comes, prints an algorithm
that checks WAR and WAW only; without RAW a consumer could overtake its producer, so all three are checked here.

`HazardTracker` is the incremental form: for each segment it keeps the last writer and the readers since. Its cost
does not grow with the window. The upstream sets it returns leave out calls that are implied: a writer hides the
readers and writers of its own segment before it, for it waits for them itself. `conflict` is the pairwise
definition, used to check the tracker and to validate traces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from .calls import KernelCall

_NONE = -1  # never a live sequence number
_MAX_PLANS = 4096


class _Plan(NamedTuple):
    """What a tracker knows about one combination of reads, writes and updates, whichever call has it."""

    owner: object  # the tracker's token when the plan was made
    writers_of: Callable[[list[int]], tuple[int, ...]]  # picks the last writers of all that the call conflicts with
    own_readers: tuple[set[int], ...]  # readers of the segments that the call writes
    other_readers: tuple[set[int], ...]  # readers of further segments that conflict with those
    read: tuple[set[int], ...]  # readers of the segments that the call reads
    written: tuple[int, ...]


class HazardTracker:
    """Upstream sets of calls added in program order, on prebuilt integer segments.

    `live` holds the sequence numbers of calls that were added and not removed; only those are ever upstream. Numbers
    must grow from call to call for as long as the tracker lives, also across `clear`.
    """

    __slots__ = ("_conflicts", "_owner", "_plans", "_readers", "_sweep_at", "_sweep_every", "_writer", "live")

    def __init__(self, conflicts: list[tuple[int, ...]], capacity: int = 32) -> None:
        self.live: set[int] = set()
        self._conflicts = conflicts
        self._writer: list[int] = []  # segment -> the last call that wrote it
        self._readers: list[set[int]] = []  # segment -> calls that have read it since
        self._owner = object()  # replaced when plans go out of date
        self._plans: dict[tuple[tuple[int, ...], ...], _Plan] = {}
        self._sweep_every = self._sweep_at = 16 * capacity

    def add(self, seq: int, call: KernelCall) -> set[int]:
        """Add a call and return the live calls that it must wait for.

        Raises ValueError if the call names a segment that the table does not hold.
        """
        writer = self._writer
        if len(writer) != len(self._conflicts):
            self._grow()
        plan = call._plan
        if plan is None or plan[0] is not self._owner:
            plan = self._plan(call)
        _, writers_of, own_readers, other_readers, read, written = plan
        upstream = set(writers_of(writer))  # RAW and WAW
        for readers in own_readers:  # WAR
            if readers:
                upstream |= readers
                readers.clear()
        for readers in other_readers:  # WAR on the whole, or on other members than the one written: they stay readers
            if readers:
                upstream |= readers
        upstream &= self.live
        for readers in read:
            readers.add(seq)
        for segment in written:
            writer[segment] = seq
        self.live.add(seq)
        if seq >= self._sweep_at:
            self._sweep(seq)
        return upstream

    def remove(self, seq: int) -> None:
        """A call has completed: it is upstream of nothing any more."""
        self.live.discard(seq)

    def clear(self) -> None:
        """Forget all calls."""
        self.live.clear()

    def _grow(self) -> None:
        """Segments were interned since the last call: make room, and drop plans, whose conflicts may be out of date."""
        missing = len(self._conflicts) - len(self._writer)
        self._writer.extend([_NONE] * missing)
        self._readers.extend(set() for _ in range(missing))
        self._plans.clear()
        self._owner = object()

    def _plan(self, call: KernelCall) -> _Plan:
        """Return the plan for a call's segments, and leave it with the call for the next time."""
        accesses = (call.reads, call.writes, call.updates)
        plan = self._plans.get(accesses)
        if plan is None:
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            plan = self._plans[accesses] = self._make_plan(call)
        object.__setattr__(call, "_plan", plan)
        return plan

    def _make_plan(self, call: KernelCall) -> _Plan:
        conflicts, readers = self._conflicts, self._readers
        written = tuple(dict.fromkeys(call.writes + call.updates))
        touched = dict.fromkeys(call.reads + written)
        for segment in touched:
            if not 0 <= segment < len(conflicts):
                raise ValueError(
                    f"call {call.name!r} names segment {segment}, but the table holds {len(conflicts)}; "
                    f"intern its segments in the Segments given to the executor"
                )
        closure = tuple(dict.fromkeys(c for s in touched for c in conflicts[s]))
        others = dict.fromkeys(c for s in written for c in conflicts[s] if c not in written)
        return _Plan(
            self._owner,
            _getter(closure),
            tuple(readers[s] for s in written),
            tuple(readers[s] for s in others),
            tuple(readers[s] for s in dict.fromkeys(call.reads) if s not in written),
            written,
        )

    def _sweep(self, seq: int) -> None:
        """Drop readers that have completed: the set of a segment that is only ever read would grow for ever."""
        self._sweep_at = seq + self._sweep_every
        for readers in self._readers:
            if len(readers) > 8:
                readers &= self.live


def _getter(closure: tuple[int, ...]) -> Callable[[list[int]], Any]:
    """Return a function that picks these entries of a list, as a tuple: C code, where a loop would take three times as long."""
    if len(closure) >= 2:
        return itemgetter(*closure)
    return lambda entries: tuple(entries[c] for c in closure)


def conflict(earlier: KernelCall, later: KernelCall, conflicts: Sequence[tuple[int, ...]]) -> bool:
    """Whether `later` must wait for `earlier`, by comparing every pair of their segments."""
    earlier_writes = earlier.writes + earlier.updates
    later_writes = later.writes + later.updates
    pairs = [(a, b) for a in earlier_writes for b in later.reads]  # RAW
    pairs += [(a, b) for a in earlier.reads for b in later_writes]  # WAR
    pairs += [(a, b) for a in earlier_writes for b in later_writes]  # WAW
    # An update reads too; its reads conflict with writes only, and those pairs are already among the above.
    return any(b in conflicts[a] for a, b in pairs)
