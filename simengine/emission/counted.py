"""`CountedStep`: a step by counts as a counted list, which compiled code runs without Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from simengine.emission.binding import BoundAwait, BoundEvaluation
from simengine.emission.calls import EmittedCall
from simengine.emission.store import GroupStore
from simengine_scheduler import KernelCall
from simengine_scheduler.core import Arrival, Counted, CountedList
from simengine_scheduler.core.counted import Entry


class CountedStep:
    """A step of one evaluation.

    Attributes:
        list: the calls, and what is counted.
    """

    def __init__(self, bound: BoundEvaluation, store: GroupStore, place: int, counted: Callable[[], None]):
        """Args: the evaluation, memory, index of the shard in its group, and what is told that counts have arrived."""
        entries: list[Entry] = []
        self._units: dict[KernelCall, int] = {}  # of calls that have no count
        for item in bound:
            if isinstance(item, BoundAwait):
                entries.append(Arrival(item.scan.call, partial(_reserve, _needs(item, store, place), counted)))
            elif item.counted is None:
                call = item.call.sized(item.units)
                entries.append(call)
                self._units[call] = item.units
            else:
                row, first = store.host_counts(item.counted.table)[place], item.counted.first
                entries.append(Counted(row[first : first + 1], item.call.sized))
        self.list = CountedList(entries)

    def log(self) -> list[EmittedCall]:
        """The calls of the latest run, in program order."""
        return [EmittedCall(call, count or self._units[call]) for call, count in self.list.calls()]


def _needs(item: BoundAwait, store: GroupStore, place: int) -> list[tuple[Callable[[int], None], memoryview]]:
    """What reserves the capacity of each arena, and the counts whose sum it must hold."""
    found: list[tuple[Callable[[int], None], memoryview]] = []
    for space, (table, first, number) in item.needs:
        counts = memoryview(store.host_counts(table)[place][first : first + number])
        found.append((store.arena(space, place).reserve, counts))
    return found


def _reserve(needs: list[tuple[Callable[[int], None], memoryview]], counted: Callable[[], None]) -> None:
    for reserve, counts in needs:
        reserve(sum(counts))
    counted()
