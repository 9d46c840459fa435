"""Words of calls: the segments that a call touches, and those that it conflicts with, as bits.

Segments are numbered, and a set of segments is bits in 32-bit words. The words of a call also hold what it conflicts
with, so that a hazard check is a few ANDs of the words of a call with the bits of a slot.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.calls import KernelCall

_BITS = (
    *("touched", "written", "touched_whole", "written_whole"),
    *(f"against_{name}" for name in ("written", "touched", "written_whole", "touched_whole")),
)
WORD = np.dtype({"names": ["at", *_BITS], "formats": ["i4"] + ["u4"] * len(_BITS), "itemsize": 48})
_MOST = 64 * 32
"""Segments that are numbered together. The window has bits of all of them, in shared memory, for each of its slots."""

_Key = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class WordTable:
    """The words of calls, worked out once for each combination of segments.

    Args:
        conflicts: the conflicts of the table that the segments come from. If it grows, words are worked out again,
            because a new segment may conflict with known ones.
    """

    def __init__(self, conflicts: Sequence[tuple[int, ...]]) -> None:
        self._conflicts = conflicts
        self._begin()

    def _begin(self) -> None:
        self._size = len(self._conflicts)
        self._number: dict[int, int] = {}  # of a segment
        self._known: dict[_Key, np.ndarray] = {}

    def of(self, calls: Sequence[KernelCall]) -> tuple[np.ndarray, list[tuple[int, int]], int]:
        """Return the words of all calls, for each call its first word and their number, and the words for all segments.

        Lists of very many segments begin with new numbers, so that only their own are counted.
        """
        if len(self._conflicts) != self._size:
            self._begin()
        keys = [(call.reads, call.writes, call.updates, call.tiled) for call in calls]
        if any(key not in self._known for key in keys):
            self._learn(keys)
        first: dict[_Key, tuple[int, int]] = {}
        parts, end = [], 0
        for key in keys:
            if key not in first:
                own = self._known[key]
                first[key] = end, len(own)
                parts.append(own)
                end += len(own)
        rows = np.zeros(end, WORD)  # np.concatenate would take another type, without the padding
        for (start, count), own in zip(first.values(), parts, strict=True):
            rows[start : start + count] = own
        return rows, [first[key] for key in keys], -(-len(self._number) // 32)

    def _learn(self, keys: Sequence[_Key]) -> None:
        """Number the segments of new combinations. Words hold bits of numbered segments only, so all are made anew."""
        segments = {s for reads, writes, updates, _ in keys for s in (*reads, *writes, *updates)}
        if len(segments.union(self._number)) > _MOST:
            self._begin()
        new = sorted(segments - self._number.keys())
        self._number |= {segment: number for number, segment in enumerate(new, len(self._number))}
        for key in {*self._known, *keys} if new else set(keys):
            if new or key not in self._known:
                self._known[key] = self._words(key)

    def _words(self, key: _Key) -> np.ndarray:
        reads, writes, updates, tiled = key
        conflicts, number = self._conflicts, self._number
        touched = {*reads, *writes, *updates}
        written = {*writes, *updates}
        whole = touched - set(tiled)
        sets = [touched, written, whole, written & whole]
        # a hazard: one call touches what another writes, or writes what another touches
        sets += [{c for s in of for c in conflicts[s]} for of in (touched, written)]
        # the same without tiled uses of one segment, which are compared part by part
        sets += [{c for s in of for c in conflicts[s] if c != s or s in whole} for of in (touched, written)]
        bits: dict[int, list[int]] = {}
        for kind, of in enumerate(sets):
            for segment in of:
                if segment in number:
                    at, bit = divmod(number[segment], 32)
                    bits.setdefault(at, [0] * 8)[kind] |= 1 << bit
        return np.array([(at, *bits[at]) for at in sorted(bits)], WORD)
