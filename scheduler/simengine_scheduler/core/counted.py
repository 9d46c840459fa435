"""Counted lists: lists of a known form, in which counts choose the calls.

    list = CountedList([count, Arrival(count), Counted(found, call_of)])
    executor.run([list])

A list like this is an emitter. Compiled code runs it without Python, call by call; other executors ask it for its calls
as they ask any emitter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .calls import AwaitCounts, Item, KernelCall


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """An entry that has a call unless its count is 0.

    Attributes:
        count: (1,) int32, in memory that the host sees. It is read when the entry has its turn.
        call: the call for a count. It is asked again for the same count, and returns the same call then.
        seen: (1,) int32, the count that was found when the entry had its turn last; None if nobody asks for it.
        alike: the counts that have the same call as a count, which is among them. Compiled code then asks for the call
            of only one of them. None: each count may have a call of its own.
    """

    count: np.ndarray
    call: Callable[[int], KernelCall]
    seen: np.ndarray | None = None
    alike: Callable[[int], range] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """An entry that awaits an earlier call of the list.

    Attributes:
        call: what is awaited. It stands in the list before.
        then: called by the host once the call has completed, and before the entries that follow have their turns.
        rooms: pairs of counts, (n,) int32, and of the room that there is for their sum, (1,) int32. If given, compiled
            code calls `then` only if a sum is larger than its room. All are in memory that the host sees, and stay
            where they are.
    """

    call: KernelCall
    then: Callable[[], None]
    rooms: tuple[tuple[np.ndarray, np.ndarray], ...] | None = None


Entry = KernelCall | Counted | Arrival


class CountedList:
    """A list of entries, which counts make a list of calls.

    Attributes:
        entries: as given.

    Raises:
        ValueError: a call is awaited that does not stand in the list before.
    """

    __slots__ = ("__weakref__", "entries")

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = tuple(entries)
        before: set[KernelCall] = set()
        for entry in self.entries:
            if isinstance(entry, Arrival) and entry.call not in before:
                raise ValueError(f"a counted list awaits call {entry.call.name!r}, which does not stand before it")
            if isinstance(entry, KernelCall):
                before.add(entry)

    def __iter__(self) -> Iterator[Item]:
        """Yield the calls of a run."""
        for entry in self.entries:
            if type(entry) is KernelCall:
                yield entry
            elif type(entry) is Arrival:
                yield AwaitCounts(entry.call)
                entry.then()
            elif type(entry) is Counted:
                count = int(entry.count[0])
                if entry.seen is not None:
                    entry.seen[0] = count
                if count:
                    yield entry.call(count)
