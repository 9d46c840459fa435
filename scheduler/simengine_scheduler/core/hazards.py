"""Hazards: which earlier calls must complete before a call may start.

For an earlier call a and a later call b, on segments that conflict:

    RAW   a writes what b reads     b would read a stale value
    WAR   a reads what b writes     a would read b's value
    WAW   a writes what b writes    a's value would survive

An update counts as a read and a write. ACS (arXiv 2401.12377), from which the window comes, prints an algorithm
that checks WAR and WAW only; without RAW a consumer could overtake its producer, so all three are checked here.

`HazardTracker` is the incremental form. It rests on two facts about kernel lists: calls with the same reads, writes
and updates come again and again, and whether two such combinations conflict never changes. Each combination becomes a
numbered *plan*, which holds the set of all plans that it conflicts with. A call is checked by intersecting that set
with the set of plans in flight. This is one set operation, whatever the number of the call's segments. A plan that
shares segments with very many others gets its set only after it has come several times. Until then it is compared with
the plans in flight one by one. `conflict` is the pairwise definition, which checks the tracker and validates traces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .calls import KernelCall

Segs = tuple[int, ...]
_MANY = 6  # upstream calls from which on it pays to look for waits that others imply
_MAX_PLANS = 4096  # at so many plans the tracker forgets those that are not in flight
_MAX_PAIRS = 500_000  # conflicts stored in sets, some 30 MB; beyond this, plans are compared one by one
_SPARSE = 256  # a new plan that shares segments with at most so many plans gets its set of conflicts at once
_VISITS = 3  # other plans get their set after so many calls


class _Plan:
    """One combination of reads, writes and updates."""

    __slots__ = (
        "conflicting",
        "number",
        "reads",
        "stamp",
        "touched",
        "touches",
        "visits",
        "writes",
        "written",
    )

    def __init__(self, number: int, reads: Segs, written: Segs, conflicts: Sequence[Segs]) -> None:
        self.number = number
        self.reads = reads
        self.written = written
        self.touches = frozenset(reads + written)
        self.touched = frozenset(
            c for s in reads + written for c in conflicts[s]
        )  # what conflicts with any of its segments
        self.writes = frozenset(
            c for s in written for c in conflicts[s]
        )  # what conflicts with the segments that it writes
        self.visits = 0
        self.conflicting: set[int] = set()  # numbers of conflicting plans
        self.stamp: object = None  # the tracker's stamp when `conflicting` was last complete

    def conflicts_with(self, other: _Plan) -> bool:
        """Whether calls with these two plans must run one after the other. The relation is symmetric."""
        return not (self.touched.isdisjoint(other.written) and self.writes.isdisjoint(other.touches))


class HazardTracker:
    """Finds for each call, added in program order, the upstream calls: those that it must wait for.

    Only live calls, which were added and not removed, are upstream. A call is left out where another upstream call
    waits for it: of several calls with one plan that writes, only the newest is named, and long upstream sets are
    thinned further. Sequence numbers must grow from call to call for as long as the tracker lives, also across `clear`.
    """

    __slots__ = (
        "_alive",
        "_behind",
        "_conflicts",
        "_known",
        "_latest",
        "_latest_of",
        "_live",
        "_numbered",
        "_pairs",
        "_plans",
        "_stamp",
        "_touching",
        "_unwriting",
        "_writing",
    )

    def __init__(self, conflicts: list[tuple[int, ...]]) -> None:
        self._conflicts = conflicts
        self._known = 0  # number of segments when the plans were made
        self._live: dict[int, _Plan] = {}  # by sequence number, in program order
        self._behind: dict[int, set[int]] = {}  # live call -> calls that it is known to come after
        self._alive: set[int] = set()  # numbers of the plans of live calls
        self._latest: dict[int, int] = {}  # plan number -> its newest call, which is live if the plan is in `_alive`
        self._latest_of: Callable[[int], int] = self._latest.__getitem__
        self._unwriting: dict[int, set[int]] = {}  # plan that writes nothing -> all its live calls
        self._forget_plans()

    @property
    def live(self) -> set[int]:
        """The calls that were added and not removed."""
        return set(self._live)

    def add(self, seq: int, call: KernelCall) -> set[int]:
        """Add a call and return the live calls that it must wait for.

        Raises ValueError if the call names a segment that the table does not hold.
        """
        plan = call._plan
        alive = self._alive
        if plan.stamp is self._stamp:
            hits = plan.conflicting & alive
        else:
            plan = self._plan_of(call)
            hits = self._compare(plan)
        upstream = set(map(self._latest_of, hits))
        if self._unwriting:
            self._add_unwriting(upstream, hits, seq, plan)
        if len(upstream) > _MANY:
            upstream = self._reduce(upstream, seq)
        number = plan.number
        self._latest[number] = seq
        alive.add(number)
        self._live[seq] = plan
        return upstream

    def remove(self, seq: int) -> None:
        """Remove a call that has completed. Raises KeyError if it is not live."""
        plan = self._live.pop(seq)
        number = plan.number
        if self._behind:
            self._behind.pop(seq, None)
        if not plan.written:
            others = self._unwriting[number]
            others.discard(seq)
            if others:
                self._latest[number] = max(others)
                return
        if self._latest[number] == seq:
            self._alive.discard(number)

    def clear(self) -> None:
        """Forget all calls. Plans stay."""
        self._live.clear()
        self._behind.clear()
        self._alive.clear()
        self._latest.clear()
        for calls in self._unwriting.values():
            calls.clear()

    def _reduce(self, upstream: set[int], seq: int) -> set[int]:
        """Leave out calls that the newest upstream call is known to come after."""
        newest = max(upstream)
        known = self._behind.get(newest)
        if known is None:
            self._behind[seq] = set(upstream)
            return upstream
        behind = known | upstream
        if len(behind) > 2 * len(self._live):
            behind.intersection_update(self._live)  # otherwise a long chain would store all of its calls
        self._behind[seq] = behind
        return upstream - known

    def _add_unwriting(self, upstream: set[int], hits: Iterable[int], seq: int, plan: _Plan) -> None:
        """Add all calls of plans that write nothing. They do not wait for each other, so the newest implies none."""
        for other in hits:
            upstream.update(self._unwriting.get(other, ()))
        if not plan.written:
            self._unwriting[plan.number].add(seq)

    def _plan_of(self, call: KernelCall) -> _Plan:
        """Return the plan for a call's segments, and store it with the call.

        Segments may be interned after the plans were made. The first call that names one comes through here. Plans are
        made anew if a segment that they touch conflicts with a new one. Until then no call in flight touches the new
        segment.
        """
        if len(self._plans) >= _MAX_PLANS or (len(self._conflicts) != self._known and not self._take_segments()):
            self._renew_plans()
        written = call.writes + call.updates
        plan = self._plans.get((call.reads, written))
        if plan is None:
            for segment in call.reads + written:
                if not 0 <= segment < self._known:
                    raise ValueError(
                        f"call {call.name!r} names segment {segment}, but the table holds {self._known}; "
                        f"intern its segments in the Segments given to the executor"
                    )
            plan = self._make_plan(call.reads, written)
        object.__setattr__(call, "_plan", plan)
        return plan

    def _make_plan(self, reads: Segs, written: Segs) -> _Plan:
        """Make the plan of a combination, number it, and enter it under its segments."""
        plan = _Plan(len(self._numbered), reads, written, self._conflicts)
        self._plans[reads, written] = plan
        self._numbered.append(plan)
        for segment in plan.touches:
            self._touching[segment].add(plan.number)
        for segment in written:
            self._writing[segment].add(plan.number)
        if not written:
            self._unwriting[plan.number] = set()
        if sum(len(users) for users in self._users(plan)) <= _SPARSE:
            self._resolve(plan)
            for number in plan.conflicting:
                self._numbered[number].conflicting.add(plan.number)
            self._pairs += len(plan.conflicting)
        else:
            self._stamp = object()  # the plans that it conflicts with lack it in their sets
        return plan

    def _users(self, plan: _Plan) -> list[set[int]]:
        """Return sets whose union is the plans that a plan conflicts with: RAW and WAW, then WAR."""
        return [self._writing[s] for s in plan.touched] + [self._touching[s] for s in plan.writes]

    def _resolve(self, plan: _Plan) -> None:
        self._pairs -= len(plan.conflicting)
        plan.conflicting = set().union(*self._users(plan))
        self._pairs += len(plan.conflicting)
        plan.stamp = self._stamp

    def _compare(self, plan: _Plan) -> set[int]:
        """Return the plans in flight that a plan conflicts with. A plan that has come often gets its whole set."""
        if plan.stamp is not self._stamp:
            plan.visits += 1
            if plan.visits <= _VISITS or self._pairs > _MAX_PAIRS:
                return {n for n in self._alive if plan.conflicts_with(self._numbered[n])}
            self._resolve(plan)
            plan.visits = 0
        return plan.conflicting & self._alive

    def _forget_plans(self) -> None:
        self._stamp = object()
        self._known = len(self._conflicts)
        self._pairs: int = 0  # entries of the `conflicting` sets of all plans
        self._plans: dict[tuple[Segs, Segs], _Plan] = {}
        self._numbered: list[_Plan] = []
        self._writing: list[set[int]] = [set() for _ in range(self._known)]  # segment -> plans that write it
        self._touching: list[set[int]] = [set() for _ in range(self._known)]  # segment -> plans that read or write it

    def _take_segments(self) -> bool:
        """Take new segments in, if no plan touches a segment that conflicts with one of them."""
        first, touching = self._known, self._touching
        new = range(first, len(self._conflicts))
        if any(other < first and touching[other] for segment in new for other in self._conflicts[segment]):
            return False
        self._writing.extend(set() for _ in new)
        touching.extend(set() for _ in new)
        self._known += len(new)
        return True

    def _renew_plans(self) -> None:
        """Make plans anew, for the live calls only: segments were interned, or there are too many plans."""
        live = list(self._live.items())
        behind = dict(self._behind)
        self.clear()
        self._behind.update(behind)
        self._unwriting.clear()
        self._forget_plans()
        for seq, old in live:
            plan = self._plans.get((old.reads, old.written)) or self._make_plan(old.reads, old.written)
            self._live[seq] = plan
            self._alive.add(plan.number)
            self._latest[plan.number] = seq
            if not plan.written:
                self._unwriting[plan.number].add(seq)


def conflict(earlier: KernelCall, later: KernelCall, conflicts: Sequence[tuple[int, ...]]) -> bool:
    """Whether `later` must wait for `earlier`, by comparing every pair of their segments."""
    return any(b in conflicts[a] for a, b in _pairs(earlier, later))


def conflict_whole(earlier: KernelCall, later: KernelCall, conflicts: Sequence[tuple[int, ...]]) -> bool:
    """Whether `later` must wait for all tiles of `earlier`, not only for those that touch the same parts."""
    tiled = set(earlier.tiled).intersection(later.tiled)
    return any(b in conflicts[a] and not (a == b and a in tiled) for a, b in _pairs(earlier, later))


def _pairs(earlier: KernelCall, later: KernelCall) -> list[tuple[int, int]]:
    """Pairs of segments of the two calls of which at least one is written."""
    earlier_writes = earlier.writes + earlier.updates
    later_writes = later.writes + later.updates
    pairs = [(a, b) for a in earlier_writes for b in later.reads]  # RAW
    pairs += [(a, b) for a in earlier.reads for b in later_writes]  # WAR
    # An update reads too; its reads conflict with writes only, and those pairs are among these.
    return pairs + [(a, b) for a in earlier_writes for b in later_writes]  # WAW
