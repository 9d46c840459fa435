"""Graphs of lists that come and go: what is built, what is switched, and that results are those of `serial`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import FixedList, KernelCall, Segments, make_executor
from simengine_scheduler.core.hazards import conflict
from simengine_scheduler.core.overlaps import Overlaps, bits_of
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.planning.profiles import Need, Profile
from simengine_scheduler.testing.called_device import CalledDevice
from simengine_scheduler.testing.fake_device import FakeDevice
from tests.scheduler.programs import Program, Spec, specs


class Watched(FakeDevice):
    """A device that notes in which order graphs are switched and launched. It may refuse to switch nodes."""

    def __init__(self) -> None:
        super().__init__(3, eagerness=0.2)
        self.seen: list[tuple[str, int]] = []
        self.used = set[int]()
        self.refuses = False

    def switch_nodes(self, graph: int, on: Any, off: Any) -> None:
        if self.refuses:
            raise RuntimeError("refused")
        self.seen.append(("switch", graph))
        super().switch_nodes(graph, on, off)

    def launch_graph(self, graph: int, stream: int) -> None:
        self.seen.append(("launch", graph))
        self.used.add(stream)
        super().launch_graph(graph, stream)


class Herd:
    """Arrays with a list of calls each: every call multiplies and adds, so that order and number of runs show."""

    def __init__(self, lists: int, calls: int = 3, device: Any = None, **options: Any) -> None:
        self.device: Any = device or FakeDevice(3, eagerness=0.2)
        self.table = Segments()
        self.values = np.ones(lists, np.int64)
        self.sets = [BufferSet() for _ in range(lists)]
        self.addends = [buffers.add("addend", 7, 8) for buffers in self.sets]
        self.lists = [FixedList(self._call(i, k) for k in range(calls)) for i in range(lists)]
        self.calls = calls
        self.executor: Any = make_executor(
            "graph-cached", segments=self.table, driver=self.device, stream=0, **{"graphs": 64, **options}
        )

    def _call(self, i: int, k: int) -> KernelCall:
        def body(addend: int) -> None:
            self.values[i] = self.values[i] * 3 + addend + k

        launch = self.device.launch(body, [self.addends[i]], self.sets[i])
        return KernelCall(f"list {i} call {k}", launch, (), (), (self.table.intern("x", i),))

    def expect(self, value: int, addend: int = 7) -> int:
        for k in range(self.calls):
            value = value * 3 + addend + k
        return value

    def run(self, chosen: list[int], addends: dict[int, int] | None = None) -> Any:
        before = self.values.tolist()
        trace = self.executor.run([self.lists[i] for i in chosen])
        self.executor.synchronize()
        after = [self.expect(v, (addends or {}).get(i, 7)) if i in chosen else v for i, v in enumerate(before)]
        assert self.values.tolist() == after
        assert trace.counters.calls == self.calls * len(chosen)
        self.values %= 1000
        return trace


def test_a_list_that_pauses_is_switched_off_and_nothing_is_built() -> None:
    herd = Herd(8)
    trace = herd.run(list(range(8)))
    assert (herd.executor.built, herd.device.switched) == (1, 0)
    assert (trace.counters.waits_inserted, trace.counters.waits_removed) == (8 * 2, 0)
    trace = herd.run([0, 1, 2, 4, 5, 6, 7])
    assert trace.counters.waits_inserted == 7 * 2
    herd.run([0, 1, 2, 4, 5, 6, 7])
    assert (herd.executor.built, herd.device.switched) == (1, 3)
    herd.run([0, 1, 2, 3, 5, 6, 7])  # one returns while another pauses
    assert (herd.executor.built, herd.device.switched) == (1, 9)
    herd.run([])
    herd.run([7, 0, 3, 1, 2, 6, 5])  # in another order
    assert herd.executor.built == 1
    herd.executor.close()
    assert not herd.device.graphs


def test_a_list_that_joins_gets_a_graph_of_its_own() -> None:
    herd = Herd(12)
    herd.run(list(range(10)))
    herd.run(list(range(11)))
    assert herd.executor.built == 2
    herd.run(list(range(12)))
    assert herd.executor.built == 3
    assert {len(launches) for launches, *_ in herd.device.graphs.values()} == {30, 3}
    herd.run(list(range(9)))  # and one that leaves costs nothing
    assert herd.executor.built == 3


def test_lists_that_came_one_by_one_are_packed_together() -> None:
    herd = Herd(20)
    for number in range(1, 21):
        herd.run(list(range(number)))
    assert len(herd.device.graphs) <= 10
    built = herd.executor.built
    for _ in range(3):
        herd.run(list(range(20)))
    assert herd.executor.built == built


def test_few_lists_of_a_large_graph_get_a_smaller_one_if_they_run_again_and_again() -> None:
    herd = Herd(24)
    herd.run(list(range(24)))
    for i in range(40):
        herd.run([i % 24, (i + 7) % 24])
    assert herd.executor.built == 1
    for _ in range(20):
        herd.run([3, 4])
    assert herd.executor.built == 2
    for _ in range(20):
        herd.run([3])
        herd.run(list(range(24)))
    assert herd.executor.built == 2


def names(herd: Herd) -> list[list[str]]:
    """The calls of each graph, in program order."""
    return [[call.name for call in graph.built.calls] for graph in herd.executor._of_lists._graphs]


def test_lists_that_take_longest_are_first() -> None:
    long = {f"list {i} call {k}": Need("compute", 1.0, 4.0 - i) for i in (2, 1) for k in range(2)}
    herd = Herd(4, calls=2, profile=Profile(long))
    herd.run([0, 1, 2, 3])
    assert names(herd) == [[f"list {i} call {k}" for k in range(2) for i in (1, 2, 0, 3)]]


def test_lists_of_many_calls_are_in_two_graphs_and_those_that_take_longest_are_launched_first() -> None:
    long = {f"list {i} call {k}": Need("compute", 1.0, 2.0) for i in range(1, 40, 2) for k in range(3)}
    herd = Herd(40, device=Watched(), profile=Profile(long))
    herd.run(list(range(40)))
    first, second = ({name.partition(" call")[0] for name in graph} for graph in names(herd))
    assert first == {f"list {i}" for i in range(1, 40, 2)}
    assert second == {f"list {i}" for i in range(0, 40, 2)}
    graphs = [graph.built.handle for graph in herd.executor._of_lists._graphs]
    for pausing, order in (([], graphs), ([0, 1, 3], graphs), ([0, 1], graphs[::-1]), ([1], graphs)):
        herd.device.seen.clear()
        herd.run([i for i in range(40) if i not in pausing])
        launched = [graph for what, graph in herd.device.seen if what == "launch"]
        assert launched == order, pausing
    assert herd.executor.built == 2


@pytest.mark.parametrize(("together", "graphs"), [(1, 8), (6, 4), (7, 4), (1000, 1)])
def test_how_many_calls_share_a_graph(together: int, graphs: int) -> None:
    herd = Herd(8, together=together)
    for _ in range(2):
        herd.run(list(range(8)))
        assert len(herd.device.graphs) == herd.executor.built == graphs


def test_a_buffer_that_moves_changes_the_nodes_of_its_list() -> None:
    herd = Herd(4)
    herd.run([0, 1, 2, 3])
    herd.addends[2].rebind(9, 8)
    herd.run([0, 1, 3])  # it need not be looked at while it pauses
    assert herd.device.updates == 0
    herd.run([0, 1, 2, 3], {2: 9})
    herd.run([0, 1, 2, 3], {2: 9})
    assert (herd.executor.built, herd.device.updates) == (1, 3)


def test_a_scalar_that_changes_changes_the_nodes_of_its_list() -> None:
    device, table, buffers, seen = FakeDevice(1), Segments(), BufferSet(), list[int]()
    number = buffers.scalar(3)
    launch = device.launch(lambda value: seen.append(int(value)), [number], buffers)
    fixed = FixedList([KernelCall("see", launch, (), (table.intern("x"),))])
    executor = make_executor("graph-cached", segments=table, driver=device, stream=0)
    for value in (3, 5, 5, 6):
        number.value = value  # type: ignore[assignment]
        executor.run([fixed])
        executor.synchronize()
    assert seen == [3, 5, 5, 6]


def test_lists_beyond_the_number_of_stored_graphs_are_forgotten() -> None:
    herd = Herd(6, graphs=2, together=3)
    for chosen in ([0], [1], [2], [3], [4, 5], [0, 1, 2, 3, 4, 5], [0]):
        herd.run(chosen)
    herd.run([5])
    assert len(herd.device.graphs) == 2


def test_a_call_with_an_unknown_segment_is_named() -> None:
    device, table = FakeDevice(1), Segments()
    executor = make_executor("graph-cached", segments=table, driver=device, stream=0)
    lists = [FixedList([KernelCall("k", device.launch(lambda: None), (), (5,))])]
    for _ in range(2):
        with pytest.raises(ValueError, match="call 'k' names segment 5, but the table holds 0; intern"):
            executor.run(lists)


def calls_of(program: Program) -> list[list[KernelCall]]:
    return [[call for call in emitter if isinstance(call, KernelCall)] for emitter in program.emitters()]


@given(specs(awaits=False), st.data())
def test_overlaps_are_the_conflicts_of_lists(emitters: list[list[Spec]], data: Any) -> None:
    program = Program(emitters)
    lists, overlaps = calls_of(program), Overlaps(program.segments.conflicts)
    held = set[int]()
    for number in data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=8)):
        if number in held:
            overlaps.remove(number)
        else:
            overlaps.add(number, lists[number])
        held ^= {number}
        for one in held:
            wanted = {
                other
                for other in held - {one}
                if any(conflict(a, b, program.segments.conflicts) for a in lists[one] for b in lists[other])
            }
            assert set(bits_of(overlaps.conflicting[one])) == wanted
            assert bool(overlaps.some >> one & 1) == bool(wanted)
        assert set(bits_of(overlaps.some)) <= held


@settings(max_examples=150, deadline=None)
@given(
    specs(awaits=False),
    st.lists(st.lists(st.integers(0, 2), max_size=4), min_size=1, max_size=6),
    st.integers(1, 3),
    st.sampled_from([1, 8, 1024]),
    st.sampled_from(["follow", "opara"]),
    st.booleans(),
    st.integers(0, 99),
)
def test_any_lists_in_any_combination_have_the_results_of_serial(
    emitters: list[list[Spec]], runs: list[list[int]], graphs: int, together: int, policy: str, called: bool, seed: int
) -> None:
    device = CalledDevice(seed, 0.1) if called else FakeDevice(seed, eagerness=0.1)
    program = Program(emitters, device.launch)
    lists = [FixedList(calls) for calls in calls_of(program)]
    options: dict[str, Any] = {"segments": program.segments, "driver": device, "stream": 0}
    results = []
    for own in (
        {"name": "graph-cached", "graphs": graphs, "together": together, "stream_policy": policy},
        {"name": "serial", "device": "cuda"},
    ):
        executor = make_executor(**own, **options)  # type: ignore[arg-type]
        program.reset()
        bits = []
        for chosen in runs:
            executor.run([lists[i % len(lists)] for i in chosen])
            executor.synchronize()
            bits.append(program.snapshot())
        results.append(bits)
        executor.close()
    assert results[0] == results[1]
    assert not device.graphs


def test_graphs_in_which_no_list_runs_are_left_out_and_return() -> None:
    herd = Herd(6, together=6)
    herd.run([0, 1])
    herd.run([0, 1, 2, 3])
    herd.run([0, 1, 2, 3, 4, 5])
    built = herd.executor.built
    for chosen in ([0, 1], [2, 5], [4], [0, 3, 5], [1], [0, 1, 2, 3, 4, 5], [5, 4]):
        herd.run(chosen)
    assert herd.executor.built == built


def test_a_scalar_of_a_list_that_paused_meanwhile_reaches_its_graph() -> None:
    """Sets of buffers are looked at only if one of the process has changed."""
    herd = Herd(3)
    herd.run([0, 1, 2])
    herd.run([0, 1])
    herd.addends[2].rebind(11, 8)
    herd.run([0, 1])
    BufferSet().scalar(1).value = 2  # of nobody here
    herd.run([0, 1])
    herd.run([0, 1, 2], {2: 11})


def test_graphs_that_stay_as_they_are_are_launched_before_others_are_switched() -> None:
    herd = Herd(6, device=Watched(), together=6)
    herd.run([0, 1, 2, 3, 4, 5])
    first, second, third = (graph for _, graph in herd.device.seen)
    herd.device.seen.clear()
    herd.run([1, 2, 3, 4])
    assert herd.device.seen[0] == ("launch", second)
    changed = herd.device.seen[1:]
    assert changed in [
        [("switch", a), ("launch", a), ("switch", b), ("launch", b)] for a, b in ((first, third), (third, first))
    ]


def test_a_list_that_could_not_be_switched_is_switched_in_the_next_run() -> None:
    herd = Herd(4, device=Watched())
    herd.run([0, 1, 2, 3])
    herd.device.refuses = True
    for _ in range(2):
        with pytest.raises(RuntimeError, match="refused"):
            herd.executor.run([herd.lists[i] for i in (0, 1, 3)])
    herd.device.refuses = False
    herd.run([0, 1, 3])
    herd.run([0, 1, 2, 3])


@pytest.mark.parametrize("together", [1000, 6])
def test_one_graph_runs_on_the_home_stream_and_several_on_others(together: int) -> None:
    herd = Herd(6, device=Watched(), together=together)
    herd.run([0, 1, 2, 3, 4, 5])
    assert herd.device.used == ({0} if together == 1000 else set(herd.executor._lanes.handles[:3]))
