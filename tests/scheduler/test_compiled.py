"""Compiled code that checks and issues calls, against the Python that it stands for."""

from __future__ import annotations

import ctypes
import random
from array import array
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import AwaitCounts, CallError, FixedList, KernelCall, Segments, make_executor, validate
from simengine_scheduler.core import STREAM_POLICIES
from simengine_scheduler.core.hazards import conflict
from simengine_scheduler.executors import compiled
from simengine_scheduler.executors.compiled import CompiledCalls
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.native import compiling, issuer
from simengine_scheduler.native.issuer import Functions, Issuer
from simengine_scheduler.testing import CalledDevice
from tests.scheduler.programs import Program, Spec, run_and_check, specs

POLICIES = ["follow", "least_loaded", "round_robin"]
EXECUTORS = ["serial", "streams", "polling", "chains"]


def make(name: str, device: CalledDevice, table: Segments, **options: Any) -> Any:
    given_options = {"record": "order", "device": "cuda", **options}
    if name in ("polling", "chains"):
        given_options |= {"completion": "polling", "chains": name == "chains"}
        name = "streams"
    return make_executor(name, segments=table, driver=device, stream=0, **given_options)


def launcher(device: CalledDevice, foreign: float) -> Callable[[Callable[[], None]], Any]:
    """Makes launches of which a share must be issued by Python."""
    draw = random.Random(1)
    return lambda body: (device.foreign_launch if draw.random() < foreign else device.launch)(body)


def calls_of(program: Program) -> list[list[KernelCall]]:
    return [[call for call in emitter if isinstance(call, KernelCall)] for emitter in program.emitters()]


@settings(deadline=None)
@given(specs(awaits=False), st.integers(1, 40))
def test_hazards_are_those_of_the_definition(emitters: list[list[Spec]], window: int) -> None:
    program = Program(emitters)
    calls = [call for own in calls_of(program) for call in own]
    conflicts = program.segments.conflicts
    known = CompiledCalls(Issuer(Functions(0, 0, 0, 0)), conflicts, 64)
    for _ in range(2):  # what is left of earlier calls changes nothing
        numbers = known.numbers(calls)
        known.hand_over()
        found = known.issuer.check(numbers, window)
        before: list[set[int]] = []
        for seq, upstream in enumerate(found):
            live = range(max(0, seq - window + 1), seq)
            needed = {i for i in live if conflict(calls[i], calls[seq], conflicts)}
            assert len(set(upstream)) == len(upstream)
            assert set(upstream) <= needed  # nothing is waited for in vain
            before.append(set(upstream).union(*(before[i] for i in upstream)))
            assert needed <= before[seq]  # and nothing that must come before is missing


def test_segments_may_be_interned_between_calls() -> None:
    table = Segments()
    known = CompiledCalls(Issuer(Functions(0, 0, 0, 0)), table.conflicts, 64)
    device = CalledDevice()

    def call(reads: tuple[int, ...], writes: tuple[int, ...]) -> KernelCall:
        return KernelCall("k", device.launch(lambda: None), reads, writes)

    part = table.intern("x", 0, ("half", 0))
    first = call((), (part,))
    known.numbers([first])
    known.hand_over()
    whole = table.intern("x")
    calls = [first, call((whole,), ()), first, call((), (whole,)), call((part,), ())]
    numbers = known.numbers(calls)
    known.hand_over()
    assert [sorted(found) for found in known.issuer.check(numbers, 32)] == [[], [0], [0, 1], [1, 2], [2, 3]]
    with pytest.raises(ValueError, match="call 'k' names segment 9, but the table holds 2; intern"):
        known.numbers([call((9,), ())])


@settings(max_examples=150, deadline=None)
@given(
    specs(),
    st.sampled_from(EXECUTORS),
    st.sampled_from([1, 2, 32]),
    st.integers(1, 4),
    st.sampled_from(POLICIES),
    st.sampled_from([0.05, 0.5, 0.9]),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.integers(0, 99),
)
def test_any_list(
    emitters: list[list[Spec]],
    name: str,
    window: int,
    streams: int,
    policy: str,
    eagerness: float,
    foreign: float,
    seed: int,
) -> None:
    device = CalledDevice(seed, eagerness)
    program = Program(emitters, launcher(device, foreign))
    executor = make(name, device, program.segments, window=window, streams=streams, stream_policy=policy)
    results = [run_and_check(program, executor) for _ in range(2)]
    assert results[0] == results[1] or any(spec.awaited for own in emitters for spec in own)  # which may change turns
    assert device.called or foreign or not any(emitters)
    executor.close()


