"""Sets of segments as bits, and hazards between calls by them.

A call has eight sets. Four say what it touches and writes, and four what that conflicts with, so that a hazard between
two calls is a few ANDs of the sets of one with the sets of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..core.calls import KernelCall

MOST_WORDS = 128
"""Words of 32 segments that the window has room for. Beyond that segments share bits, which only adds waits."""


class Outdated(Exception):
    """A segment that is new to the table conflicts with segments that calls in the book touch."""


class Uses(NamedTuple):
    """The segments of a call or of a list, each set as the bits of an integer.

    Attributes:
        touched, written: all of them.
        touched_whole, written_whole: those that are not touched tile by tile.
        against_written, against_touched: what conflicts with this if it is written, or touched.
        against_written_whole, against_touched_whole: the same without tiled uses of one segment.
    """

    touched: int
    written: int
    touched_whole: int
    written_whole: int
    against_written: int
    against_touched: int
    against_written_whole: int
    against_touched_whole: int

    def conflicts(self, earlier: Uses) -> bool:
        """Whether this must come after `earlier`, at least tile by tile."""
        return bool(self.against_written & earlier.written or self.against_touched & earlier.touched)

    def conflicts_whole(self, earlier: Uses) -> bool:
        """Whether this must come after all tiles of `earlier`, given that they conflict."""
        return bool(
            self.against_written_whole & earlier.written
            or self.against_touched_whole & earlier.touched
            or self.touched & earlier.written_whole
            or self.written & earlier.touched_whole
        )

    def joined(self, other: Uses) -> Uses:
        """Return what two calls use together."""
        return Uses(*(a | b for a, b in zip(self, other, strict=True)))


class Numbering:
    """Numbers segments as calls use them, each with all that it conflicts with."""

    def __init__(self, conflicts: Sequence[tuple[int, ...]]) -> None:
        self._conflicts = conflicts
        self._bits: dict[int, int] = {}
        self._used: dict[int, int] = {}  # segments that calls use: how many segments conflicted with them then

    def __len__(self) -> int:
        return len(self._bits)

    @property
    def words(self) -> int:
        """How many words hold one bit of each segment."""
        return min(MOST_WORDS, -(-len(self._bits) // 32))

    def _use(self, segment: int) -> None:
        if segment in self._used:
            return
        family = self._conflicts[segment]
        if any(other in self._used and self._used[other] < len(self._conflicts[other]) for other in family):
            raise Outdated
        self._used[segment] = len(family)
        for other in family:
            if other not in self._bits:
                self._bits[other] = 1 << len(self._bits) % (32 * MOST_WORDS)

    def _set(self, segments: Iterable[int]) -> int:
        bits = 0
        for segment in segments:
            bits |= self._bits[segment]
        return bits

    def uses(self, call: KernelCall) -> Uses:
        """Return what a call uses. Raises Outdated if a segment is new and conflicts with those of other calls."""
        touched = {*call.reads, *call.writes, *call.updates}
        for segment in touched:
            self._use(segment)
        written = {*call.writes, *call.updates}
        whole = touched - set(call.tiled)
        sets: list[Iterable[int]] = [touched, written, whole, written & whole]
        # a hazard: one call touches what another writes, or writes what another touches
        sets += [[c for s in of for c in self._conflicts[s]] for of in (touched, written)]
        # tiled uses of one segment are compared part by part
        sets += [[c for s in of for c in self._conflicts[s] if c != s or s in whole] for of in (touched, written)]
        return Uses(*map(self._set, sets))


def words_of(uses: Uses) -> list[tuple[int, ...]]:
    """Return the words that are not empty: the position of each and its bits of the eight sets."""
    rows = []
    every = 0
    for bits in uses:
        every |= bits
    at = 0
    while every >> 32 * at:
        row = tuple(bits >> 32 * at & 0xFFFFFFFF for bits in uses)
        if any(row):
            rows.append((at, *row))
        at += 1
    return rows


def before(calls: Sequence[Uses], reach: int) -> list[tuple[int, int]]:
    """Return for each call of a list, run in rounds, which of the `reach` calls before it it waits for.

    Bit i stands for the call i + 1 places before. The second number has those for which single tiles are waited for.
    """
    n = len(calls)
    found = []
    for at, call in enumerate(calls):
        waits = tiled = 0
        for back in range(reach):
            earlier = calls[(at - back - 1) % n]
            if call.conflicts(earlier):
                waits |= 1 << back
                if not call.conflicts_whole(earlier):
                    tiled |= 1 << back
        found.append((waits, tiled))
    return found
