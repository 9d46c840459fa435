"""Segments: interning, conflicts between pieces and between ranges, descriptions, refusals."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simengine_scheduler import Segments


def conflicts(table: Segments, a: int, b: int) -> bool:
    assert (b in table.conflicts[a]) == (a in table.conflicts[b])
    return b in table.conflicts[a]


def test_interning_is_stable() -> None:
    table = Segments()
    first = table.intern("qpos")
    assert table.intern("qpos") == first
    assert table.intern("qpos", 1) != first
    assert table.intern("qvel") != first
    assert len(table) == 3
    assert table.conflicts == [(0,), (1,), (2,)]


def test_partition_members_conflict_with_the_whole_and_other_families_only() -> None:
    table = Segments()
    size0, size1 = (table.intern("efc", 0, ("size", m)) for m in (0, 1))
    whole = table.intern("efc")  # interned after its members: they must learn of it
    pair0 = table.intern("efc", 0, ("pair", 0))
    assert not conflicts(table, size0, size1)
    for a, b in [(whole, size0), (whole, size1), (whole, pair0), (pair0, size0), (pair0, size1), (size0, size0)]:
        assert conflicts(table, a, b)
    elsewhere = table.intern("efc", 1, ("size", 0))
    other = table.intern("con", 0, ("size", 0))
    for mine in (size0, size1, whole, pair0):
        assert not conflicts(table, mine, elsewhere)
        assert not conflicts(table, mine, other)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), min_size=1, max_size=12))
def test_ranges_conflict_exactly_where_they_share_a_byte(ranges: list[tuple[int, int]]) -> None:
    table = Segments()
    table.intern("named")
    ids = [table.register_range(f"r{start}", start, nbytes) for start, nbytes in ranges]
    for (a, x), (b, y) in itertools.product(zip(ids, ranges, strict=True), repeat=2):
        shared = set(range(x[0], sum(x))) & set(range(y[0], sum(y)))
        assert conflicts(table, a, b) == bool(shared)
        assert (a == b) == (x == y)
    assert table.conflicts[0] == (0,)


def test_descriptions() -> None:
    table = Segments()
    assert table.describe(table.intern("qpos")) == "qpos"
    assert table.describe(table.intern("efc_J", 2, ("size", 1))) == "efc_J#2[size 1]"
    assert table.describe(table.register_range("image", 256, 64)) == "image[0x100:0x140]"
    assert [table.buffer(segment) for segment in range(3)] == ["qpos", "efc_J", "image"]


def test_refusals() -> None:
    table = Segments()
    with pytest.raises(ValueError, match=r"range 'empty' .* has 0 bytes"):
        table.register_range("empty", 16, 0)
    with pytest.raises(ValueError, match="segment 7 is not in this table of 0"):
        table.describe(7)
    with pytest.raises(ValueError, match="segment -1 is not in this table of 0"):
        table.buffer(-1)
    with pytest.raises(ValueError, match="not a \\(family name, member number\\) pair"):
        table.intern("efc", 0, ("size",))  # type: ignore[arg-type]