@settings(max_examples=150, deadline=None)
@given(
    specs(awaits=False),
    st.lists(st.lists(st.integers(0, 2), max_size=4), min_size=1, max_size=6),
    st.sampled_from(EXECUTORS),
    st.sampled_from(POLICIES),
    st.integers(1, 4),
    st.sampled_from(["off", "order"]),
    st.sampled_from([0.0, 0.3]),
    st.integers(0, 99),
)
def test_any_fixed_lists_in_any_combination(
    emitters: list[list[Spec]],
    runs: list[list[int]],
    name: str,
    policy: str,
    streams: int,
    record: str,
    foreign: float,
    seed: int,
) -> None:
    device = CalledDevice(seed, 0.1)
    program = Program(emitters, launcher(device, foreign))
    lists = [FixedList(calls) for calls in calls_of(program)]
    results = []
    for by_compiled in (True, False):
        executor = make(
            name, device, program.segments, streams=streams, stream_policy=policy, record=record, compiled=by_compiled
        )
        program.reset()
        bits = []
        for chosen in runs:
            called = device.called
            trace = executor.run([lists[i % len(lists)] for i in chosen])
            executor.synchronize()
            assert trace.counters.calls == sum(len(lists[i % len(lists)]) for i in chosen)
            if record == "order":
                assert validate(trace.order, trace, program.segments) == []
            assert by_compiled or device.called == called
            bits.append((program.snapshot(), [call.name for call in trace.order]))
        results.append(bits)
        executor.close()
    assert results[0] == results[1]


@given(specs(awaits=False), st.sampled_from(POLICIES), st.integers(1, 4))
def test_plans_ask_for_no_more_waits_than_python(emitters: list[list[Spec]], policy: str, streams: int) -> None:
    device = CalledDevice(1)
    program = Program(emitters, device.launch)
    lists = [FixedList(calls) for calls in calls_of(program)]
    made = []
    for by_compiled in (True, False):
        executor = make(
            "streams", device, program.segments, streams=streams, stream_policy=policy, compiled=by_compiled
        )
        made.append(executor.run(lists).counters.waits_inserted)
        executor.close()
    if policy != "follow":  # which may put calls on other streams, because it is given other calls to follow
        assert made[0] == made[1]


@pytest.mark.parametrize("name", EXECUTORS)
def test_arguments_of_a_buffer_that_moved_are_those_of_the_launch(name: str) -> None:
    device, table, buffers, seen = CalledDevice(1), Segments(), BufferSet(), list[int]()
    buffer = buffers.add("x", 5, 8)
    call = KernelCall("see", device.launch(seen.append, [buffer], buffers), (), (table.intern("x"),))
    fixed, executor = FixedList([call]), make(name, device, table, record="off")
    for address in (5, 6):
        if address != buffer.ptr:
            buffer.rebind(address, 8)
        executor.run([[call]])
        executor.run([fixed])
        executor.synchronize()
    assert seen == [5, 5, 6, 6]


@pytest.mark.parametrize("name", EXECUTORS)
@pytest.mark.parametrize("foreign", [False, True])
def test_a_launch_that_fails_is_named(name: str, foreign: bool) -> None:
    device, table = CalledDevice(1), Segments()

    class Refused(Exception):
        pass

    def refuse(stream: int, body: Any) -> None:
        raise Refused("no room")

    launch = device.foreign_launch if foreign else device.launch
    calls = [KernelCall(f"call {i}", launch(lambda: None), (), (table.intern("x"),)) for i in range(3)]
    executor, working = make(name, device, table), device.enqueue
    for lists in ([calls], [FixedList(calls)]):
        device.enqueue = refuse  # type: ignore[method-assign]
        with pytest.raises(CallError, match=r"call 'call 0'.*Refused: no room"):
            executor.run(lists)
        device.enqueue = working  # type: ignore[method-assign]
        assert executor.run(lists).counters.calls == 3
        executor.synchronize()


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_launch_that_fails_while_an_emitter_waits_is_named(name: str) -> None:
    device, table = CalledDevice(1, 0.05), Segments()
    first, second = (KernelCall(f"call {i}", device.launch(lambda: None), (), (table.intern("x"),)) for i in range(2))
    working, launched = device.enqueue, []

    def refuse_the_second(stream: int, body: Any) -> None:
        launched.append(stream)
        if len(launched) == 2:
            raise OSError("no room")
        working(stream, body)

    device.enqueue = refuse_the_second  # type: ignore[method-assign]
    with pytest.raises(CallError, match=r"call 'call 1'.*no room"):
        make(name, device, table, record="off").run([[first, second, AwaitCounts(second)]])


