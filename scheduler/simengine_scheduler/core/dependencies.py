"""Dependency graphs of runs of calls: which earlier calls each call must wait for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .calls import KernelCall
from .hazards import HazardTracker


class RunTracker:
    """Finds what calls must wait for. What it learns about combinations of segments makes later runs cheaper."""

    def __init__(self, conflicts: list[tuple[int, ...]]) -> None:
        self._tracker = HazardTracker(conflicts)
        self._following = 0  # sequence numbers grow from run to run

    def upstream_of(self, calls: Sequence[KernelCall]) -> list[set[int]]:
        """Return for each call of a run, by position, the earlier calls that it must wait for.

        Of several calls that touch the same segments and write, only the newest is named; see `HazardTracker`.
        """
        tracker, first = self._tracker, self._following
        self._following += len(calls)
        tracker.clear()
        return [{other - first for other in tracker.add(first + i, call)} for i, call in enumerate(calls)]


def reduced(upstream: Sequence[Iterable[int]]) -> list[tuple[int, ...]]:
    """Return the transitive reduction: for each call those that it must come directly after, newest first.

    A wait that another wait implies is left out.
    """
    behind: list[int] = []  # bit sets of all calls that a call comes after
    found = []
    for others in upstream:
        reached, direct = 0, list[int]()
        for other in sorted(others, reverse=True):
            if not reached >> other & 1:
                direct.append(other)
                reached |= behind[other] | 1 << other
        behind.append(reached)
        found.append(tuple(direct))
    return found


def dependencies(calls: Sequence[KernelCall], conflicts: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return for each call, by position, the earlier calls that it must come directly after, newest first."""
    return reduced(RunTracker(conflicts).upstream_of(calls))


def chains(waits: Sequence[tuple[int, ...]]) -> list[int]:
    """Return a row for each call, which shows a graph as if it ran on streams: calls of one row follow each other.

    A call joins the row of the newest call that it waits for, if no other call has joined there.
    """
    rows, ends = list[int](), dict[int, int]()
    for seq, direct in enumerate(waits):
        before = next((other for other in direct if other in ends), None)
        rows.append(max(rows, default=-1) + 1 if before is None else ends.pop(before))
        ends[seq] = rows[-1]
    return rows
