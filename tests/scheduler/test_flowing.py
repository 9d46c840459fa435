"""Emitters whose calls compiled code takes and issues, without Python between one batch and the next."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from simengine_scheduler import AwaitCounts, CallError, KernelCall, Segments, make_executor
from simengine_scheduler.core import IDLE
from simengine_scheduler.executors import serial_compiled, streams_compiled
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.testing import CalledDevice
from simengine_scheduler.testing.null_driver import NullDriver, NullLaunch
from tests.scheduler.test_compiled import EXECUTORS, make


class Counting:
    """Calls that count, each on a cell of its own, and what they have counted."""

    def __init__(self, device: CalledDevice, number: int = 3) -> None:
        self.table, self.counts = Segments(), [0] * number
        self.calls = [self._call(device, k) for k in range(number)]

    def _call(self, device: CalledDevice, cell: int) -> KernelCall:
        def count() -> None:
            self.counts[cell] += 1

        return KernelCall(f"count {cell}", device.launch(count), (), (), (self.table.intern(str(cell)),))

    def emit(self, cell: int, rounds: int, seen: list[int]) -> Iterator[Any]:
        """Yield the call of a cell again and again, and await it each time."""
        for _ in range(rounds):
            yield self.calls[cell]
            yield IDLE
            yield AwaitCounts(self.calls[cell])
            seen.append(self.counts[cell])


@pytest.mark.parametrize("name", EXECUTORS)
@pytest.mark.parametrize("eagerness", [0.02, 0.5])
def test_emitters_see_what_they_await_without_a_batch_in_python(
    name: str, eagerness: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (serial_compiled, streams_compiled):
        monkeypatch.delattr(module, "make_feeder")
    device = CalledDevice(3, eagerness)
    own = Counting(device)
    seen: list[list[int]] = [[], [], []]
    executor = make(name, device, own.table, record="off")
    for _ in range(2):
        trace = executor.run([own.emit(cell, 5 + cell, seen[cell]) for cell in range(3)])
        assert (trace.counters.calls, trace.counters.awaits) == (18, 18)
    assert seen == [list(range(1, 2 * (5 + cell) + 1)) for cell in range(3)]
    executor.close()


@pytest.mark.parametrize("name", EXECUTORS)
@pytest.mark.parametrize("eagerness", [0.02, 1.0])
def test_a_call_of_long_ago_may_be_awaited_and_more_than_once(name: str, eagerness: float) -> None:
    device = CalledDevice(1, eagerness)
    own, seen = Counting(device), []
    first, second, third = own.calls

    def emit() -> Iterator[Any]:
        yield from (first, second, second)
        yield AwaitCounts(second)
        seen.append(own.counts[1])
        yield third
        yield AwaitCounts(first)
        yield AwaitCounts(second)
        yield AwaitCounts(third)
        seen.append(sum(own.counts))

    executor = make(name, device, own.table, record="off")
    assert executor.run([emit()]).counters.awaits == 4
    assert seen == [2, 4]


@pytest.mark.parametrize("name", EXECUTORS)
def test_what_is_wrong_is_named_and_all_emitters_are_closed(name: str) -> None:
    device = CalledDevice(1)
    own, closed = Counting(device), []
    unknown = KernelCall("unknown", device.launch(lambda: None), (9,), ())

    def emit(*items: Any) -> Iterator[Any]:
        try:
            yield own.calls[0]
            yield from items
        finally:
            closed.append(items)

    executor = make(name, device, own.table, record="off")
    wrong = [
        (5, TypeError, "an emitter yielded a int; yield KernelCall or AwaitCounts"),
        (AwaitCounts(own.calls[1]), ValueError, "awaits call 'count 1', which it has not yielded; yield the call"),
    ]
    if name != "serial":  # which looks at no segments
        wrong.append((unknown, ValueError, "call 'unknown' names segment 9, but the table holds 3"))
    for item, error, text in wrong:
        closed.clear()
        with pytest.raises(error, match=text):
            executor.run([emit(own.calls[2], item), emit(*[own.calls[1]] * 600)])
        assert len(closed) == 2
        own.counts[:] = [0, 0, 0]
        executor.run([[own.calls[2]], own.emit(1, 2, [])])
        executor.synchronize()
        assert own.counts == [0, 2, 1]


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_query_that_fails_names_the_call_that_was_issued_last(name: str) -> None:
    device = CalledDevice(1, 0.02)
    own = Counting(device)

    def refuse(event: int) -> bool:
        raise OSError("no answer")

    executor = make(name, device, own.table, record="off")
    device.query = refuse  # type: ignore[method-assign]
    with pytest.raises(CallError, match="no answer"):
        executor.run([own.emit(0, 1, [])])


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_buffer_that_an_emitter_moves_is_seen_by_the_calls_behind_it(name: str) -> None:
    device, table, seen = CalledDevice(2, 0.1), Segments(), list[int]()
    buffers = BufferSet()
    room = buffers.add("room", 1, 8)
    call = KernelCall("note", device.launch(seen.append, [room], buffers), (), (), (table.intern("x"),))

    def emit() -> Iterator[Any]:
        for place in range(2, 9):
            yield call
            yield AwaitCounts(call)
            room.rebind(place, 8)
        yield call

    executor = make(name, device, table, record="off")
    executor.run([emit()])
    executor.synchronize()
    assert seen == list(range(1, 9))


@pytest.mark.parametrize("name", EXECUTORS)
def test_others_run_and_may_interrupt_while_all_emitters_wait(name: str) -> None:
    table, buffers, ran = Segments(), BufferSet(), threading.Event()
    call = KernelCall("k", NullLaunch(1, buffers), (), (), (table.intern("x"),))
    options = {"completion": "polling", "chains": name == "chains"} if name in ("polling", "chains") else {}
    kind = "serial" if name == "serial" else "streams"
    executor = make_executor(kind, segments=table, driver=NullDriver(ends=False), device="cuda", **options)

    def interrupt() -> None:
        ran.set()
        _thread.interrupt_main()

    timer = threading.Timer(0.05, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        executor.run([[call, AwaitCounts(call)]])
    assert ran.is_set()
    timer.join()
