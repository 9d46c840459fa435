"""Graphs of calls: their dependencies, and the executors that launch them, on a fake asynchronous device."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import CallError, FixedList, KernelCall, Segments, make_executor
from simengine_scheduler.core.dependencies import RunTracker, chains, dependencies, reduced
from simengine_scheduler.core.hazards import conflict
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.testing.fake_device import FakeDevice
from tests.scheduler.programs import Program, Spec, run_and_check, specs

GRAPHS = ["graph", "graph-cached"]


def calls_of(program: Program) -> list[KernelCall]:
    return [call for emitter in program.emitters() for call in emitter if isinstance(call, KernelCall)]


@given(specs(awaits=False))
def test_dependencies_are_the_hazards_without_what_is_implied(emitters: list[list[Spec]]) -> None:
    program = Program(emitters)
    calls, conflicts = calls_of(program), program.segments.conflicts
    waits = dependencies(calls, conflicts)
    behind: list[set[int]] = []
    for seq, direct in enumerate(waits):
        behind.append(set(direct).union(*(behind[other] for other in direct)))
        # nothing that must come before is missing, and no wait is implied by another
        assert {i for i in range(seq) if conflict(calls[i], calls[seq], conflicts)} <= behind[seq]
        assert not any(other in behind[another] for other in direct for another in direct)
    rows = chains(waits)
    for seq, row in enumerate(rows):
        before = [i for i in range(seq) if rows[i] == row]
        assert not before or before[-1] in waits[seq]


@given(st.lists(specs(awaits=False), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_runs_after_the_first_have_the_dependencies_that_they_have_alone(programs: Any, random: Any) -> None:
    table = Segments()
    table.intern("first")
    tracker = RunTracker(table.conflicts)
    for emitters in programs:
        calls = calls_of(Program(emitters))
        for call in calls:  # segments of later programs are interned between runs
            for segment in (*call.reads, *call.writes, *call.updates):
                while segment >= len(table.conflicts):
                    table.intern(f"x{len(table.conflicts)}", random.choice((0, 1)), random.choice((None, ("part", 1))))
        assert reduced(tracker.upstream_of(calls)) == dependencies(calls, table.conflicts)
        assert reduced(tracker.upstream_of(calls)) == dependencies(calls, table.conflicts)


@settings(max_examples=100, deadline=None)
@given(specs(), st.sampled_from(GRAPHS), st.sampled_from(["order", "times"]), st.integers(1, 3), st.integers(0, 99))
def test_any_list(emitters: list[list[Spec]], name: str, record: str, graphs: int, seed: int) -> None:
    device = FakeDevice(seed, eagerness=0.1)
    program = Program(emitters, device.launch)
    executor = make_executor(name, segments=program.segments, driver=device, stream=0, record=record, graphs=graphs)
    program.reset()
    run_and_check(program, executor)
    run_and_check(program, executor)
    executor.close()


def fixed_lists(device: FakeDevice, table: Segments, done: list[str], buffers: BufferSet) -> list[FixedList]:
    def call(name: str, segment: str) -> KernelCall:
        ids = (table.intern(segment),)
        return KernelCall(name, device.launch(lambda: done.append(name), (), buffers), (), ids)

    return [FixedList([call(f"a{i}", "x") for i in range(3)]), FixedList([call(f"b{i}", "y") for i in range(2)])]


@pytest.mark.parametrize(("name", "built"), [("graph", 3), ("graph-cached", 1)])
def test_fixed_lists_are_built_once_where_graphs_are_kept(name: str, built: int) -> None:
    device, table, done = FakeDevice(1), Segments(), list[str]()
    lists = fixed_lists(device, table, done, BufferSet())
    executor: Any = make_executor(name, segments=table, driver=device, stream=0)
    for _ in range(3):
        trace = executor.run(lists)
        executor.synchronize()
        assert [d for d in done if d[0] == "a"] == ["a0", "a1", "a2"]
        assert sorted(done) == ["a0", "a1", "a2", "b0", "b1"]
        assert trace.counters.calls == 5
        done.clear()
    assert executor.built == built
    executor.close()


def test_a_graph_is_built_again_after_a_buffer_has_moved() -> None:
    device, table, buffers = FakeDevice(1), Segments(), BufferSet()
    buffer = buffers.add("x", 0, 8)
    lists = fixed_lists(device, table, [], buffers)
    executor: Any = make_executor("graph-cached", segments=table, driver=device, stream=0, graph_of="run")
    executor.run(lists)
    executor.run(lists)
    assert executor.built == 1
    buffer.rebind(64, 8)
    executor.run(lists)
    assert executor.built == 2
    executor.close()


@pytest.mark.parametrize(("graph_of", "built"), [("run", [3, 4]), ("list", [2, 2])])
def test_the_graph_unused_for_longest_goes_first(graph_of: str, built: list[int]) -> None:
    device, table = FakeDevice(1), Segments()
    first, second = fixed_lists(device, table, [], BufferSet())
    executor: Any = make_executor("graph-cached", segments=table, driver=device, stream=0, graphs=2, graph_of=graph_of)
    for lists in ([first], [second], [first], [first, second], [first]):
        executor.run(lists)
    assert executor.built == built[0]
    executor.run([second])
    assert executor.built == built[1]
    executor.close()
    assert not device.graphs


@pytest.mark.parametrize("name", GRAPHS)
def test_a_call_is_no_list_of_emitters(name: str) -> None:
    device, table = FakeDevice(1), Segments()
    executor = make_executor(name, segments=table, driver=device, stream=0)
    ((call, *_), _) = fixed_lists(device, table, [], BufferSet())
    with pytest.raises(TypeError, match=r"pass a list of emitters, e.g. run\(\[\[call\]\]\)"):
        executor.run(call)  # type: ignore[arg-type]
    executor.close()


def test_fixed_lists_are_equal_only_to_themselves() -> None:
    one, other = FixedList(()), FixedList(())
    assert one != other
    assert [one] == [one] != [other]
    assert len({one, other}) == 2


def test_a_launch_that_cannot_be_built_is_named() -> None:
    class Broken(FakeDevice):
        def build_graph(self, launches: Any, waits: Any, events: Any) -> int:
            raise ValueError("no such kernel")

    device, table = Broken(1), Segments()
    executor = make_executor("graph-cached", segments=table, driver=device, stream=0)
    with pytest.raises(CallError, match="a graph of 3 calls.*no such kernel"):
        executor.run(fixed_lists(device, table, [], BufferSet())[:1])
    executor.close()
