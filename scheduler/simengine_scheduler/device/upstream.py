"""What each call of a list must wait for, worked out on the host once for lists that run again and again.

A wait is for a whole call, or *by parts*: each tile then waits for the tiles of the other call that touch its part. A
wait by parts is weaker. So a wait for a whole call is left out only if a chain of waits that leads to it has a wait for
a whole call in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.calls import KernelCall


class Wait(NamedTuple):
    """A call that another one waits for, by its position, and whether for all of its tiles."""

    call: int
    whole: bool


def upstream_of(
    calls: Sequence[KernelCall], parts: Sequence[int], conflicts: Sequence[Sequence[int]]
) -> list[tuple[Wait, ...]]:
    """Return for each call, by position, what it must wait for, newest first, without what other waits imply.

    Args:
        calls: in program order.
        parts: by call, into how many parts its tiles divide what it touches by tiles; 0 for calls that wait and are
            waited for as a whole.
        conflicts: of the table that the segments come from.
    """
    writing: dict[int, int] = {}  # segment -> the calls that write it, as bits
    touching: dict[int, int] = {}
    untiled: dict[int, int] = {}  # segment -> the calls that touch it, and not by tiles
    alike: dict[int, int] = {}  # number of parts -> the calls that have so many
    found: list[tuple[Wait, ...]] = []
    behind = _Behind()
    for position, (call, own) in enumerate(zip(calls, parts, strict=True)):
        written, tiled = {*call.writes, *call.updates}, set(call.tiled)
        touched = written.union(call.reads)
        any_ = whole = 0
        for segment in touched:
            earlier = touching if segment in written else writing
            for other in conflicts[segment]:
                hit = earlier.get(other, 0)
                any_ |= hit
                whole |= hit & untiled.get(other, 0) if other == segment and segment in tiled else hit
        whole |= any_ & ~alike.get(own, 0) if own else any_
        found.append(behind.reduced(any_, whole))
        bit = 1 << position
        for segment in touched:
            touching[segment] = touching.get(segment, 0) | bit
            if segment in written:
                writing[segment] = writing.get(segment, 0) | bit
            if segment not in tiled:
                untiled[segment] = untiled.get(segment, 0) | bit
        alike[own] = alike.get(own, 0) | bit
    return found


class _Behind:
    """For each call, what it comes after by waits: at least by parts, and as a whole. Calls are bits."""

    def __init__(self) -> None:
        self._any: list[int] = []
        self._whole: list[int] = []

    def reduced(self, hazards: int, whole: int) -> tuple[Wait, ...]:
        """Return the waits of the next call that none of its other waits imply.

        Args:
            hazards: the calls with which it has a hazard.
            whole: those of them that it waits for as a whole.
        """
        after = after_whole = 0
        waits = []
        by_parts = hazards & ~whole
        while left := whole & ~after_whole | by_parts & ~after:
            other = left.bit_length() - 1
            bit = 1 << other
            for_whole = bool(whole & bit)
            waits.append(Wait(other, for_whole))
            after |= self._any[other] | bit
            after_whole |= (self._any[other] | bit) if for_whole else self._whole[other]
        self._any.append(after)
        self._whole.append(after_whole)
        return tuple(waits)
