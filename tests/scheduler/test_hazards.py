"""The incremental hazard tracker against the pairwise definition."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import KernelCall, PythonLaunch, Segments
from simengine_scheduler.core.hazards import HazardTracker, conflict
from tests.scheduler.programs import Program, Spec, specs


def call(reads: tuple[int, ...] = (), writes: tuple[int, ...] = (), updates: tuple[int, ...] = ()) -> KernelCall:
    return KernelCall("k", PythonLaunch(lambda: None), reads, writes, updates)


@pytest.mark.parametrize(
    ("earlier", "later", "hazard"),
    [
        (call(writes=(0,)), call(reads=(0,)), True),  # RAW
        (call(reads=(0,)), call(writes=(0,)), True),  # WAR
        (call(writes=(0,)), call(writes=(0,)), True),  # WAW
        (call(reads=(0,)), call(reads=(0,)), False),
        (call(updates=(0,)), call(reads=(0,)), True),
        (call(reads=(0,)), call(updates=(0,)), True),
        (call(updates=(0,)), call(updates=(0,)), True),
        (call(updates=(0,)), call(writes=(0,)), True),
        (call(writes=(0,)), call(reads=(1,), writes=(1,), updates=(1,)), False),
        (call(), call(writes=(0,)), False),
    ],
)
def test_every_kind_of_hazard(earlier: KernelCall, later: KernelCall, hazard: bool) -> None:
    table = Segments()
    table.intern("a")
    table.intern("b")
    assert conflict(earlier, later, table.conflicts) is hazard
    tracker = HazardTracker(table.conflicts)
    assert tracker.add(0, earlier) == set()
    assert tracker.add(1, later) == ({0} if hazard else set())


def check_against_pairs(calls: list[KernelCall], table: Segments, removals: random.Random, rate: float = 0.45) -> None:
    """Every live conflicting call must be upstream, directly or through others; and nothing else may be."""
    tracker = HazardTracker(table.conflicts)
    live: list[int] = []
    before: dict[int, set[int]] = {}  # calls that each is certain to come after
    for seq, later in enumerate(calls):
        upstream = tracker.add(seq, later)
        assert upstream <= set(live)
        before[seq] = set(upstream).union(*(before[u] for u in upstream))
        needed = {s for s in live if conflict(calls[s], later, table.conflicts)}
        assert needed <= before[seq]
        assert upstream <= needed  # what is upstream directly conflicts itself: nothing is waited for in vain
        live.append(seq)
        # Completion in an order that hazards allow: only calls that wait for nothing live.
        while live and removals.random() < rate:
            done = removals.choice([s for s in live if not before[s] & set(live)])
            live.remove(done)
            tracker.remove(done)
    assert tracker.live == set(live)


def every_list(segments: int, length: int) -> Iterator[tuple[tuple[str, ...], ...]]:
    """What each call does to each segment ('-', 'r', 'w' or 'u'), for all lists that differ by more than names."""
    one_segment = list(itertools.product("-rwu", repeat=length))
    for columns in itertools.combinations_with_replacement(one_segment, segments):
        yield tuple(zip(*columns, strict=True))


@pytest.mark.parametrize(
    ("segments", "length", "completes"),
    [(2, 3, 1), (2, 3, 2), (2, 4, 2), (2, 4, 4), (3, 3, 3)],
)
def test_every_list_of_a_few_calls(segments: int, length: int, completes: int) -> None:
    """What must be waited for is waited for, directly or through others, and nothing in vain.

    The first call completes when so many have been added.
    """
    table = Segments()
    for segment in range(segments):
        table.intern(f"s{segment}")
    calls = {
        how: call(*(tuple(s for s in range(segments) if how[s] == kind) for kind in "rwu"))
        for how in itertools.product("-rwu", repeat=segments)
    }
    conflicting = {(a, b): conflict(calls[a], calls[b], table.conflicts) for a in calls for b in calls}
    tracker = HazardTracker(table.conflicts)
    start = count = 0
    for hows in every_list(segments, length):
        tracker.clear()
        before: list[int] = []  # bit sets
        for position, how in enumerate(hows):
            if position == completes:
                tracker.remove(start)
            direct = reached = needed = 0
            for other in tracker.add(start + position, calls[how]):
                direct |= 1 << other - start
                reached |= before[other - start]
            for other in range(position >= completes, position):
                needed |= conflicting[hows[other], how] << other
            assert not direct & ~needed, hows
            assert not needed & ~(direct | reached), hows
            before.append(direct | reached)
        start += length
        count += 1
    assert count == math.comb(4**length + segments - 1, segments)


@settings(max_examples=150, deadline=None)
@given(specs(awaits=False), st.randoms(use_true_random=False))
def test_tracker_agrees_with_pairs(emitters: list[list[Spec]], removals: random.Random) -> None:
    program = Program(emitters)
    calls = [c for c in itertools.chain(*program.emitters()) if isinstance(c, KernelCall)]
    check_against_pairs(calls * 3, program.segments, removals)


@pytest.mark.parametrize("rate", [0.9, 0.98])
def test_long_lists(rate: float) -> None:
    """Some thousands of calls: the tracker forgets plans at times, and must not forget calls in flight with them."""
    table = Segments()
    model, out = table.intern("model"), [table.intern("out", shard) for shard in range(60)]
    draw = random.Random(1)
    calls = [call((model, *draw.sample(out, 2)), (draw.choice(out),)) for _ in range(4000)]
    for seq in range(100, 4000, 37):
        calls[seq] = call(draw.choice([(), (model,)]), (), (model,) if seq % 2 else ())
    check_against_pairs(calls, table, draw, rate)


def test_dense_lists_are_reduced() -> None:
    """A chain of calls that all conflict needs one upstream call each, though all of the window conflicts."""
    table = Segments()
    x = table.intern("x")
    tracker = HazardTracker(table.conflicts)
    own = [table.intern("own", k) for k in range(20)]
    chain = [call(writes=(x, own[k])) for k in range(20)]
    sizes = [len(tracker.add(seq, c)) for seq, c in enumerate(chain)]
    assert max(sizes[8:]) == 1


def test_segments_interned_while_calls_are_in_flight() -> None:
    table = Segments()
    member = table.intern("efc", 0, ("size", 0))
    tracker = HazardTracker(table.conflicts)
    first = call(writes=(member,))
    assert tracker.add(0, first) == set()
    whole = table.intern("efc")
    assert tracker.add(1, call(reads=(whole,))) == {0}
    assert tracker.add(2, first) == {0, 1}  # the same call object as before, with the whole now among its conflicts


def test_same_call_in_two_trackers() -> None:
    table = Segments()
    a = table.intern("a")
    one, two = HazardTracker(table.conflicts), HazardTracker(table.conflicts)
    shared = call(updates=(a,))
    assert one.add(0, shared) == set()
    assert two.add(0, shared) == set()
    assert one.add(1, shared) == {0}
    assert two.add(1, shared) == {0}


def test_unknown_segment_is_named() -> None:
    table = Segments()
    table.intern("a")
    for bad in (3, -1):
        with pytest.raises(ValueError, match=f"call 'k' names segment {bad}, but the table holds 1"):
            HazardTracker(table.conflicts).add(0, call(reads=(bad,)))


Access = tuple[int, int]  # buffer, and the whole of it (0) or a member of one of two families


@given(
    st.lists(
        st.tuples(*[st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=2) for _ in range(2)]),
        max_size=40,
    ),
    st.integers(0, 99),
)
def test_segments_may_be_interned_as_calls_come(drawn: list[tuple[list[Access], list[Access]]], seed: int) -> None:
    table, draw = Segments(), random.Random(seed)
    tracker, live = HazardTracker(table.conflicts), list[int]()
    calls, before = list[KernelCall](), dict[int, set[int]]()
    pieces = [None, ("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    for seq, accesses in enumerate(drawn):
        reads, writes = (tuple(table.intern(f"x{b}", 0, pieces[p]) for b, p in own) for own in accesses)
        calls.append(call(reads=reads, writes=writes))
        upstream = tracker.add(seq, calls[-1])
        needed = {s for s in live if conflict(calls[s], calls[-1], table.conflicts)}
        before[seq] = set(upstream).union(*(before[u] for u in upstream))
        assert upstream <= needed <= before[seq]
        live.append(seq)
        while live and draw.random() < 0.45:
            done = draw.choice([s for s in live if not before[s] & set(live)])
            live.remove(done)
            tracker.remove(done)


def test_new_segments_without_conflicts_leave_plans_as_they_are() -> None:
    table = Segments()
    tracker = HazardTracker(table.conflicts)
    for seq in range(200):
        segment = table.intern(f"x{seq}")
        assert tracker.add(seq, call(writes=(segment,))) == set()
    assert len(tracker._plans) == 200
    assert tracker.add(200, call(updates=(table.intern("x7", 0, ("half", 0)),))) == {7}