@pytest.mark.parametrize("name", EXECUTORS)
def test_an_emitter_that_fails_leaves_the_executor_usable(name: str) -> None:
    device, table, done = CalledDevice(1), Segments(), list[int]()
    call = KernelCall("count", device.launch(lambda: done.append(1)), (), (table.intern("x"),))

    def failing() -> Any:
        yield call
        yield AwaitCounts(call)
        raise OSError("no more")

    executor = make(name, device, table)
    for _ in range(2):
        with pytest.raises(OSError, match="no more"):
            executor.run([failing()])
    executor.run([[call]])
    executor.synchronize()
    assert len(done) == 3


@pytest.mark.parametrize("name", EXECUTORS)
def test_python_issues_where_there_is_no_compiler(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer, "library", lru_cache(lambda: compiling.build("issuer.so", [])))
    monkeypatch.setattr(compiling, "compiler", lambda: None)
    device, table, done = CalledDevice(1), Segments(), list[int]()
    call = KernelCall("count", device.launch(lambda: done.append(1)), (), (table.intern("x"),))
    executor = make(name, device, table)
    executor.run([[call] * 3, FixedList([call])])
    executor.run([FixedList([call])])
    executor.synchronize()
    assert (len(done), device.called) == (5, 0)


def test_a_compiler_that_fails_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken.cpp"
    broken.write_text("this is no program")
    monkeypatch.setattr(issuer, "library", lambda: compiling.build("issuer.so", [broken]))
    with pytest.warns(UserWarning, match=r"Python issues calls, .*: .* could not compile issuer.so: .*error"):
        make("streams", CalledDevice(1), Segments())


@pytest.mark.parametrize("name", EXECUTORS)
def test_so_does_it_where_times_are_recorded_or_a_policy_is_a_program_s_own(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STREAM_POLICIES, "first", lambda upstream, state: 0)
    device, table = CalledDevice(1), Segments()
    call = KernelCall("k", device.launch(lambda: None), (), (table.intern("x"),))
    for options in ({"record": "times"}, {"stream_policy": "first"}, {"compiled": False}):
        executor = make(name, device, table, **options)
        executor.run([[call]])
        executor.close()
        assert device.called == 0


@pytest.mark.parametrize("name", EXECUTORS)
def test_calls_are_forgotten_when_there_are_too_many(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_MOST_CALLS", 5)
    device, table, done = CalledDevice(1), Segments(), list[int]()
    x = table.intern("x")

    def calls(run: int) -> list[KernelCall]:
        return [KernelCall("k", device.launch(done.append, [4 * run + i]), (), (), (x,)) for i in range(4)]

    executor, fixed = make(name, device, table, record="off"), FixedList(calls(100))
    for run in range(6):
        executor.run([calls(run)])
        executor.run([fixed])
    executor.synchronize()
    assert done == [4 * r + i for run in range(6) for r in (run, 100) for i in range(4)]
    done.clear()
    executor.run([(call for run in range(40) for call in calls(run))])  # and while a run goes on
    executor.synchronize()
    assert done == list(range(160))


@pytest.mark.parametrize("kept", [False, True])
def test_calls_that_runs_need_are_kept_and_those_that_came_once_are_not(
    kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "_FEW_CALLS", 8)
    table, runs = Segments(), 40
    known = CompiledCalls(Issuer(Functions(0, 0, 0, 0)), table.conflicts, 4)

    def calls(number: int) -> list[KernelCall]:
        return [KernelCall("k", CalledDevice().launch(lambda: None), (), ()) for _ in range(number)]

    same, forgotten, most = calls(20), 0, 0
    for _ in range(runs):
        forgotten += known.make_room()
        known.numbers(same if kept else calls(2))
        most = max(most, len(known.by_number))
    assert (forgotten == 0) if kept else (2 <= forgotten <= runs // 4)
    assert most <= 20


@pytest.mark.parametrize("refused", [0, 12])
def test_nodes_are_switched_one_by_one_until_one_is_refused(refused: int) -> None:
    seen = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    def enable(graph: int, node: int, enabled: int) -> int:
        seen.append((graph, node, enabled))
        return 7 if node == refused else 0

    address = ctypes.cast(enable, ctypes.c_void_p).value or 0
    status = issuer.switch_nodes(address, 5, array("q", [11, 12, 13]), 1)
    expected = [(5, 11, 1), (5, 12, 0), (5, 13, 0)]
    assert (status, seen) == ((7, expected[:2]) if refused else (0, expected))


def test_a_long_run_forgets_calls_that_have_ended() -> None:
    device, table = CalledDevice(1, 0.9), Segments()
    total = [0]

    def add() -> None:
        total[0] = total[0] % 1000 * 3 + 1

    call = KernelCall("add", device.launch(add), (), (), (table.intern("x"),))
    executor = make("streams", device, table, record="off", window=4)
    executor.run([(call for _ in range(70_000))])
    executor.synchronize()
    expected = 0
    for _ in range(70_000):
        expected = expected % 1000 * 3 + 1
    assert total[0] == expected
