"""Planners: the order and the streams of a whole run of calls. Policies (`policies.py`) see one call at a time.

A planner is `plan(work, state) -> [(seq, stream), ...]`. It returns every call of the run once, in an order in which
each call comes after those that it waits for. To add one, write the function and enter it in the table `PLANNERS`. Only
time depends on a planner, never a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from ..core.calls import KernelCall
from ..core.dependencies import RunTracker, reduced
from ..core.policies import StreamPolicy, StreamState
from .clocks import StreamClocks
from .profiles import Need, Profile


@dataclass(slots=True)
class Work:
    """A run of calls to be planned, by sequence number in program order.

    Attributes:
        needs: what each call takes.
        before: for each call, those that it must come directly after, oldest first. Calls of earlier runs that are
            still in flight are among them.
        after: for each call of the run or of an earlier one, the calls of the run that come directly after it.
    """

    needs: dict[int, Need]
    before: dict[int, list[int]]
    after: dict[int, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, calls: Mapping[int, KernelCall], upstream: Mapping[int, Iterable[int]], profile: Profile) -> Work:
        """Return the work of some calls, whose numbers grow, given all calls that each must come after."""
        first = min(calls, default=0)
        inner = [[other - first for other in upstream[seq] if other >= first] for seq in calls]
        work = cls({seq: profile.need(call) for seq, call in calls.items()}, {})
        for seq, direct in zip(calls, reduced(inner), strict=True):
            outer = [other for other in upstream[seq] if other < first]
            work.before[seq] = sorted([*outer, *(other + first for other in direct)])
            for other in work.before[seq]:
                work.after.setdefault(other, []).append(seq)
        return work

    def levels(self) -> Iterator[list[int]]:
        """Yield the calls by level: those that wait for no call of the run, then those that wait for these only, ..."""
        level: dict[int, int] = {}
        found: list[list[int]] = []
        for seq, direct in self.before.items():
            level[seq] = max((level[other] + 1 for other in direct if other in level), default=0)
            if level[seq] == len(found):
                found.append([])
            found[level[seq]].append(seq)
        yield from found


Planner = Callable[[Work, StreamState], list[tuple[int, int]]]


class _Streams:
    """Streams while a plan is made: the last call of each, and the time that its calls take [s]."""

    def __init__(self, work: Work, state: StreamState) -> None:
        self._needs = work.needs
        usual = sum(need.seconds for need in work.needs.values()) / max(len(work.needs), 1)
        self.load = [calls * usual for calls in state.load]
        self.tail = list(state.tail)
        self.of = dict(state.stream_of)

    def put(self, seq: int, stream: int) -> None:
        self.load[stream] += self._needs[seq].seconds
        self.tail[stream] = seq
        self.of[seq] = stream

    def ends(self, calls: Iterable[int]) -> list[int]:
        """Return those of some calls that are the last of their streams."""
        return [seq for seq in calls if seq in self.of and self.tail[self.of[seq]] == seq]

    def emptiest(self) -> int:
        return self.load.index(min(self.load))


def kesco(work: Work, state: StreamState) -> list[tuple[int, int]]:
    """Plan level by level, as KeSCo does (ICCD 2023). In a level, calls with the least choice of streams choose first.

    A call may follow a predecessor that is the last call of its stream. It follows the one for which the fewest other
    successors still wait, and so leaves the others free for them. Calls without such a predecessor come last in their
    level, on the streams with the least work.
    """
    streams = _Streams(work, state)
    waiting = {seq: len(after) for seq, after in work.after.items()}  # successors that have no stream yet
    plan: list[tuple[int, int]] = []
    for level in work.levels():
        choices = {seq: len(streams.ends(work.before[seq])) for seq in level}
        queue = [(count or len(work.needs) + 1, seq) for seq, count in choices.items()]
        heapify(queue)
        while choices:
            count, seq = heappop(queue)
            if seq not in choices or count != (choices[seq] or len(work.needs) + 1):
                continue  # it has a stream, or was entered again with another count
            del choices[seq]
            ends = streams.ends(work.before[seq])
            followed = min(ends, key=lambda end: (waiting[end], end), default=None)
            stream = streams.emptiest() if followed is None else streams.of[followed]
            buried = streams.tail[stream]
            streams.put(seq, stream)
            plan.append((seq, stream))
            for other in work.before[seq]:
                waiting[other] -= 1
            for other in work.after.get(buried, ()):
                if other in choices:
                    choices[other] -= 1
                    heappush(queue, (choices[other] or len(work.needs) + 1, other))
    return plan


def opara(work: Work, state: StreamState) -> list[tuple[int, int]]:
    """Plan streams and order as Opara does (arXiv 2312.10351, algorithms 1 and 2).

    A call joins the stream of its first predecessor that no other successor has joined, else the stream with the least
    work. Calls that are bound by memory and calls that are bound by compute are issued in turns, of each kind the least
    demanding first.
    """
    streams = _Streams(work, state)
    claimed: set[int] = set()
    stream_of: dict[int, int] = {}
    for seq, direct in work.before.items():
        followed = next((other for other in streams.ends(direct) if other not in claimed), None)
        stream_of[seq] = streams.emptiest() if followed is None else streams.of[followed]
        claimed.update(() if followed is None else (followed,))
        streams.put(seq, stream_of[seq])
    return [(seq, stream_of[seq]) for seq in _alternating(work)]


def _alternating(work: Work) -> Iterator[int]:
    """Yield calls bound by memory and by compute in turns, each after those that it waits for."""
    missing = {seq: sum(other in work.needs for other in direct) for seq, direct in work.before.items()}
    ready: dict[str, list[tuple[float, float, int]]] = {"memory": [], "compute": []}

    def enter(seq: int) -> None:
        bound, demand, seconds = work.needs[seq]
        heappush(ready[bound], (demand, seconds, seq))

    for seq, count in missing.items():
        if not count:
            enter(seq)
    turn, other = "memory", "compute"
    while ready["memory"] or ready["compute"]:
        if not ready[turn]:
            turn, other = other, turn
        seq = heappop(ready[turn])[2]
        yield seq
        for later in work.after.get(seq, ()):
            missing[later] -= 1
            if not missing[later]:
                enter(later)
        turn, other = other, turn


PLANNERS: dict[str, Planner] = {"kesco": kesco, "opara": opara}


Placement = Callable[[Sequence[KernelCall], Sequence[set[int]], StreamState], list[tuple[int, int]]]
"""Order and streams of a list of calls, by positions, given those in it that each must come after."""


def by_plan(planner: Planner, profile: Profile) -> Placement:
    """Return a placement by a planner."""

    def place(calls: Sequence[KernelCall], upstream: Sequence[set[int]], state: StreamState) -> list[tuple[int, int]]:
        return planner(Work.of(dict(enumerate(calls)), dict(enumerate(upstream)), profile), state)

    return place


def in_program_order(choose: StreamPolicy) -> Placement:
    """Return a placement in program order, on the streams that a policy chooses as if no call ended meanwhile."""

    def place(calls: Sequence[KernelCall], upstream: Sequence[set[int]], state: StreamState) -> list[tuple[int, int]]:
        placed = []
        for seq, before in enumerate(upstream):
            stream = choose(before, state)
            state.put(seq, stream)
            placed.append((seq, stream))
        return placed

    return place


@dataclass(frozen=True, slots=True)
class Plan:
    """Order, streams and waits of a list of calls, by their positions in it.

    Attributes:
        order: positions in order of issue.
        streams: the stream of each call.
        waits: for each call, the calls on other streams that it waits for.
        asked: how many such waits hazards ask for. Those that others imply are left out of `waits`.
    """

    order: tuple[int, ...]
    streams: tuple[int, ...]
    waits: tuple[tuple[int, ...], ...]
    asked: int


def plan_calls(place: Placement, calls: Sequence[KernelCall], conflicts: list[tuple[int, ...]], streams: int) -> Plan:
    """Plan a list of calls for a number of empty streams."""
    upstream = RunTracker(conflicts).upstream_of(calls)
    clocks = StreamClocks(streams)
    waits: dict[int, tuple[int, ...]] = {}
    stream_of = dict(placed := place(calls, upstream, StreamState.of(streams)))
    for seq, stream in placed:
        waits[seq] = tuple(clocks.waits(upstream[seq], stream))
        clocks.put(seq, stream)
    numbers = range(len(calls))
    return Plan(
        tuple(stream_of), tuple(stream_of[seq] for seq in numbers), tuple(waits[seq] for seq in numbers), clocks.asked
    )


def plan_chains(
    planner: Planner, calls: Sequence[KernelCall], waits: Sequence[Iterable[int]], profile: Profile
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the order and the streams of the calls of a graph, by positions.

    Args:
        planner: plans them.
        calls: the nodes of the graph.
        waits: for each call those that it must come directly after.
        profile: what the calls take.

    The planner gets as many streams as there are calls. A call thus joins a used stream only to follow a call that it
    waits for.
    """
    work = Work.of(dict(enumerate(calls)), dict(enumerate(waits)), profile)
    stream_of = dict(planner(work, StreamState.of(len(calls))))
    numbers: dict[int, int] = {}
    rows = [numbers.setdefault(stream_of[seq], len(numbers)) for seq in range(len(calls))]
    return tuple(stream_of), tuple(rows)
