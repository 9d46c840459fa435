"""Segments: the interned pieces of memory that kernel calls read and write.

Hazard checks compare small integers, never addresses. A segment is either a named piece `(buffer, shard, partition)`
or a plain byte range. `conflicts[s]` lists every segment that shares memory with `s`, `s` itself included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class _Named:
    """A piece of one buffer: all of a shard (`partition` None), or one member of a partition family of it."""

    buffer: str
    shard: int
    partition: tuple[str, int] | None

    def overlaps(self, other: _Named) -> bool:
        """Whether distinct pieces of one (buffer, shard) share memory: all do but two members of one family."""
        if self.partition is None or other.partition is None:
            return True
        return self.partition[0] != other.partition[0]


@dataclass(frozen=True, slots=True)
class _Range:
    """The bytes [start, start + nbytes) of an address space."""

    name: str
    start: int
    nbytes: int

    def overlaps(self, other: _Range) -> bool:
        """Half-open interval overlap: ranges that only touch do not share a byte."""
        return self.start < other.start + other.nbytes and other.start < self.start + self.nbytes


class Segments:
    """The interning table. One table serves every call that may be scheduled together.

    `conflicts` may grow while calls are in flight: an entry is replaced by a longer tuple, never edited in place.
    """

    def __init__(self) -> None:
        self.conflicts: list[tuple[int, ...]] = []
        self._pieces: list[_Named | _Range] = []
        self._ids: dict[_Named | _Range, int] = {}
        self._siblings: dict[tuple[str, int], list[int]] = {}  # (buffer, shard) -> its segments
        self._ranges: list[int] = []

    def __len__(self) -> int:
        return len(self._pieces)

    def intern(self, buffer: str, shard: int = 0, partition: tuple[str, int] | None = None) -> int:
        """Return the id of a piece of a buffer, making one at first sight.

        `partition` is `(family, member)`: members of one family are declared disjoint and never conflict; each
        conflicts with the whole and with the members of other families of the same (buffer, shard). Different buffers
        and different shards never conflict.
        """
        if partition is not None and (len(partition) != 2 or not isinstance(partition[0], str)):
            raise ValueError(
                f"partition {partition!r} of buffer {buffer!r} is not a (family name, member number) pair; "
                f"pass e.g. ('size', 2)"
            )
        piece = _Named(buffer, shard, partition)
        segment = self._ids.get(piece)
        if segment is None:
            siblings = self._siblings.setdefault((buffer, shard), [])
            segment = self._register(piece, [s for s in siblings if piece.overlaps(self._pieces[s])])  # type: ignore[arg-type]
            siblings.append(segment)
        return segment

    def register_range(self, name: str, start: int, nbytes: int) -> int:
        """Return the id of the bytes [start, start + nbytes), found to conflict with every range that it overlaps.

        Ranges live in one address space; they never conflict with named pieces. Raises ValueError for an empty range.
        """
        if nbytes <= 0:
            raise ValueError(f"range {name!r} at {start:#x} has {nbytes} bytes; register at least one byte")
        piece = _Range(name, start, nbytes)
        segment = self._ids.get(piece)
        if segment is None:
            segment = self._register(piece, [s for s in self._ranges if piece.overlaps(self._pieces[s])])  # type: ignore[arg-type]
            self._ranges.append(segment)
        return segment

    def buffer(self, segment: int) -> str:
        """Return the name of the buffer, or of the range, that a segment is a piece of."""
        piece = self._piece(segment)
        return piece.name if isinstance(piece, _Range) else piece.buffer

    def describe(self, segment: int) -> str:
        """Return a segment as people write it: `qpos`, `efc_J#1`, `efc_J#1[size 2]`, `image[0x100:0x140]`."""
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
        """Return a table of pieces given by `to_data`: the n-th is segment n, if no two of them are the same."""
        table = cls()
        for piece in pieces:
            if "range" in piece:
                table.register_range(piece["range"], piece["start"], piece["nbytes"])
            else:
                partition = piece["partition"]
                table.intern(piece["buffer"], piece["shard"], None if partition is None else tuple(partition))
        return table

    def _piece(self, segment: int) -> _Named | _Range:
        if not 0 <= segment < len(self._pieces):
            raise ValueError(f"segment {segment} is not in this table of {len(self._pieces)}; intern it here first")
        return self._pieces[segment]

    def _register(self, piece: _Named | _Range, overlapping: list[int]) -> int:
        segment = len(self._pieces)
        self._ids[piece] = segment
        self._pieces.append(piece)
        self.conflicts.append((*overlapping, segment))
        for other in overlapping:
            self.conflicts[other] += (segment,)
        return segment
