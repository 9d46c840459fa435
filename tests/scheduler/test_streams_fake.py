"""The CUDA executors on a fake asynchronous device: both completion modes, and serial on one stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import (
    AwaitCounts,
    CallError,
    Executor,
    FixedList,
    KernelCall,
    Segments,
    make_executor,
    validate,
)
from simengine_scheduler.testing.fake_device import DeviceFault, FakeDevice
from tests.scheduler.programs import Program, Spec, run_and_check, specs

MODES = ["events", "polling"]
STREAM_POLICIES = ["follow", "least_loaded", "round_robin"]


def streams_on(device: FakeDevice, table: Segments, **options: Any) -> Executor:
    return make_executor("streams", segments=table, driver=device, stream=0, **{"record": "order", **options})


def call_on(
    device: FakeDevice, name: str, body: Any, reads: tuple[int, ...] = (), writes: tuple[int, ...] = ()
) -> KernelCall:
    return KernelCall(name, device.launch(body), reads, writes)


@settings(max_examples=120, deadline=None)
@given(
    specs(),
    st.sampled_from([1, 2, 32]),
    st.integers(1, 4),
    st.sampled_from(MODES),
    st.sampled_from(STREAM_POLICIES),
    st.sampled_from([0.05, 0.5, 0.9]),
    st.integers(0, 99),
)
def test_any_list_in_any_mode(
    emitters: list[list[Spec]], window: int, streams: int, mode: str, policy: str, eagerness: float, seed: int
) -> None:
    device = FakeDevice(seed, eagerness)
    program = Program(emitters, device.launch)
    executor = streams_on(
        device, program.segments, window=window, streams=streams, completion=mode, stream_policy=policy
    )
    program.reset()
    run_and_check(program, executor)
    run_and_check(program, executor)
    executor.close()


@settings(max_examples=50, deadline=None)
@given(specs(), st.integers(0, 99))
def test_serial_on_a_device(emitters: list[list[Spec]], seed: int) -> None:
    device = FakeDevice(seed)
    program = Program(emitters, device.launch)
    executor = make_executor("serial", device="cuda", driver=device, stream=0, record="times")
    run_and_check(program, executor)
    assert device.max_running <= 1
    executor.close()


@settings(max_examples=30, deadline=None)
@given(specs(), st.integers(0, 99))
def test_one_emitter_gives_the_bits_of_serial(emitters: list[list[Spec]], seed: int) -> None:
    expected = run_and_check(Program(emitters[:1]), make_executor("serial", record="order"))
    for mode in MODES:
        device = FakeDevice(seed)
        program = Program(emitters[:1], device.launch)
        assert run_and_check(program, streams_on(device, program.segments, completion=mode)) == expected


@pytest.mark.parametrize("mode", MODES)
def test_independent_calls_overlap_and_times_are_kept(mode: str) -> None:
    device = FakeDevice(3, eagerness=0.1)
    table = Segments()
    calls = [call_on(device, f"k{i}", lambda: None, writes=(table.intern(f"b{i}"),)) for i in range(24)]
    executor = streams_on(device, table, streams=4, completion=mode, record="times")
    trace = executor.run([calls])
    assert device.max_running > 1
    assert len({e.stream for e in trace.events}) == 4
    assert all(e.end > e.start for e in trace.events)
    assert trace.concurrency() > 0
    assert trace.counters.check_seconds > 0
    assert trace.counters.issue_seconds > 0
    assert trace.counters.waits_inserted == 0
    executor.close()


def test_a_chain_follows_one_stream_without_waits() -> None:
    device = FakeDevice(0)
    table = Segments()
    chain = call_on(device, "link", lambda: None, writes=(table.intern("x"),))
    trace = streams_on(device, table, streams=4).run([[chain] * 20])
    assert {e.stream for e in trace.events} == {0}
    assert (trace.counters.waits_inserted, trace.counters.waits_removed) == (0, 0)


def test_many_chains_that_take_turns_stay_on_their_streams() -> None:
    device, table = FakeDevice(3), Segments()
    values = [table.intern("x", i) for i in range(12)]
    chains = [
        [KernelCall(f"{i}", device.launch(lambda: None), (), (), (x,)) for _ in range(5)] for i, x in enumerate(values)
    ]
    for lists in (chains, [FixedList(chain) for chain in chains]):
        trace = streams_on(device, table, window=1000, streams=4).run(lists)
        assert trace.counters.waits_inserted == 0
        streams = {e.name: {other.stream for other in trace.events if other.name == e.name} for e in trace.events}
        assert all(len(used) == 1 for used in streams.values())
        assert len(set.union(*streams.values())) == 4


def test_implied_waits_are_removed() -> None:
    """a and b on streams 0 and 1; c on 2 behind both; d reads a's, b's and c's output: waiting for c is enough."""
    device = FakeDevice(0, eagerness=0.0)
    table = Segments()
    a, b, c, d = (table.intern(name) for name in "abcd")
    nothing = lambda: None  # noqa: E731
    calls = [
        call_on(device, "a", nothing, writes=(a,)),
        call_on(device, "b", nothing, writes=(b,)),
        call_on(device, "c", nothing, reads=(a, b), writes=(c,)),
        call_on(device, "d", nothing, reads=(a, b, c), writes=(d,)),
    ]
    trace = streams_on(device, table, streams=4, stream_policy="round_robin").run([calls])
    assert [(s.kind, s.seq, s.stream) for s in trace.log if s.kind == "wait"] == [
        ("wait", 1, 2),
        ("wait", 0, 2),
        ("wait", 2, 3),
    ]
    assert (trace.counters.waits_inserted, trace.counters.waits_removed) == (3, 2)
    assert validate(trace.order, trace, table) == []


