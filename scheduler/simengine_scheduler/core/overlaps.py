"""Overlaps: which of many lists of calls touch the same memory, so that one of them must wait for another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .calls import KernelCall


def bits_of(members: int) -> Iterator[int]:
    """Yield the places of the bits that are set, lowest first."""
    while members:
        lowest = members & -members
        yield lowest.bit_length() - 1
        members ^= lowest


class Overlaps:
    """Lists by number, and for each of them the lists that it conflicts with, as bit sets.

    Two lists conflict if a call of the one conflicts with a call of the other; see `hazards.py`. Segments that are
    interned after a list was added concern the lists that name them, which are added later.

    Attributes:
        conflicting: for each list the set of lists that it conflicts with, without itself.
        some: the set of lists that conflict with some other.
    """

    def __init__(self, conflicts: list[tuple[int, ...]]) -> None:
        self.conflicting: dict[int, int] = {}
        self.some = 0
        self._conflicts = conflicts
        self._touched: dict[int, tuple[frozenset[int], frozenset[int]]] = {}  # list -> what it reads, what it writes
        self._readers: dict[int, int] = {}  # segment -> the lists that read it
        self._writers: dict[int, int] = {}

    def add(self, number: int, calls: Iterable[KernelCall]) -> None:
        """Add a list under a number that is free. Raises ValueError if a call names a segment that the table lacks."""
        known, reads, writes = len(self._conflicts), set[int](), set[int]()
        for call in calls:
            reads.update(call.reads)
            writes.update(call.writes, call.updates)
            wrong = next((s for s in (*call.reads, *call.writes, *call.updates) if not 0 <= s < known), None)
            if wrong is not None:
                raise ValueError(
                    f"call {call.name!r} names segment {wrong}, but the table holds {known}; "
                    f"intern its segments in the Segments given to the executor"
                )
        found = 0
        for segment in reads | writes:
            for other in self._conflicts[segment]:
                found |= self._writers.get(other, 0)
                if segment in writes:
                    found |= self._readers.get(other, 0)
        own = 1 << number
        for other in bits_of(found):
            self.conflicting[other] |= own
        self.conflicting[number] = found
        self.some |= found | (own if found else 0)
        self._touched[number] = frozenset(reads), frozenset(writes)
        for table, segments in ((self._readers, reads), (self._writers, writes)):
            for segment in segments:
                table[segment] = table.get(segment, 0) | own

    def remove(self, number: int) -> None:
        """Remove a list. Its number is free afterwards. Raises KeyError if there is no such list."""
        others = ~(1 << number)
        self.some &= others
        for other in bits_of(self.conflicting.pop(number)):
            self.conflicting[other] &= others
            if not self.conflicting[other]:
                self.some &= ~(1 << other)
        for table, segments in zip((self._readers, self._writers), self._touched.pop(number), strict=True):
            for segment in segments:
                table[segment] &= others
