"""Runs of calls that become two pieces, so that a part of them need not wait for what is in flight."""

from __future__ import annotations

import pytest

from simengine_scheduler import KernelCall, Segments, make_executor
from simengine_scheduler.core import Arrival, CountedList
from simengine_scheduler.testing import CalledDevice
from tests.scheduler.test_pieces import cheap, pieces_of

__all__ = ["cheap"]  # a fixture


class Lists:
    """Lists that await a count, with calls beside it, and calls behind it of which some wait for those.

        count | a b c | ( await ) e f | g h          g comes after c and f

    Args:
        device: runs them.
        lists: how many there are.
        free: how many calls behind the wait need not wait for c.
    """

    def __init__(self, device: CalledDevice, lists: int, free: int) -> None:
        self.table, self.order, self.cells = Segments(), list[str](), dict[str, int]()
        self.lists = [self._list(device, str(number), free) for number in range(lists)]

    def _list(self, device: CalledDevice, own: str, free: int) -> CountedList:
        def call(name: str, reads: str, cell: str) -> KernelCall:
            def body() -> None:
                self.order.append(name + own)
                seen = [self.cells.get(each + own, 1) for each in (*reads, cell)]
                self.cells[cell + own] = sum(31**k * value for k, value in enumerate(seen)) % 2**64

            read = tuple(self.table.intern(each + own) for each in reads)
            return KernelCall(name, device.launch(body), read, (), (self.table.intern(cell + own),))

        count = call("count", "", "n")
        behind = [call(name, "n", "y") for name in "efij"[:free]]
        before = [count, *(call(name, "", "x") for name in "abc")]
        after = [*behind, call("g", "xy", "z"), call("h", "", "z")]
        return CountedList([*before, Arrival(count, lambda: None), *after])


def run(device: CalledDevice, own: Lists, times: int = 5) -> int:
    """Run the lists some times. Returns how many pieces the last run has."""
    with make_executor("streams", segments=own.table, driver=device, stream=0) as executor:
        for _ in range(times):
            own.order.clear()
            executor.run(own.lists)
            executor.synchronize()
        return pieces_of(executor).native.launched


@pytest.mark.usefixtures("cheap")
def test_calls_that_need_not_wait_run_beside_what_is_in_flight() -> None:
    early, results = 0, set()
    for seed in range(40):
        device = CalledDevice(seed, 0.3)
        own = Lists(device, 1, free=2)
        assert run(device, own) == 4  # count, a b c, e f, and g h
        assert own.order.index("g0") > max(map(own.order.index, ("c0", "f0")))
        early += own.order.index("e0") < own.order.index("c0")
        results.add(tuple(sorted(own.cells.items())))
    assert early > 0
    assert len(results) == 1


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize(("lists", "free", "pieces"), [(1, 0, 3), (4, 2, 16), (5, 2, 15)])
def test_a_run_is_one_piece_where_two_gain_nothing_or_emitters_are_many(lists: int, free: int, pieces: int) -> None:
    device = CalledDevice(1, 0.3)
    assert run(device, Lists(device, lists, free)) == pieces