def test_only_the_last_wait_for_a_stream_is_kept() -> None:
    device = FakeDevice(0, eagerness=0.0)
    table = Segments()
    segments = [table.intern(f"b{k}") for k in range(5)]
    calls = [call_on(device, f"w{k}", lambda: None, writes=(segments[k],)) for k in range(4)]
    calls.append(call_on(device, "sum", lambda: None, reads=tuple(segments[:4]), writes=(segments[4],)))
    trace = streams_on(device, table, streams=2, stream_policy="round_robin").run([calls])
    # w0, w2 on stream 0 with sum; w1, w3 on stream 1
    assert (trace.counters.waits_inserted, trace.counters.waits_removed) == (1, 1)
    assert validate(trace.order, trace, table) == []


@pytest.mark.parametrize("mode", MODES)
def test_window_bounds_calls_in_flight(mode: str) -> None:
    device = FakeDevice(1, eagerness=0.2)
    table = Segments()
    calls = [call_on(device, f"k{i}", lambda: None, writes=(table.intern(f"b{i}"),)) for i in range(40)]
    trace = streams_on(device, table, window=3, streams=8, completion=mode).run([calls])
    flying = most = 0
    for step in trace.log:
        flying += {"issue": 1, "observe": -1, "wait": 0}[step.kind]
        most = max(most, flying)
    assert most == 3


@pytest.mark.parametrize("mode", MODES)
def test_run_orders_with_the_home_stream_on_both_sides(mode: str) -> None:
    for seed in range(20):
        device = FakeDevice(seed, eagerness=0.05)
        table = Segments()
        order: list[str] = []
        executor = streams_on(device, table, streams=3, completion=mode)
        device.enqueue(0, lambda order=order: order.append("before"))
        calls = [
            call_on(device, f"k{i}", lambda order=order: order.append("run"), writes=(table.intern(f"b{i}"),))
            for i in range(6)
        ]
        executor.run([calls])
        device.enqueue(0, lambda order=order: order.append("after"))
        device.synchronize(0)
        assert order == ["before", *["run"] * 6, "after"]
        executor.close()


@pytest.mark.parametrize("mode", [*MODES, "serial"])
def test_await_while_others_go_on(mode: str) -> None:
    device = FakeDevice(5, eagerness=0.05)
    table = Segments()
    total = [0]
    seen: list[int] = []

    def bump() -> None:
        total[0] += 1

    count = call_on(device, "count", bump, writes=(table.intern("n"),))
    others = [call_on(device, f"o{k}", lambda: None, writes=(table.intern("o"),)) for k in range(30)]

    def emitter() -> Iterator[KernelCall | AwaitCounts]:
        for _ in range(3):
            yield count
            yield AwaitCounts(count)
            seen.append(total[0])

    if mode == "serial":
        executor = make_executor("serial", device="cuda", driver=device, stream=0, record="order")
    else:
        executor = streams_on(device, table, completion=mode)
    trace = executor.run([emitter(), others])
    assert seen == [1, 2, 3]
    names = [c.name for c in trace.order]
    last = len(names) - 1 - names[::-1].index("count")
    assert any(n.startswith("o") for n in names[1:last])  # the others were not held up
    executor.close()


