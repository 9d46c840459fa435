"""The book: hazards by bits of segments, what calls of a list wait for, and when calls are described anew."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine_scheduler import FixedList, KernelCall, Segments
from simengine_scheduler.core.hazards import conflict, conflict_whole
from simengine_scheduler.device import segments as bits
from simengine_scheduler.device.book import Book, Full
from simengine_scheduler.device.segments import Numbering, Outdated, before, words_of
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.testing.threaded_device import HostMemory, PythonBody
from tests.scheduler.device.programs import random_program


def hazard(later: bits.Uses, earlier: bits.Uses) -> int:
    """What the window finds: 0 none, 1 tiles of one part, 2 the whole; computed from words as it does."""
    mine, theirs = ({row[0]: row[1:] for row in words_of(uses)} for uses in (later, earlier))
    any_, whole = 0, 0
    for at, word in mine.items():
        if at in theirs:
            touched, written, _, _, against_written, against_touched, written_whole, touched_whole = word
            other = theirs[at]
            any_ |= against_written & other[1] | against_touched & other[0]
            whole |= written_whole & other[1] | touched_whole & other[0]
            whole |= touched & other[3] | written & other[2]
    return 2 if whole else 1 if any_ else 0


@given(seed=st.integers(0, 2**32))
def test_bits_say_what_the_pairwise_definition_says(seed: int) -> None:
    program = random_program(seed, length=12)
    conflicts = program.segments.conflicts
    numbering = Numbering(conflicts)
    uses = [numbering.uses(call) for call in program.calls]
    for later, b in enumerate(program.calls):
        for earlier, a in enumerate(program.calls[:later]):
            wanted = 2 if conflict_whole(a, b, conflicts) else 1 if conflict(a, b, conflicts) else 0
            assert hazard(uses[later], uses[earlier]) == wanted
            assert uses[later].conflicts(uses[earlier]) == (wanted > 0)
            assert (wanted == 0) or uses[later].conflicts_whole(uses[earlier]) == (wanted == 2)


@given(seed=st.integers(0, 2**32), length=st.integers(1, 9))
def test_calls_of_a_list_know_what_they_wait_for_in_this_round_and_earlier_ones(seed: int, length: int) -> None:
    program = random_program(seed, length)
    conflicts = program.segments.conflicts
    numbering = Numbering(conflicts)
    found = before([numbering.uses(call) for call in program.calls], 20)
    for at, call in enumerate(program.calls):
        for back in range(20):
            other = program.calls[(at - back - 1) % length]
            waits, tiled = (mask >> back & 1 for mask in found[at])
            assert waits == conflict(other, call, conflicts)
            assert not waits or tiled == (not conflict_whole(other, call, conflicts))


def test_members_of_a_family_do_not_conflict_and_each_does_with_the_whole() -> None:
    segments = Segments()
    whole = segments.intern("x")
    others = [segments.intern(f"y{i}") for i in range(40)]  # more than a word of other segments between them
    parts = [segments.intern("x", partition=("size", i)) for i in range(2)]
    numbering = Numbering(segments.conflicts)
    numbering.uses(KernelCall("others", PythonBody(print), tuple(others), ()))
    second, first, everything = (
        numbering.uses(KernelCall("c", PythonBody(print), (), (of,))) for of in (parts[1], parts[0], whole)
    )
    assert [hazard(first, second), hazard(second, first)] == [0, 0]
    assert [hazard(everything, first), hazard(second, everything)] == [2, 2]


def test_segments_beyond_the_room_share_bits_and_no_hazard_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bits, "MOST_WORDS", 1)
    segments, draw = Segments(), random.Random(0)
    ids = [segments.intern(f"x{i}") for i in range(90)]
    calls = [
        KernelCall(f"c{i}", PythonBody(print), tuple(draw.sample(ids, 2)), (), tuple(draw.sample(ids, 1)))
        for i in range(60)
    ]
    numbering = Numbering(segments.conflicts)
    uses = [numbering.uses(call) for call in calls]
    assert numbering.words == 1
    pairs = [(a, b) for a in range(60) for b in range(a + 1, 60)]
    needed = [conflict(calls[a], calls[b], segments.conflicts) for a, b in pairs]
    found = [hazard(uses[b], uses[a]) > 0 for a, b in pairs]
    assert all(f for n, f in zip(needed, found, strict=True) if n)
    assert not all(found)


def test_a_new_segment_that_conflicts_with_used_ones_is_noticed() -> None:
    segments = Segments()
    x = segments.intern("x")
    book = Book(segments.conflicts, HostMemory(), tiled=True, merged=False)
    book.call(KernelCall("whole", PythonBody(print), (), (x,)))
    book.call(KernelCall("other", PythonBody(print), (), (segments.intern("y"),)))
    with pytest.raises(Outdated):
        book.call(KernelCall("part", PythonBody(print), (), (segments.intern("x", 0, ("size", 0)),)))


class Moving(PythonBody):
    """A launch with a buffer that may move."""

    def __init__(self) -> None:
        super().__init__(print)
        self.buffers = BufferSet()
        self.buffer = self.buffers.add("b", 4096, 8)

    def packed_arguments(self) -> np.ndarray:
        return np.array([self.buffer.ptr], np.uint64)


def test_calls_and_lists_are_described_anew_once_a_buffer_has_moved() -> None:
    segments, launch = Segments(), Moving()
    call = KernelCall("c", launch, (), (segments.intern("x"),))
    calls = FixedList([call])
    book = Book(segments.conflicts, HostMemory(), tiled=True, merged=False)
    first, first_list = book.call(call), book.list(calls)
    assert book.call(call) is first
    assert book.list(calls) is first_list
    launch.buffer.rebind(8192, 8)
    assert not first_list.is_current()
    assert book.call(call).number != first.number
    assert book.list(calls).number != first_list.number
    assert len(book.calls) == 2


def test_a_book_that_is_full_says_so() -> None:
    segments = Segments()
    book = Book(segments.conflicts, HostMemory(), tiled=True, merged=False)
    where = (segments.intern("x"),)
    body = PythonBody(print)

    def describe_many() -> None:
        for _ in range(5000):
            book.call(KernelCall("c", body, (), where))

    with pytest.raises(Full):
        describe_many()
