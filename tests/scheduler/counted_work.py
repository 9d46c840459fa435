"""Work of counted lists, whose results show whether calls ran in a legal order and with the counts of their time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from simengine_scheduler import FixedList, KernelCall, PythonLaunch, Segments, make_executor
from simengine_scheduler.core import Arrival, Counted, CountedList
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.testing import CalledDevice

COUNTS = 3


class Work:
    """A list whose counts differ from run to run: `count` writes them, and each counted call works on a number.

    In a list that is `hurried`, no call stands between the one that counts and the wait for it.
    """

    def __init__(
        self, device: CalledDevice | None, table: Segments, number: int, foreign: bool = False, hurried: bool = False
    ) -> None:
        self.number, self.table = number, table
        self.value, self.run, self.arrivals, self.moves = 1, 0, 0, True
        self.counts = np.zeros(COUNTS, np.int32)
        self.buffers = BufferSet()
        self.room = self.buffers.add("room", 10, 8)
        self.made: dict[tuple[int, int], KernelCall] = {}
        ids = [table.intern(name, number) for name in ("counts", "x")]
        self.ids = (ids[0],), (ids[1],)
        self._launch = _on_host if device is None else device.launch
        make = device.foreign_launch if device is not None and foreign else self._launch
        count = KernelCall(f"count {number}", make(self._count), self.ids[1], self.ids[0])
        middle = KernelCall(f"middle {number}", self._launch(partial(self._work, 7)), (), (), self.ids[1])
        last = KernelCall(f"last {number}", self._launch(partial(self._work, 11)), (), (), self.ids[1])
        chosen = [Counted(self.counts[k : k + 1], partial(self._call, k)) for k in range(COUNTS)]
        between = [] if hurried else [middle]
        self.list = CountedList([count, *between, Arrival(count, self._arrive), *chosen, last])
        self.fixed = FixedList([middle, last])

    def _count(self) -> None:
        self.run += 1
        self.counts[:] = [(self.number * 5 + self.run * 3 + k) % 4 for k in range(COUNTS)]

    def _arrive(self) -> None:
        self.arrivals += 1
        if self.moves and self.run % 3 == 0:  # as if an arena had grown
            self.room.rebind(self.room.ptr + 1, 8)

    def _call(self, place: int, count: int) -> KernelCall:
        assert 0 < count < 4
        if (place, count) not in self.made:
            body = partial(self._counted, place, count)
            launch = self._launch(body, [self.room], self.buffers)
            self.made[place, count] = KernelCall(f"call {place} {count}", launch, self.ids[0], (), self.ids[1])
        return self.made[place, count]

    def _counted(self, place: int, count: int, room: int) -> None:
        assert room == self.room.ptr
        self._work(100 * place + count)

    def _work(self, number: int) -> None:
        self.value = (3 * self.value + number) % 1_000_003


def _on_host(body: Callable[..., None], arguments: Sequence[Any] = (), buffers: BufferSet | None = None) -> Any:
    return PythonLaunch(lambda: body(*(argument.ptr for argument in arguments)))


def expected(number: int, runs: int, fixed: int = 0, hurried: bool = False) -> int:
    work = Work(None, Segments(), number, hurried=hurried)
    for run in range(runs):
        make_executor("serial").run([work.fixed if run < fixed else work.list])
    return work.value


class Roomy(Work):
    """Looks after its counts only if they have no room, which grows then, as an arena does."""

    def __init__(self, device: CalledDevice | None, table: Segments, number: int) -> None:
        super().__init__(device, table, number)
        self.most, self.grew = np.zeros(1, np.int32), 0
        self.found = np.full(COUNTS, -1, np.int32)
        entries: list[Any] = []
        for entry in self.list.entries:
            if isinstance(entry, Arrival):
                entries.append(Arrival(entry.call, self._look, ((self.counts, self.most),)))
            elif isinstance(entry, Counted):
                place = sum(isinstance(each, Counted) for each in entries)
                entries.append(Counted(entry.count, entry.call, self.found[place : place + 1]))
            else:
                entries.append(entry)
        self.list = CountedList(entries)

    def _look(self) -> None:
        self.arrivals += 1
        if self.counts.sum() > self.most[0]:
            self.grew += 1
            self.most[0] = self.counts.sum()
            self.room.rebind(self.room.ptr + 1, 8)