class Refused:
    """A launch that the driver refuses, such as a block that is too large."""

    def issue(self, stream: int) -> None:
        raise ValueError("invalid configuration")


@pytest.mark.parametrize("mode", [*MODES, "serial"])
def test_a_refused_launch_is_named_and_running_calls_finish(mode: str) -> None:
    device = FakeDevice(2, eagerness=0.1)
    table = Segments()
    ran: list[int] = []
    good = [call_on(device, f"g{k}", lambda: ran.append(1), writes=(table.intern(f"b{k}"),)) for k in range(4)]
    bad = KernelCall("bad", Refused(), (), (table.intern("bad"),))
    if mode == "serial":
        executor = make_executor("serial", device="cuda", driver=device, stream=0, record="order")
    else:
        executor = streams_on(device, table, completion=mode)
    for attempt in range(2):
        with pytest.raises(CallError, match=r"call 'bad' .*invalid configuration") as info:
            executor.run([[*good, bad, *good]])
        assert info.value.call is bad
        assert not info.value.fatal
        assert len(ran) == 4 * (attempt + 1)
    trace = executor.run([good])
    executor.synchronize()
    assert len(ran) == 12
    assert validate(trace.order, trace, table) == []
    executor.close()


@pytest.mark.parametrize("mode", [*MODES, "serial"])
def test_a_fault_says_that_the_context_is_lost(mode: str) -> None:
    device = FakeDevice(4)
    table = Segments()
    x = table.intern("x")

    def illegal() -> None:
        raise MemoryError("illegal address")

    fault = call_on(device, "fault", illegal, writes=(x,))
    fine = call_on(device, "fine", lambda: None, writes=(x,))
    if mode == "serial":
        executor = make_executor("serial", device="cuda", driver=device, stream=0, check_each=True)
    else:
        executor = streams_on(device, table, completion=mode, window=2)
    with pytest.raises(CallError, match=r"CUDA fault ended the context.*executor='serial', check_each=True") as info:
        executor.run([[fine, fault, *[fine] * 20]])
    assert info.value.fatal
    assert isinstance(info.value.cause, DeviceFault)
    if mode == "serial":
        assert info.value.call is fault  # named exactly, since each call was waited for
    executor.close()


@pytest.mark.parametrize("mode", MODES)
def test_an_emitter_that_raises_passes_through(mode: str) -> None:
    device = FakeDevice(6)
    table = Segments()
    call = call_on(device, "fine", lambda: None, writes=(table.intern("a"),))

    def emitter() -> Iterator[KernelCall]:
        yield call
        raise LookupError("world 3 is not finite")

    executor = streams_on(device, table, completion=mode)
    with pytest.raises(LookupError, match="world 3"):
        executor.run([emitter()])
    assert executor.run([[call]]).counters.calls == 1
    executor.close()


def test_fake_device_finds_a_missing_wait() -> None:
    """The test device itself: two streams without a wait between them run in either order."""
    orders = set()
    for seed in range(30):
        device = FakeDevice(seed)
        order: list[str] = []
        streams = [device.create_stream() for _ in "ab"]
        for stream, name in zip(streams, "ab", strict=True):
            device.enqueue(stream, lambda name=name, order=order: order.append(name))
        for stream in streams:
            device.synchronize(stream)
        orders.add("".join(order))
    assert orders == {"ab", "ba"}


@pytest.mark.parametrize(("options", "streams"), [({}, 32), ({"streams": 8}, 8), ({"completion": "polling"}, 8)])
def test_streams_that_wait_by_events_are_many_unless_their_number_is_given(
    options: dict[str, Any], streams: int
) -> None:
    device = FakeDevice(1)
    with make_executor("streams", segments=Segments(), driver=device, stream=0, **options) as executor:
        assert len(executor.lanes.handles) == streams
