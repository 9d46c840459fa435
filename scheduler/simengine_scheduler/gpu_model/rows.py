"""Rows of a trace where there are no streams: a call in flight has the lowest row that was free when it started."""

from __future__ import annotations

import heapq


class Rows:
    """Numbers from 0, the lowest free one first."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._made = 0

    def take(self) -> int:
        """Return a free row."""
        if self._free:
            return heapq.heappop(self._free)
        self._made += 1
        return self._made - 1

    def give(self, row: int) -> None:
        """Return a row, so that it is free."""
        heapq.heappush(self._free, row)
