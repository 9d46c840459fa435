"""`CountedSteps`: steps by counts as a counted list, which compiled code runs without Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from simengine.emission.binding import BoundAwait, BoundEvaluation
from simengine.emission.calls import EmittedCall
from simengine.emission.store import Arena, GroupStore
from simengine_scheduler.core import Arrival, Counted, CountedList
from simengine_scheduler.core.counted import Entry


class CountedSteps:
    """Steps by counts.

    Args:
        evaluations: of all steps.
        last: how many of them are those of the last step.
        store: memory.
        place: index of the shard in its group.

    Attributes:
        list: the calls, and what is counted.
    """

    def __init__(self, evaluations: Sequence[BoundEvaluation], last: int, store: GroupStore, place: int):
        self._items = [item for bound in evaluations for item in bound]
        self._logged = sum(map(len, evaluations[:-last]))  # items of earlier steps, which the log leaves out
        self._seen = np.zeros(len(self._items), np.int32)  # the latest count of each counted item
        entries: list[Entry] = []
        for number, item in enumerate(self._items):
            if isinstance(item, BoundAwait):
                needs = _needs(item, store, place)
                rooms = tuple((counts, arena.room) for arena, counts in needs)
                entries.append(Arrival(item.scan.call, partial(_reserve, needs), rooms))
            elif item.counted is None:
                entries.append(item.call.sized(item.units))
            else:
                row, first = store.host_counts(item.counted.table)[place], item.counted.first
                found, seen = row[first : first + 1], self._seen[number : number + 1]
                entries.append(Counted(found, item.call.counted, seen, item.call.alike))
        self.list = CountedList(entries)

    def log(self) -> list[EmittedCall]:
        """The calls of the last step of the latest run, in program order."""
        calls = []
        for item, seen in zip(self._items[self._logged :], self._seen[self._logged :].tolist(), strict=True):
            if isinstance(item, BoundAwait):
                continue
            if item.counted is None:
                calls.append(EmittedCall(item.call.sized(item.units), item.units))
            elif seen:
                calls.append(EmittedCall(item.call.counted(seen), seen))
        return calls


def _needs(item: BoundAwait, store: GroupStore, place: int) -> list[tuple[Arena, np.ndarray]]:
    """The arenas that must have room, and the counts whose sum each must hold."""
    found = []
    for space, (table, first, number) in item.needs:
        found.append((store.arena(space, place), store.host_counts(table)[place][first : first + number]))
    return found


def _reserve(needs: Sequence[tuple[Arena, np.ndarray]]) -> None:
    for arena, counts in needs:
        arena.reserve(int(counts.sum(dtype=np.int64)))
