"""`CountedStep`: a step by counts as a counted list, which compiled code runs without Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from simengine.emission.binding import BoundAwait, BoundEvaluation
from simengine.emission.calls import EmittedCall
from simengine.emission.store import GroupStore
from simengine_scheduler.core import Arrival, Counted, CountedList
from simengine_scheduler.core.counted import Entry


class CountedStep:
    """A step by counts.

    Attributes:
        list: the calls, and what is counted.
    """

    def __init__(
        self, evaluations: Sequence[BoundEvaluation], store: GroupStore, place: int, counted: Callable[[], None]
    ):
        """Args: the evaluations, memory, index of the shard in its group, and what is told that counts have arrived."""
        self._evaluations = evaluations
        self._rows = {table: memoryview(store.host_counts(table)[place]) for table in _tables(evaluations)}
        self._seen: list[dict[str, list[int]]] = [{} for _ in evaluations]  # latest counts of each evaluation
        entries: list[Entry] = []
        for number, bound in enumerate(evaluations):
            told = counted if len(evaluations) == 1 else partial(self._see, number, counted)
            for item in bound:
                if isinstance(item, BoundAwait):
                    entries.append(Arrival(item.scan.call, partial(_reserve, _needs(item, store, place), told)))
                elif item.counted is None:
                    entries.append(item.call.sized(item.units))
                else:
                    row, first = store.host_counts(item.counted.table)[place], item.counted.first
                    entries.append(Counted(row[first : first + 1], item.call.sized))
        self.list = CountedList(entries)

    def _see(self, number: int, counted: Callable[[], None]) -> None:
        self._seen[number] = {table: row.tolist() for table, row in self._rows.items()}
        counted()

    def log(self) -> list[EmittedCall]:
        """The calls of the latest run, in program order."""
        latest = {table: row.tolist() for table, row in self._rows.items()}
        calls = []
        for bound, seen in zip(self._evaluations, self._seen, strict=True):
            counts = seen or latest
            for item in bound:
                if isinstance(item, BoundAwait):
                    continue
                units = item.units if item.counted is None else counts[item.counted.table][item.counted.first]
                if units:
                    calls.append(EmittedCall(item.call.sized(units), units))
        return calls


def _tables(evaluations: Sequence[BoundEvaluation]) -> list[str]:
    """Names of the tables of counts that choose calls."""
    items = (item for bound in evaluations for item in bound)
    counted = (item.counted for item in items if not isinstance(item, BoundAwait) and item.counted is not None)
    return list(dict.fromkeys(count.table for count in counted))


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
