"""Segments: the interned pieces of memory that kernel calls read and write.

Hazard checks compare small integers, never addresses. A segment is either a named piece `(buffer, shard, partition)`
or a plain byte range. `conflicts[s]` lists every segment that shares memory with `s`, `s` itself included.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class _Named(NamedTuple):
    """A piece of one buffer: a whole shard (`partition` is None), or one member of a family that divides the shard."""

    buffer: str
    shard: int
    partition: tuple[str, int] | None

    def overlaps(self, other: _Named) -> bool:
        """Whether two distinct pieces of one (buffer, shard) share memory. Only members of one family do not."""
        if self.partition is None or other.partition is None:
            return True
        return self.partition[0] != other.partition[0]


class _Range(NamedTuple):
    """The bytes [start, start + nbytes) of an address space."""

    name: str
    start: int
    nbytes: int


class Segments:
    """The table of segments. Calls that run together name segments of one table.

    `conflicts` may grow while calls are in flight. An entry is then replaced by a longer tuple, never edited in place.
    """

    def __init__(self) -> None:
        self.conflicts: list[tuple[int, ...]] = []
        self._pieces: list[_Named | _Range] = []
        self._ids: dict[tuple[str, int, tuple[str, int] | None], int] = {}
        self._range_ids: dict[tuple[str, int, int], int] = {}
        self._siblings: dict[tuple[str, int], list[int]] = {}  # (buffer, shard) -> its segments
        self._ranges: list[tuple[int, int, int]] = []  # first address, end and segment, in order
        self._longest = 0  # bytes of the longest range
        self._everything: int | None = None

    def __len__(self) -> int:
        return len(self._pieces)

    def intern(self, buffer: str, shard: int = 0, partition: tuple[str, int] | None = None) -> int:
        """Return the id of a piece of a buffer. A piece gets its id when it is first named.

        Different buffers never conflict, and neither do different shards of a buffer.

        Args:
            buffer: the name of the buffer.
            shard: the part of the buffer that belongs to one range of worlds.
            partition: None for the whole shard, or `(family, member)`. Members of one family are declared disjoint and
                never conflict. A member conflicts with the whole shard and with members of other families.

        Raises:
            ValueError: `partition` is not such a pair.
        """
        if partition is not None and (len(partition) != 2 or not isinstance(partition[0], str)):
            raise ValueError(
                f"partition {partition!r} of buffer {buffer!r} is not a (family name, member number) pair; "
                f"pass e.g. ('size', 2)"
            )
        key = buffer, shard, partition
        segment = self._ids.get(key)
        if segment is None:
            piece = _Named(*key)
            siblings = self._siblings.get((buffer, shard))
            if siblings is None:
                siblings = self._siblings[buffer, shard] = []
            segment = self._register(piece, [s for s in siblings if piece.overlaps(self._pieces[s])])  # type: ignore[arg-type]
            self._ids[key] = segment
            siblings.append(segment)
        return segment

    def register_range(self, name: str, start: int, nbytes: int) -> int:
        """Return the id of the bytes [start, start + nbytes). The range conflicts with every range that it overlaps.

        All ranges lie in one address space. They never conflict with named pieces. Raises ValueError for an empty
        range.
        """
        if nbytes <= 0:
            raise ValueError(f"range {name!r} at {start:#x} has {nbytes} bytes; register at least one byte")
        key = name, start, nbytes
        segment = self._range_ids.get(key)
        if segment is None:
            segment = self._range_ids[key] = self._register(_Range(*key), self._overlapping(start, nbytes))
            insort(self._ranges, (start, start + nbytes, segment))
            self._longest = max(self._longest, nbytes)
        return segment

    def everything(self) -> int:
        """Return the id of a segment that conflicts with all others, also with those that are named later.

        A call that updates it comes after all calls before it, and before all that follow.
        """
        if self._everything is None:
            self._everything = self._register(_Named("everything", 0, None), list(range(len(self._pieces))))
        return self._everything

    def buffer(self, segment: int) -> str:
        """Return the name of the buffer, or of the range, that a segment is a piece of."""
        piece = self._piece(segment)
        return piece.name if isinstance(piece, _Range) else piece.buffer

    def partition(self, segment: int) -> tuple[str, int] | None:
        """Return the family and member that a segment is, or None for a whole shard or a range."""
        piece = self._piece(segment)
        return None if isinstance(piece, _Range) else piece.partition

    def describe(self, segment: int) -> str:
        """Return a segment as text: `qpos`, `efc_J#1`, `efc_J#1[size 2]`, `image[0x100:0x140]`."""
        piece = self._piece(segment)
        if isinstance(piece, _Range):
            return f"{piece.name}[{piece.start:#x}:{piece.start + piece.nbytes:#x}]"
        shard = f"#{piece.shard}" if piece.shard else ""
        member = f"[{piece.partition[0]} {piece.partition[1]}]" if piece.partition else ""
        return f"{piece.buffer}{shard}{member}"

    def to_data(self, used: Iterable[int]) -> list[dict[str, Any]]:
        """Return the pieces of some segments, in the order given, as plain data."""
        pieces = [self._pieces[segment] for segment in used]
        return [
            {"range": piece.name, "start": piece.start, "nbytes": piece.nbytes}
            if isinstance(piece, _Range)
            else {"buffer": piece.buffer, "shard": piece.shard, "partition": piece.partition}
            for piece in pieces
        ]

    @classmethod
    def from_data(cls, pieces: Iterable[Mapping[str, Any]]) -> Segments:
        """Return a table of the pieces that `to_data` gave. The n-th distinct piece is segment n."""
        table = cls()
        for piece in pieces:
            if "range" in piece:
                table.register_range(piece["range"], piece["start"], piece["nbytes"])
            else:
                partition = piece["partition"]
                table.intern(piece["buffer"], piece["shard"], None if partition is None else tuple(partition))
        return table

    def _overlapping(self, start: int, nbytes: int) -> list[int]:
        """Return the ranges that overlap [start, start + nbytes). Those that begin too early for the longest do not."""
        first = bisect_left(self._ranges, (start - self._longest,))
        last = bisect_left(self._ranges, (start + nbytes,))
        return sorted(segment for _, end, segment in self._ranges[first:last] if end > start)

    def _piece(self, segment: int) -> _Named | _Range:
        if not 0 <= segment < len(self._pieces):
            raise ValueError(f"segment {segment} is not in this table of {len(self._pieces)}; intern it here first")
        return self._pieces[segment]

    def _register(self, piece: _Named | _Range, overlapping: list[int]) -> int:
        segment = len(self._pieces)
        if self._everything is not None:
            overlapping = [*overlapping, self._everything]
        self._pieces.append(piece)
        self.conflicts.append((*overlapping, segment))
        for other in overlapping:
            self.conflicts[other] += (segment,)
        return segment
