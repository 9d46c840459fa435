"""`ListCounts`: totals of contacts, rows and frozen worlds of the groups of a `ListEngine`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from simengine.emission.shard import ShardEmitter
from simengine.emission.store import GroupStore
from simengine.state.fields import COLUMNS
from simengine_scheduler.core import KernelCall

Run = Callable[[Sequence[KernelCall]], None]
"""Runs calls, each by itself, and waits for them."""


class ListCounts:
    """Adds up counts of groups whose latest steps have not done so, once they are asked for.

    Args:
        stores: memory of each group.
        emitters: emitters of each group's shards.
    """

    def __init__(self, stores: Mapping[int, GroupStore], emitters: Mapping[int, Sequence[ShardEmitter]]) -> None:
        self._stores = stores
        self._emitters = emitters
        self._uncounted: set[int] = set()
        self._bad: list[memoryview] | None = None  # the numbers of frozen worlds of all shards

    def regroup(self) -> None:
        """Note that there are other groups than before."""
        self._bad = None

    def note(self, groups: Iterable[int], counted: bool) -> None:
        """Note whether the latest steps of groups have added up their counts."""
        (self._uncounted.difference_update if counted else self._uncounted.update)(groups)

    def note_all(self) -> None:
        """Note that all groups have been counted."""
        self._uncounted.clear()

    def totals(self, group: int, run: Run) -> dict[str, int]:
        """Totals of the latest count over the group's shards, by name of the column."""
        self._count(group, run)
        totals = self._stores[group].totals_host[:, : len(COLUMNS)].sum(axis=0).tolist()
        return dict(zip(COLUMNS, totals, strict=True))

    def bad_worlds(self, group: int, run: Run) -> int:
        """Number of frozen worlds at the latest count."""
        if any(emitter.bad[0] for emitter in self._emitters[group]):
            self._count(group, run)
        return sum(emitter.bad_worlds for emitter in self._emitters[group])

    def has_bad_worlds(self, run: Run) -> bool:
        """Whether a group has frozen worlds at the latest count."""
        if self._bad is None:
            self._bad = [emitter.bad for shards in self._emitters.values() for emitter in shards]
        for bad in self._bad:  # a plain loop, since this ends every step
            if bad[0]:
                return any(self.bad_worlds(group, run) for group in self._emitters)
        return False

    def _count(self, group: int, run: Run) -> None:
        """Add up the counts of a group's latest step, if that has not been done."""
        if group in self._uncounted:
            self._uncounted.discard(group)
            calls = [emitter.count_call for emitter in self._emitters[group]]
            run([call for call in calls if call is not None])
