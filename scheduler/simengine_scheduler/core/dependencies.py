"""Dependency graphs of runs of calls: which calls each must wait for, without those that others imply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .calls import KernelCall
from .hazards import HazardTracker


class RunTracker:
    """Finds what calls must wait for, run after run; what it knows of combinations of segments serves later runs."""

    def __init__(self, conflicts: list[tuple[int, ...]]) -> None:
        self._tracker = HazardTracker(conflicts)
        self._following = 0  # sequence numbers grow from run to run

    def upstream_of(self, calls: Sequence[KernelCall]) -> list[set[int]]:
        """For each call of a run, by position, the earlier calls that the hazard check has it wait for.

        Of calls with one set of segments that writes, only the newest is named; see `HazardTracker`.
        """
        tracker, first = self._tracker, self._following
        self._following += len(calls)
        tracker.clear()
        return [{other - first for other in tracker.add(first + i, call)} for i, call in enumerate(calls)]


def reduced(upstream: Sequence[Iterable[int]]) -> list[tuple[int, ...]]:
    """The transitive reduction: for each call those that it must come directly after, newest first.

    A wait is left out where another one implies it.
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
    """For each call, by position, the earlier calls that it must come directly after, newest first."""
    return reduced(RunTracker(conflicts).upstream_of(calls))


def chains(waits: Sequence[tuple[int, ...]]) -> list[int]:
    """A row for each call, so that the calls of a row come one after another: to show a graph as streams.

    A call joins the row of the newest call it waits for that nothing has joined yet.
    """
    rows, ends = list[int](), dict[int, int]()
    for seq, direct in enumerate(waits):
        before = next((other for other in direct if other in ends), None)
        rows.append(max(rows, default=-1) + 1 if before is None else ends.pop(before))
        ends[seq] = rows[-1]
    return rows
