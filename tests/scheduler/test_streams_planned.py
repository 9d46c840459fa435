"""Planned streams and graphs on a fake asynchronous device, and how many waits each executor makes."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import AwaitCounts, FixedList, KernelCall, Segments, Trace, make_executor, validate
from simengine_scheduler.core.policies import STREAM_POLICIES
from simengine_scheduler.planning import Profile
from simengine_scheduler.planning.planners import PLANNERS
from simengine_scheduler.testing.fake_device import FakeDevice
from tests.scheduler.programs import Program, Spec, run_and_check, specs

NAMES = sorted(PLANNERS)


def planned(device: FakeDevice, table: Segments, planner: str, **options: Any) -> Any:
    kind = options.pop("kind", "streams")
    options.setdefault("profile", Profile())
    return make_executor(kind, segments=table, driver=device, stream=0, stream_policy=planner, **options)


@settings(max_examples=60, deadline=None)
@given(
    specs(),
    st.sampled_from(["streams", "graph", "graph-cached"]),
    st.sampled_from(NAMES),
    st.sampled_from(["order", "times"]),
    st.integers(1, 4),
    st.sampled_from([0.05, 0.5, 0.9]),
    st.integers(0, 99),
)
def test_any_list(
    emitters: list[list[Spec]], kind: str, planner: str, record: str, streams: int, eagerness: float, seed: int
) -> None:
    device = FakeDevice(seed, eagerness)
    program = Program(emitters, device.launch)
    executor = planned(device, program.segments, planner, kind=kind, streams=streams, record=record)
    for _ in range(2):
        run_and_check(program, executor)
    executor.close()


@settings(max_examples=20, deadline=None)
@given(specs(), st.sampled_from(NAMES), st.integers(0, 99))
def test_one_emitter_gives_the_bits_of_serial(emitters: list[list[Spec]], planner: str, seed: int) -> None:
    expected = run_and_check(Program(emitters[:1]), make_executor("serial", record="order"))
    device = FakeDevice(seed)
    program = Program(emitters[:1], device.launch)
    executor = planned(device, program.segments, planner, record="order")
    assert run_and_check(program, executor) == expected
    executor.close()


@settings(max_examples=25, deadline=None)
@given(specs(awaits=False), st.sampled_from([*NAMES, *STREAM_POLICIES]), st.integers(1, 4), st.integers(0, 99))
def test_fixed_lists_are_planned_once_and_give_the_bits_of_serial(
    emitters: list[list[Spec]], planner: str, streams: int, seed: int
) -> None:
    device = FakeDevice(seed, eagerness=0.1)
    program = Program(emitters, device.launch)
    lists = [FixedList(emitter) for emitter in program.emitters()]  # type: ignore[arg-type]
    serial = make_executor("serial", device="cuda", driver=device, stream=0)
    executor = planned(device, program.segments, planner, streams=streams, graphs=1)
    recorded = planned(device, program.segments, planner, streams=streams, record="order")
    results, counters = set(), []
    for run in (serial, executor, executor, recorded):
        program.reset()
        counters.append(run.run(lists).counters)
        run.synchronize()
        results.add(program.snapshot())
    assert len(results) == 1
    trace = recorded.run(lists)
    recorded.synchronize()
    assert validate(trace.order, trace, program.segments) == []
    assert counters[1] == counters[2] == counters[3]  # the recorded run is the one that was planned
    timed = planned(device, program.segments, planner, streams=streams, graphs=1, record="times")
    planning = [timed.run(lists).counters.check_seconds for _ in range(3)]
    assert planning[0] > 0
    assert planning[1:] == [0, 0]
    other = [FixedList([])]
    assert executor.run(other).counters.calls == 0
    timed.run(other)
    assert timed.run(lists).counters.check_seconds > 0, "one list is kept at a time"
    for run in (executor, recorded, timed):
        run.close()


@pytest.mark.parametrize("name", ["streams", "streams:kesco", "graph-cached", "pipeline"])
def test_lists_that_came_and_went_are_not_mistaken_for_others(name: str) -> None:
    device, table, ran = FakeDevice(0), Segments(), list[str]()
    x = table.intern("x")
    bodies = [functools.partial(ran.append, f"call{k}") for k in range(6)]
    calls = [KernelCall(body.args[0], device.launch(body), (), (x,)) for body in bodies]
    kind, _, planner = name.partition(":")
    executor = make_executor(kind, segments=table, driver=device, stream=0, stream_policy=planner or "follow")
    lists = [FixedList()]
    for call in calls:
        lists[0] = FixedList([call])  # which may stand where the one before it stood
        executor.run(lists)
        executor.synchronize()
    assert ran == [call.name for call in calls]
    executor.close()


@pytest.mark.parametrize("name", ["streams", "streams:kesco", "graph-cached", "pipeline"])
def test_a_closed_executor_lets_lists_go(name: str) -> None:
    device, table = FakeDevice(0), Segments()
    x = table.intern("x")
    bodies = [functools.partial(int, k) for k in range(2)]
    calls = [KernelCall(f"call{k}", device.launch(body), (), (x,)) for k, body in enumerate(bodies)]
    kind, _, planner = name.partition(":")
    executor: Any = make_executor(kind, segments=table, driver=device, stream=0, stream_policy=planner or "follow")
    lists = [FixedList(calls)]
    executor.run(lists)
    executor.synchronize()
    executor.close()
    first = weakref.ref(bodies[0])  # the call issued last is remembered for faults that are noticed later
    del bodies, calls, lists
    gc.collect()
    assert first() is None


def test_a_recorded_script_counts_its_check_when_it_is_made() -> None:
    device, table = FakeDevice(0), Segments()
    lists = [FixedList(fork_and_join(device, table))]
    executor = make_executor("streams", segments=table, driver=device, stream=0, record="times")
    checked = [executor.run(lists).counters.check_seconds for _ in range(2)]
    assert checked[0] > 0 == checked[1]
    executor.close()


def fork_and_join(device: FakeDevice, table: Segments) -> list[KernelCall]:
    """Three calls that read what one wrote, and one that reads what all four wrote."""
    x, *ys, z = (table.intern(name) for name in ("x", "y0", "y1", "y2", "z"))
    body = device.launch(lambda: None)
    branches = [KernelCall(f"branch{k}", body, (x,), (y,)) for k, y in enumerate(ys)]
    return [KernelCall("fork", body, (), (x,)), *branches, KernelCall("join", body, (x, *ys), (z,))]


@pytest.mark.parametrize(
    ("name", "options", "asked", "inserted"),
    [
        # fork and branch2 on stream 0, branch0 and join on 1, branch1 on 2: branch2 implies fork
        ("streams", {"stream_policy": "round_robin", "streams": 3}, 5, 4),
        # fork, one branch and join on one stream; the last branch on the other implies the one before it
        ("streams", {"stream_policy": "kesco", "streams": 2}, 4, 2),
        ("streams", {"stream_policy": "opara", "streams": 2}, 4, 2),
        ("streams", {"stream_policy": "kesco", "streams": 1}, 0, 0),
        # each call is a node: the branches imply the fork for join
        ("graph", {}, 7, 6),
        ("graph-cached", {"stream_policy": "opara"}, 7, 6),
    ],
)
@pytest.mark.parametrize("record", ["off", "order"])
def test_waits_asked_for_and_made(name: str, options: dict[str, Any], asked: int, inserted: int, record: str) -> None:
    device, table = FakeDevice(0, eagerness=0.0), Segments()
    calls = fork_and_join(device, table)
    options = {**options, "profile": Profile(), "record": record}
    executor = make_executor(name, segments=table, driver=device, stream=0, **options)
    for lists in ([calls], [FixedList(calls)]):
        trace = executor.run(lists)
        executor.synchronize()
        counters = trace.counters
        assert (counters.waits_asked, counters.waits_inserted, counters.waits_removed) == (
            asked,
            inserted,
            asked - inserted,
        )
        if record == "order":
            assert validate(trace.order, trace, table) == []
    executor.close()


@pytest.mark.parametrize("planner", NAMES)
def test_an_awaited_call_does_not_hold_up_others(planner: str) -> None:
    device, table = FakeDevice(5, eagerness=0.05), Segments()
    total, seen = [0], list[int]()
    n, o = table.intern("n"), table.intern("o")

    def bump() -> None:
        total[0] += 1

    count = KernelCall("count", device.launch(bump), (), (), (n,))
    others = [KernelCall("other", device.launch(lambda: None), (), (o,))] * 30
    last = KernelCall("last", device.launch(lambda: None), (n, o), ())

    def emitter() -> Iterator[KernelCall | AwaitCounts]:
        for _ in range(3):
            yield count
            yield AwaitCounts(count)
            seen.append(total[0])
        yield last  # after calls of an earlier run that may still be in flight

    trace = planned(device, table, planner, record="order").run([emitter(), others])
    assert seen == [1, 2, 3]
    observed = [step.seq for step in trace.log if step.kind == "observe"]
    assert [trace.order[seq].name for seq in observed] == ["count"] * 3
    assert validate(trace.order, trace, table) == []


def test_only_calls_that_others_wait_for_have_events() -> None:
    device, table = FakeDevice(0), Segments()
    records: list[int] = []
    device.record = lambda event, stream, record=device.record: (records.append(event), record(event, stream))[1]  # type: ignore[method-assign]
    executor = planned(device, table, "kesco", streams=2)
    for lists in ([fork_and_join(device, table)], [FixedList(fork_and_join(device, table))]):
        records.clear()
        executor.run(lists)
        assert len(records) == 1 + 2 + 2  # the fork of the streams, fork and the last branch, the join of both streams
    executor.close()


@pytest.mark.parametrize("kind", ["streams", "graph-cached"])
@pytest.mark.parametrize("planner", NAMES)
def test_calls_of_the_first_runs_are_timed(planner: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[Trace] = []
    monkeypatch.setattr(Profile, "learn", lambda self, trace: timed.append(trace))
    device = FakeDevice(0)
    emitters = [[Spec((), (), ((k, 0, 0),), False), Spec((), (), ((k, 1, 0),), True)] for k in range(2)]
    program = Program(emitters, device.launch)
    reference = make_executor("serial", device="cuda", driver=device, stream=0)
    results = set()
    with planned(device, program.segments, planner, kind=kind, profile=None) as executor:
        for run in (reference, *[executor] * 5):
            program.reset()
            trace = run.run(program.emitters())
            run.synchronize()
            results.add(program.snapshot())
            assert trace.counters.calls == 4
            assert trace.counters.awaits == 2
    assert len(results) == 1
    assert len(timed) == 3
    assert all(len(trace.order) == 4 for trace in timed)


def test_a_profile_decides_the_order() -> None:
    device, table = FakeDevice(0), Segments()
    calls = fork_and_join(device, table)
    slow = KernelCall("slow", device.launch(lambda: None), (), (table.intern("w"),))
    serial = make_executor("serial", device="cuda", driver=device, stream=0, record="times")
    profile = Profile.measured(serial.run([[*calls, slow]]))
    assert set(profile.needs) == {call.name for call in [*calls, slow]}
    profile.needs["fork"] = profile.needs["fork"]._replace(demand=9.0)
    trace = planned(device, table, "opara", profile=profile, record="order").run([[*calls, slow]])
    assert next(trace.order[step.seq].name for step in trace.log if step.kind == "issue") == "slow"


def test_planners_do_not_poll() -> None:
    with pytest.raises(ValueError, match="stream_policy='kesco' plans calls that wait on the device; give completion="):
        make_executor("streams", segments=Segments(), driver=FakeDevice(), stream_policy="kesco", completion="polling")
