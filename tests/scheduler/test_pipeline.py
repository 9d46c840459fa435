"""The pipeline executor on a fake asynchronous device: legality, the bits of serial, stealing, bounds, failures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simengine_scheduler import AwaitCounts, CallError, FixedList, KernelCall, Segments, make_executor, validate
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.testing.fake_device import DeviceFault, FakeDevice
from tests.scheduler.programs import Program, Spec, run_and_check, specs


def pipeline(device: FakeDevice, table: Segments, **options: Any) -> Any:
    return make_executor("pipeline", segments=table, driver=device, stream=0, **{"record": "order", **options})


@settings(max_examples=40, deadline=None)
@given(
    specs(),
    st.sampled_from(["order", "times"]),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([0.05, 0.5, 0.9]),
    st.integers(0, 99),
)
def test_any_list(
    emitters: list[list[Spec]], record: str, streams: int, depth: int, eagerness: float, seed: int
) -> None:
    device = FakeDevice(seed, eagerness)
    program = Program(emitters, device.launch)
    executor = pipeline(device, program.segments, record=record, streams=streams, depth=depth)
    for _ in range(3):  # call by call, then as graphs
        run_and_check(program, executor)
    executor.close()
    assert not device.graphs


NOTHING = Spec((), (), ())
A, B = (0, 0, 0), (1, 0, 0)
PART_IN_THE_SECOND_ROUND = [
    [*[NOTHING] * 2, Spec((A,), (), (B,)), NOTHING, Spec((A, A, A), (), ()), Spec((), (), (A,)), Spec((A,), (), ())]
    + [NOTHING] * 5,
    [Spec((), (B,), ()), *[NOTHING] * 3],
    [NOTHING, Spec((), (A,), ()), Spec((), (A, A), ())],
]
"""Lists whose hazards, without those that earlier rounds imply, are others in the second round than in the first."""


@settings(max_examples=25, deadline=None)
@given(specs(), st.integers(1, 3), st.integers(0, 99))
def test_one_emitter_gives_the_bits_of_serial(emitters: list[list[Spec]], streams: int, seed: int) -> None:
    """With one emitter program order is fixed, awaits and branches included."""
    expected = run_and_check(Program(emitters[:1]), make_executor("serial", record="order"))
    device = FakeDevice(seed)
    program = Program(emitters[:1], device.launch)
    executor = pipeline(device, program.segments, streams=streams)
    assert run_and_check(program, executor) == expected
    executor.close()


@settings(max_examples=25, deadline=None)
@given(specs(awaits=False), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(0, 99))
@example(PART_IN_THE_SECOND_ROUND, 2, 1, 2, 0)
def test_fixed_lists_give_the_bits_of_serial_in_every_round(
    emitters: list[list[Spec]], streams: int, depth: int, times: int, seed: int
) -> None:
    device = FakeDevice(seed, eagerness=0.05)
    program = Program(emitters, device.launch)
    lists = [FixedList(emitter) for emitter in program.emitters()]  # type: ignore[arg-type]
    serial = make_executor("serial", device="cuda", driver=device, stream=0)
    program.reset()
    for _ in range(times):
        serial.run(lists)
    serial.synchronize()
    expected = program.snapshot()
    plain = pipeline(device, program.segments, streams=streams, depth=depth, record="off")
    recorded = pipeline(device, program.segments, streams=streams, depth=depth)
    for executor in (plain, plain, recorded):
        program.reset()
        trace = executor.repeat(lists, times)
        executor.synchronize()
        assert program.snapshot() == expected
        assert trace.counters.calls == sum(map(len, lists)) * (times if executor is plain else 1)
        if executor is recorded:
            assert validate(trace.order, trace, program.segments) == []
    for executor in (plain, recorded):
        executor.close()


@pytest.mark.parametrize("record", ["off", "order", "times"])
def test_lists_that_come_again_are_graphs(record: str) -> None:
    device, table = FakeDevice(1), Segments()
    ids = [table.intern(f"b{k}") for k in range(2)]
    body = device.launch(lambda: None)
    lists = [FixedList([KernelCall(f"c{k}{i}", body, (), (ids[k],)) for i in range(5)]) for k in range(2)]
    executor = pipeline(device, table, record=record)
    launches = [executor.run(lists).counters.launches for _ in range(4)]
    assert launches == [2] * 4
    assert executor.built == (10 if record == "times" else 2)  # events belong to one run
    assert [executor.run([list(fixed) for fixed in lists]).counters.launches for _ in range(3)] == [10, 2, 2]
    counters = executor.run(lists).counters
    # within each graph four links of a chain; between the jobs none
    assert (counters.jobs, counters.calls, counters.waits_asked, counters.waits_inserted) == (2, 10, 8, 8)
    assert counters.job_seconds > 0
    executor.close()


def test_a_graph_is_built_again_after_a_buffer_has_moved() -> None:
    device, table, buffers, seen = FakeDevice(1), Segments(), BufferSet(), list[int]()
    buffer = buffers.add("x", 8, 8)
    launch = device.launch(seen.append, (buffer,), buffers)
    lists = [FixedList([KernelCall(f"c{i}", launch, (), (table.intern("x"),)) for i in range(2)])]
    executor = pipeline(device, table, record="off")
    for address in (8, 64):
        buffer.rebind(address, 8)
        for _ in range(2):
            executor.run(lists)
        executor.synchronize()
    assert seen == [8, 8, 8, 8, 64, 64, 64, 64]
    assert executor.built == 2
    executor.close()


def test_rounds_of_lists_that_share_nothing_part() -> None:
    """A list goes on to its next round while another one is still in its first."""
    found = set()
    for seed in range(20):
        device, table, order = FakeDevice(seed, eagerness=0.3), Segments(), list[str]()
        lists = []
        for k, count in enumerate((2, 12)):
            body = device.launch(lambda k=k, order=order: order.append(f"{k}"))
            lists.append(FixedList([KernelCall(f"{k}", body, (), (table.intern(f"b{k}"),))] * count))
        executor = pipeline(device, table, record="off", depth=4)
        executor.repeat(lists, 3)
        executor.synchronize()
        assert len(order) == 3 * 14
        second_round = [i for i, k in enumerate(order) if k == "0"][2]
        first_round_of_other = [i for i, k in enumerate(order) if k == "1"][11]
        found.add(second_round < first_round_of_other)
        executor.close()
    assert True in found


def test_an_awaited_call_resumes_its_emitter_while_the_rest_goes_on() -> None:
    device, table = FakeDevice(3, eagerness=0.05), Segments()
    n, rest = table.intern("n"), table.intern("rest")
    total, seen = [0], list[tuple[int, int]]()

    def bump() -> None:
        total[0] += 1

    ran: list[int] = []
    count = KernelCall("count", device.launch(bump), (), (), (n,))
    others = KernelCall("rest", device.launch(lambda: ran.append(1)), (), (), (rest,))

    def emitter() -> Iterator[KernelCall | AwaitCounts]:
        for _ in range(3):
            yield count
            for _ in range(10):
                yield others
            yield AwaitCounts(count)
            seen.append((total[0], len(ran)))

    executor = pipeline(device, table)
    trace = executor.run([emitter()])
    executor.synchronize()
    assert [numbers for numbers, _ in seen] == [1, 2, 3]
    assert any(done < 10 * number for number, done in seen)  # the rest had not all run
    assert len(ran) == 30
    assert validate(trace.order, trace, table) == []
    executor.close()


def test_run_orders_with_the_home_stream_on_both_sides() -> None:
    for seed in range(20):
        device, table, order = FakeDevice(seed, eagerness=0.05), Segments(), list[str]()
        executor = pipeline(device, table, streams=3)
        device.enqueue(0, lambda order=order: order.append("before"))
        body = device.launch(lambda order=order: order.append("run"))
        executor.run([[KernelCall("k", body, (), (table.intern(f"b{i}"),))] for i in range(6)])
        device.enqueue(0, lambda order=order: order.append("after"))
        device.synchronize(0)
        assert order == ["before", *["run"] * 6, "after"]
        executor.close()


class Refused:
    """A launch that the driver refuses."""

    def issue(self, stream: int) -> None:
        raise ValueError("invalid configuration")


def test_a_refused_launch_is_named_and_running_calls_finish() -> None:
    device, table, ran = FakeDevice(2, eagerness=0.1), Segments(), list[int]()
    body = device.launch(lambda: ran.append(1))
    good = [KernelCall(f"g{k}", body, (), (table.intern(f"b{k}"),)) for k in range(4)]
    bad = KernelCall("bad", Refused(), (), (table.intern("bad"),))
    executor = pipeline(device, table)
    with pytest.raises(CallError, match=r"call 'bad' .*invalid configuration") as info:
        executor.run([[*good, bad, *good]])
    assert info.value.call is bad
    assert len(ran) == 4
    trace = executor.run([good])
    executor.synchronize()
    assert len(ran) == 8
    assert validate(trace.order, trace, table) == []
    executor.close()


def test_a_graph_that_cannot_be_built_is_named() -> None:
    class Broken(FakeDevice):
        def build_graph(self, launches: Any, waits: Any, events: Any) -> int:
            raise ValueError("no such kernel")

    device, table = Broken(1), Segments()
    lists = [FixedList([KernelCall(f"c{k}", device.launch(lambda: None), (), (table.intern("x"),)) for k in range(3)])]
    executor = pipeline(device, table, record="off")
    with pytest.raises(CallError, match="executor 'pipeline' could not build a graph of 3 calls.*no such kernel"):
        executor.run(lists)
    executor.close()


def test_a_fault_says_that_the_context_is_lost() -> None:
    device, table = FakeDevice(4), Segments()
    x = table.intern("x")

    def illegal() -> None:
        raise MemoryError("illegal address")

    calls = [KernelCall(name, device.launch(body), (), (x,)) for name, body in (("a", illegal), ("b", lambda: None))]
    endless = itertools.repeat(KernelCall("c", device.launch(lambda: None), (), (table.intern("y"),)))
    executor = pipeline(device, table)
    with pytest.raises(CallError, match=r"CUDA fault ended the context.*executor='serial', check_each=True") as info:
        executor.run([calls * 20, endless])
    assert info.value.fatal
    assert isinstance(info.value.cause, DeviceFault)
    executor.close()


def test_an_emitter_that_raises_passes_through() -> None:
    device, table = FakeDevice(6), Segments()
    call = KernelCall("fine", device.launch(lambda: None), (), (table.intern("a"),))

    def emitter() -> Iterator[KernelCall]:
        yield call
        raise LookupError("world 3 is not finite")

    executor = pipeline(device, table)
    with pytest.raises(LookupError, match="world 3"):
        executor.run([emitter()])
    assert executor.run([[call]]).counters.calls == 1
    with pytest.raises(ValueError, match=r"repeat\(\) of executor 'pipeline' got times=0; give at least 1"):
        executor.repeat([FixedList([call])], 0)
    executor.close()
