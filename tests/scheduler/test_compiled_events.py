"""Which events compiled code records on streams, and what a host that polls must see."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from simengine_scheduler import KernelCall, Segments, make_executor, validate
from simengine_scheduler.core import Arrival, CountedList
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.testing import CalledDevice


def polling(name: str, device: CalledDevice, table: Segments) -> Any:
    options: dict[str, Any] = {"completion": "polling", "chains": name == "chains", "record": "order"}
    return make_executor("streams", segments=table, driver=device, stream=0, **options)


class _Counting(CalledDevice):
    """Counts the events that are recorded by compiled code and by Python."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.recorded: list[int] = []

    def record(self, event: int, stream: int) -> None:
        self.recorded.append(stream)
        super().record(event, stream)


@pytest.mark.parametrize("chains", [1, 3])
def test_an_event_stands_only_behind_calls_that_something_waits_for(chains: int) -> None:
    """Chains that share nothing need few events, so that the window is never full, and one for the fork."""
    device = _Counting(1)
    table = Segments()
    cells = [table.intern("cell", chain) for chain in range(chains)]
    calls = [KernelCall("call", device.launch(lambda: None), (), (), (cell,)) for cell in cells]
    with make_executor("streams", segments=table, driver=device, stream=0, pieces=False) as executor:
        executor.run([[call] * 12 for call in calls])
        executor.synchronize()
    assert len(device.recorded) == 1 + 3 * chains, "the fork, and one event for four calls, of which the last joins"


def test_what_waits_for_a_call_may_run_beside_what_follows_it_on_its_stream() -> None:
    """Calls `long` and `other` wait for `first` alone. One of them is on its stream."""
    orders = set()
    for seed in range(40):
        device, table = CalledDevice(seed), Segments()
        x, y, z = (table.intern(name) for name in "xyz")
        order: list[str] = []
        program = [
            KernelCall(name, device.launch(partial(order.append, name)), reads, (), updates)
            for name, reads, updates in (("first", (), (x,)), ("long", (x,), (y,)), ("other", (x,), (z,)))
        ]
        with make_executor("streams", segments=table, driver=device, stream=0, pieces=False) as executor:
            executor.run([program])
            executor.synchronize()
        assert order[0] == "first"
        orders.add(tuple(order))
    assert len(orders) == 2


@pytest.mark.parametrize(("name", "seen"), [("polling", 9), ("chains", 0)])
def test_with_chains_the_host_need_not_see_each_end(name: str, seen: int) -> None:
    device, table = CalledDevice(1), Segments()
    x = table.intern("x")
    calls = [KernelCall(f"call {k}", device.launch(lambda: None), (), (), (x,)) for k in range(10)]
    with polling(name, device, table) as executor:
        trace = executor.run([calls])
        executor.synchronize()
    assert sum(step.kind == "observe" for step in trace.log) == seen
    assert not validate(calls, trace, table)


def test_a_chain_holds_back_nothing_that_need_not_follow_it() -> None:
    """Two calls wait for the same one. The first goes behind it, and the second once the host has seen its end."""
    device, table = CalledDevice(1), Segments()
    x, y, z = (table.intern(name) for name in "xyz")
    calls = [
        KernelCall(name, device.launch(lambda: None), reads, (), updates)
        for name, reads, updates in (("head", (), (x,)), ("chained", (x,), (y,)), ("other", (x,), (z,)))
    ]
    with polling("chains", device, table) as executor:
        trace = executor.run([calls])
        executor.synchronize()
    steps = [(step.kind, step.seq) for step in trace.log]
    assert steps.index(("issue", 1)) < steps.index(("observe", 0)) < steps.index(("issue", 2))
    assert not validate(calls, trace, table)


@pytest.mark.parametrize("name", ["polling", "chains"])
def test_a_call_that_waits_gets_the_memory_of_when_it_was_yielded(name: str) -> None:
    """`late` waits for `slow` while `count` ends, and what is counted moves a buffer."""
    for seed in range(30):
        device, table, buffers, seen = CalledDevice(seed, 0.3), Segments(), BufferSet(), list[int]()
        room, (x, y, z) = buffers.add("room", 1, 8), (table.intern(name) for name in "xyz")
        slow, count = (KernelCall("slow", device.launch(lambda: None), (), (), (cell,)) for cell in (x, y))
        late = KernelCall("late", device.launch(seen.append, [room], buffers), (x,), (), (z,))

        def move(room: Any = room) -> None:
            room.rebind(2, 8)

        options: dict[str, Any] = {"completion": "polling", "chains": name == "chains"}
        with make_executor("streams", segments=table, driver=device, stream=0, **options) as executor:
            executor.run([CountedList([slow, slow, slow, count, late, Arrival(count, move)])])
            executor.synchronize()
        assert seen == [1], f"seed {seed}"
