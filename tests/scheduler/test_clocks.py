"""Vector clocks: waits that others imply are left out, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from simengine_scheduler.planning.clocks import StreamClocks


def closures(streams: Sequence[int], waits: Sequence[Iterable[int]]) -> list[set[int]]:
    """What each call comes after, by stream order and waits."""
    behind: list[set[int]] = []
    latest: dict[int, int] = {}
    for seq, (stream, direct) in enumerate(zip(streams, waits, strict=True)):
        before = [*direct, *([latest[stream]] if stream in latest else [])]
        behind.append(set(before).union(*(behind[other] for other in before)))
        latest[stream] = seq
    return behind


@st.composite
def placements(draw: st.DrawFn) -> tuple[list[int], list[set[int]]]:
    """Streams of some calls, and the earlier calls that each must come after."""
    streams = draw(st.lists(st.integers(0, 3), min_size=1, max_size=14))
    upstream = [draw(st.sets(st.integers(0, seq - 1), max_size=5)) if seq else set() for seq in range(len(streams))]
    return streams, upstream


@given(placements())
def test_what_is_left_implies_all_that_was_asked_for(placed: tuple[list[int], list[set[int]]]) -> None:
    streams, upstream = placed
    clocks, needed = StreamClocks(4), list[list[int]]()
    for seq, stream in enumerate(streams):
        needed.append(clocks.waits(upstream[seq], stream))
        clocks.put(seq, stream)
    assert closures(streams, needed) == closures(streams, upstream)
    asked = [{other for other in direct if streams[other] != streams[seq]} for seq, direct in enumerate(upstream)]
    assert clocks.asked == sum(map(len, asked))
    assert clocks.needed == sum(map(len, needed)) <= clocks.asked
    for seq, direct in enumerate(needed):
        assert len({streams[other] for other in direct}) == len(direct)  # at most one wait for each stream
        for other in direct:  # each of them says something
            fewer = [*needed[:seq], [o for o in direct if o != other], *needed[seq + 1 :]]
            assert closures(streams, fewer) != closures(streams, needed)


def test_a_wait_through_a_third_stream_is_implied() -> None:
    clocks = StreamClocks(3)
    clocks.put(0, 0)
    assert clocks.waits({0}, 1) == [0]
    clocks.put(1, 1)
    assert clocks.waits({0, 1}, 2) == [1]
    clocks.put(2, 2)
    assert (clocks.asked, clocks.needed) == (3, 2)
    assert clocks.all_behind(1) == [0, 1]
    assert clocks.all_behind(2) == [0, 1, 2]


def test_order_of_issue_counts_not_the_numbers_of_calls() -> None:
    clocks = StreamClocks(2)
    for seq in (5, 3, 4):
        clocks.put(seq, 0)
    assert clocks.waits({5, 3}, 1) == [3]
    assert clocks.all_behind(3) == [5, 3]
