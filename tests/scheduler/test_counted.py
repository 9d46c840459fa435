"""Counted lists: the calls that counts choose, by Python and by compiled code, with the results of serial."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import CallError, KernelCall, Segments, make_executor
from simengine_scheduler.core import Arrival, Counted, CountedList
from simengine_scheduler.executors import compiled_lists
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.testing import CalledDevice
from tests.scheduler.counted_work import Roomy, Work, expected


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 6),
    st.sampled_from(["serial", "streams", "polling"]),
    st.booleans(),
    st.sampled_from([1, 2, 32]),
    st.integers(1, 4),
    st.sampled_from([0.05, 0.5, 0.9]),
    st.booleans(),
    st.integers(0, 99),
)
def test_results_are_those_of_python(
    lists: int, name: str, compiled: bool, window: int, streams: int, eagerness: float, foreign: bool, seed: int
) -> None:
    device, table = CalledDevice(seed, eagerness), Segments()
    work = [Work(device, table, number, foreign and number % 2 == 0) for number in range(lists)]
    options: dict[str, Any] = {"window": window, "streams": streams, "compiled": compiled, "device": "cuda"}
    options["completion"] = "polling" if name == "polling" else "events"
    executor = make_executor(name.replace("polling", "streams"), segments=table, driver=device, stream=0, **options)
    for run in range(5):
        trace = executor.run([one.fixed if run < 2 and one.number == 1 else one.list for one in work])
        executor.synchronize()
        assert trace.counters.awaits == sum(run >= 2 or one.number != 1 for one in work)
        fixed = [run < 2 and one.number == 1 for one in work]
        assert trace.counters.calls == sum(
            2 if own else 3 + np.count_nonzero(one.counts) for one, own in zip(work, fixed, strict=True)
        )
    assert [one.value for one in work] == [expected(n, 5, 2 if n == 1 else 0) for n in range(lists)]
    assert [one.arrivals for one in work] == [3 if n == 1 else 5 for n in range(lists)]
    executor.close()


@pytest.mark.parametrize("window", [2, 3, 8])
@pytest.mark.parametrize("streams", [1, 2])
def test_a_call_that_waits_in_the_window_is_awaited_itself(window: int, streams: int) -> None:
    for seed in range(24):
        device, table = CalledDevice(seed, 0.05), Segments()
        work = [Work(device, table, number, hurried=True) for number in range(4)]
        options: dict[str, Any] = {"completion": "polling", "window": window, "streams": streams, "device": "cuda"}
        executor = make_executor("streams", segments=table, driver=device, stream=0, **options)
        for _ in range(4):
            executor.run([one.list for one in work])
            executor.synchronize()
        assert [one.value for one in work] == [expected(n, 4, hurried=True) for n in range(4)]
        executor.close()


@pytest.mark.parametrize("name", ["shuffled", "threads", "graph-cached", "pipeline", "streams"])
def test_other_executors_take_them_as_emitters(name: str) -> None:
    device, table = None if name in ("shuffled", "threads") else CalledDevice(1), Segments()
    work = [Work(device, table, number) for number in range(3)]
    options: dict[str, Any] = {} if device is None else {"driver": device, "stream": 0, "completion": "polling"}
    executor = make_executor(name, segments=table, **options)
    for _ in range(3):
        executor.run([one.list for one in work])
        executor.synchronize()
    assert [one.value for one in work] == [expected(n, 3) for n in range(3)]
    executor.close()


def test_a_call_that_is_awaited_stands_before() -> None:
    work = Work(None, Segments(), 0)
    count = work.list.entries[0]
    assert isinstance(count, KernelCall)
    with pytest.raises(ValueError, match="awaits call 'count 0', which does not stand before it"):
        CountedList([Arrival(count, lambda: None), count])


@pytest.mark.parametrize(("name", "completion"), [("serial", "events"), ("streams", "events"), ("streams", "polling")])
@pytest.mark.parametrize("foreign", [False, True])
def test_a_refused_launch_is_named(name: str, completion: str, foreign: bool) -> None:
    device, table = CalledDevice(1), Segments()
    work = Work(device, table, 0)
    bad = KernelCall("bad", _Refused(device, foreign), (), (table.intern("y"),))
    options: dict[str, Any] = {"driver": device, "stream": 0, "device": "cuda", "completion": completion}
    executor = make_executor(name, segments=table, **options)
    lists = CountedList([work.list.entries[0], bad])  # type: ignore[list-item]
    for given_lists in ([lists], [lists, work.list]):
        with pytest.raises(CallError) as found:
            executor.run(given_lists)
        assert found.value.call is bad
    executor.run([work.list])
    executor.synchronize()
    executor.close()


class _Refused:
    """A launch that the device refuses."""

    def __init__(self, device: CalledDevice, foreign: bool) -> None:
        self._device = device
        if not foreign:
            self.node = lambda: (1, (1, 1, 1), (1, 1, 1), 0, 10**9)  # no such body

    def issue(self, stream: int) -> None:
        raise ValueError("no")


@pytest.mark.parametrize("name", ["serial", "streams", "polling"])
def test_python_is_asked_for_one_of_the_counts_that_are_alike(name: str) -> None:
    device, table, count, asked, done = CalledDevice(2), Segments(), np.zeros(1, np.int32), list[int](), list[int]()
    where, counts = (table.intern("x"),), iter([3, 2, 4, 1, 7, 0, 8, 6, 3, 5])
    number = KernelCall("number", device.launch(lambda: count.fill(next(counts))), (), where)
    calls = [KernelCall(f"up to {2**k}", device.launch(partial(done.append, 2**k)), where, ()) for k in range(4)]

    def call(found: int) -> KernelCall:
        asked.append(found)
        return calls[(found - 1).bit_length()]

    def alike(found: int) -> range:
        up = 1 << (found - 1).bit_length()
        return range(up // 2 + 1, up + 1)

    counted = CountedList([number, Arrival(number, lambda: None), Counted(count, call, None, alike)])
    options: dict[str, Any] = {"device": "cuda", "completion": "polling" if name == "polling" else "events"}
    spec = {"segments": table, "driver": device, "stream": 0}
    with make_executor(name.replace("polling", "streams"), **spec, **options) as executor:
        for _ in range(10):
            executor.run([counted])
            executor.synchronize()
    assert asked == [3, 2, 1, 7]
    assert done == [4, 2, 4, 1, 8, 8, 8, 4, 8]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ["serial", "streams", "polling"])
def test_copies_of_a_call_have_the_arguments_that_were_packed_last(name: str, seed: int) -> None:
    """A list moves a buffer of the set, and then another list, which has room, finds a count that is new."""
    device, table, buffers, done = CalledDevice(seed, 0.4), Segments(), BufferSet(), list[int]()
    moving, counting, work = ((table.intern(each),) for each in ("moving", "counting", "work"))
    arena, room, counts = buffers.add("arena", 10, 8), np.full(1, 99, np.int32), np.array([0, 1], np.int32)

    def count_up() -> None:
        counts[0] += 1

    first = device.launch(lambda: None, buffers=buffers)
    made = {n: KernelCall(f"over {n}", first.with_body(partial(done.append, n)), (), work) for n in range(1, 9)}
    begin = KernelCall("begin", device.launch(lambda: None), (), moving)
    count = KernelCall("count", device.launch(count_up), (), counting)
    moves = CountedList([begin, Arrival(begin, lambda: arena.rebind(arena.ptr + 1, 8))])
    chosen = [Counted(counts[k : k + 1], made.__getitem__) for k in (0, 1)]
    counted = CountedList([count, Arrival(count, lambda: None, ((counts, room),)), *chosen])
    options: dict[str, Any] = {"device": "cuda", "completion": "polling" if name == "polling" else "events"}
    spec = {"segments": table, "driver": device, "stream": 0}
    with make_executor(name.replace("polling", "streams"), **spec, **options) as executor:
        for _ in range(8):
            executor.run([moves, counted])
            executor.synchronize()
    assert done == [number for n in range(1, 9) for number in (n, 1)]


@pytest.mark.parametrize("name", ["serial", "streams", "polling"])
@pytest.mark.parametrize("compiled", [True, False])
def test_python_looks_only_at_counts_that_have_no_room(name: str, compiled: bool) -> None:
    device, table = CalledDevice(5, 0.3), Segments()
    work = [Roomy(device, table, number) for number in range(4)]
    options: dict[str, Any] = {"compiled": compiled, "device": "cuda", "streams": 3}
    options["completion"] = "polling" if name == "polling" else "events"
    executor = make_executor(name.replace("polling", "streams"), segments=table, driver=device, stream=0, **options)
    for _ in range(8):
        trace = executor.run([one.list for one in work])
        executor.synchronize()
        assert trace.counters.awaits == len(work)
        assert trace.counters.calls == sum(3 + np.count_nonzero(one.counts) for one in work)
        for one in work:
            np.testing.assert_array_equal(one.found, one.counts)
    assert [one.value for one in work] == [expected(n, 8) for n in range(4)]
    assert all(one.grew for one in work)
    if compiled:
        assert [one.arrivals for one in work] == [one.grew for one in work]
        assert sum(one.arrivals for one in work) < 16
    else:
        assert [one.arrivals for one in work] == [8] * 4
    executor.close()


class Refusing(CalledDevice):
    """Records the first events, and none after them."""

    def __init__(self, records: int) -> None:
        super().__init__(5, 0.3)
        self.left = records

    def record(self, event: int, stream: int) -> None:
        if self.left == 0:
            raise RuntimeError("no more events")
        self.left -= 1
        super().record(event, stream)


@pytest.mark.parametrize("records", range(4))
def test_a_driver_that_refuses_to_record_an_event_is_heard(records: int) -> None:
    """The first event is that of the fork, and the last ones are those by which streams are joined."""
    device, table = Refusing(records), Segments()
    work = [Roomy(device, table, number) for number in range(3)]
    executor = make_executor("streams", segments=table, driver=device, stream=0, streams=3)

    def run() -> None:
        for _ in range(8):
            executor.run([one.list for one in work])

    with pytest.raises(RuntimeError, match="no more events"):
        run()


@pytest.mark.parametrize("name", ["serial", "streams"])
def test_lists_that_are_no_more_are_forgotten(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where new ones have the same calls, so that the executor knows no more of these."""
    monkeypatch.setattr(compiled_lists, "_MOST_ENDED", 8)
    forgotten, forget = list[int](), compiled_lists.CompiledLists.forget
    monkeypatch.setattr(compiled_lists.CompiledLists, "forget", lambda own: forgotten.append(1) or forget(own))
    device, table = CalledDevice(1), Segments()
    work = [Work(device, table, number) for number in range(2)]
    runs, ended = 40, list[weakref.ref[CountedList]]()
    with make_executor(name, segments=table, driver=device, stream=0, device="cuda") as executor:
        for _ in range(runs):
            other = CountedList(work[1].list.entries)
            ended.append(weakref.ref(other))
            executor.run([work[0].list, other])
            executor.synchronize()
            del other
    assert [one.value for one in work] == [expected(number, runs) for number in range(2)]
    assert not any(reference() for reference in ended)
    assert len(forgotten) == runs // 10
