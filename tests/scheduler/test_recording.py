"""Recorded lists: what goes in comes out again, in memory and through files, and damaged ones are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import AwaitCounts, FixedList, KernelCall, PythonLaunch, Segments, make_executor
from simengine_scheduler.core import Cost, Tag
from simengine_scheduler.gpu_model import LaunchShape, ListRecorder, RecordedList
from simengine_scheduler.gpu_model.list_recorder import middle_mean
from simengine_scheduler.gpu_model.recording import RecordedLaunch, read_json, shape_of
from tests.scheduler.gpu_model.machines import Lists
from tests.scheduler.programs import Program, Spec, specs


def recorded(emitters: list[list[Spec]]) -> tuple[RecordedList, Program, list[KernelCall]]:
    program = Program(emitters)
    recorder = ListRecorder(make_executor("serial", record="times"), program.segments)
    trace = recorder.run(program.emitters())
    return recorder.result(origin="test"), program, trace.order


@settings(max_examples=20, deadline=None)
@given(specs())
def test_a_list_comes_back_from_its_data(emitters: list[list[Spec]]) -> None:
    found, program, order = recorded(emitters)
    again = RecordedList.from_data(json.loads(json.dumps(found.to_data())))
    assert again.to_data() == found.to_data()
    assert again.about == {"origin": "test"}
    for one, call, other in zip(found.calls, order, again.calls, strict=True):
        assert (one.name, one.tag, one.cost) == (call.name, call.tag, call.cost) == (*other[:1], other.tag, other.cost)
        assert one.reads == call.reads
    # conflicts are those of the first table, by the names of what is touched
    old, new = program.segments, again.segments
    for mine, theirs in zip(found.calls, again.calls, strict=True):
        for a, b in zip(mine.writes + mine.updates, theirs.writes + theirs.updates, strict=True):
            assert old.describe(a) == new.describe(b)
            kept = {new.describe(s) for s in range(len(new))}
            assert {old.describe(s) for s in old.conflicts[a]} & kept == {new.describe(s) for s in new.conflicts[b]}


@settings(max_examples=20, deadline=None)
@given(specs(), st.integers(1, 3))
def test_replay_is_the_program_order_and_the_awaits(emitters: list[list[Spec]], repeats: int) -> None:
    found, _, order = recorded(emitters)
    seen: list[Any] = []
    for emitter in found.emitters(repeats):
        seen.append([i.call.name if isinstance(i, AwaitCounts) else i.name for i in emitter])
    whole = [[found.calls[n if n >= 0 else ~n].name for n in items] * repeats for items in found.items]
    assert seen == whole
    assert sorted(call.name for call in order) == sorted(call.name for call in found.calls)


def test_calls_and_fixed_lists_keep_their_identity() -> None:
    lists = Lists()
    lists.add("", "x")
    found = lists.build(fixed=True)
    (once,), (again,) = found.emitters(), found.emitters()
    assert once is again
    assert type(once) is FixedList
    (twice,) = found.emitters(2)
    assert list(twice) == [once[0], once[0]]
    with pytest.raises(RuntimeError, match="give recorded lists to executor 'simulated'"):
        once[0].launch.issue(0)


@pytest.mark.parametrize("name", ["list.json", "list.json.gz"])
def test_files(tmp_path: Path, name: str) -> None:
    lists = Lists()
    lists.wait(lists.add("x", "y", 3.0))
    found = lists.build()
    found.save(tmp_path / name)
    assert RecordedList.load(tmp_path / name).to_data() == found.to_data()
    first = (tmp_path / name).read_bytes()
    found.save(tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    assert read_json(tmp_path / name)["version"] == 1


def test_ranges_of_bytes_are_kept() -> None:
    table = Segments()
    whole, part = table.register_range("image", 0x1000, 64), table.register_range("image", 0x1020, 8)
    apart = table.register_range("image", 0x2000, 8)
    again = Segments.from_data(json.loads(json.dumps(table.to_data([part, whole, apart]))))
    assert [again.describe(s) for s in range(3)] == [table.describe(s) for s in (part, whole, apart)]
    assert sorted(again.conflicts[0]) == [0, 1]
    assert again.conflicts[2] == (2,)


def damaged(change: Any) -> dict[str, Any]:
    lists = Lists()
    lists.wait(lists.add("x", "y"))
    data: dict[str, Any] = json.loads(json.dumps(lists.build().to_data()))
    change(data)
    return data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=2), "has version 2, not"),
        (lambda d: d.pop("segments"), "damaged"),
        (lambda d: d["emitters"][0].update(items=[0, 0]), "each of its 1 calls once"),
        (lambda d: d["emitters"][0].update(items=[-1, 0]), "awaits call 0"),
        (lambda d: d["calls"][0].__setitem__(5, float("nan")), "lasts nan s"),
        (lambda d: d["calls"][0].__setitem__(1, [7]), "names segment 7"),
        (lambda d: d["calls"][0].__setitem__(4, [0, 1, 1, 1]), "has no threads"),
        (lambda d: d["calls"][0].pop(), "ot enough values|damaged"),
    ],
)
def test_damaged_data_are_refused(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RecordedList.from_data(damaged(change))


def test_shapes_of_launches() -> None:
    class Cuda:
        grid, block, shared = (2, 3, 1), (32, 2, 1), 100

        def resources(self) -> tuple[int, int]:
            return 40, 28

    assert shape_of(Cuda()) == LaunchShape(6, 64, 40, 128)
    assert shape_of(PythonLaunch(lambda: None)) == LaunchShape(1, 32, 32, 0)
    assert shape_of(RecordedLaunch(LaunchShape(5), 1.0)) == LaunchShape(5)


class Clockwork:
    """An executor whose calls take what their flops say, and a microsecond more."""

    name = "clockwork"

    def __init__(self) -> None:
        self.runs = 0

    def run(self, emitters: Any) -> Any:
        self.runs += 1
        trace = make_executor("serial", record="times").run(emitters)
        trace.events = [e._replace(start=0.0, end=trace.order[e.seq].cost.flops + 1e-6) for e in trace.events]
        return trace

    def synchronize(self) -> None: ...

    def close(self) -> None: ...


def test_pauses_are_left_out_and_overhead_subtracted() -> None:
    table, paused = Segments(), list[int]()
    x = table.intern("x")
    pause = KernelCall("pause", PythonLaunch(lambda: paused.append(1)), (), (), cost=Cost(1.0))
    first = KernelCall("first", PythonLaunch(lambda: None), (), (x,), cost=Cost(5e-6))
    second = KernelCall("second", PythonLaunch(lambda: None), (x,), (), cost=Cost(-1e-6), tag=Tag(stage="s"))

    def emitter() -> Any:
        yield first
        yield AwaitCounts(first)
        yield second
        yield first

    recorder = ListRecorder(Clockwork(), table, pause, overhead=1e-6)
    with pytest.raises(RuntimeError, match="recorded nothing"):
        recorder.result()
    for _ in range(3):
        recorder.run([emitter()])
    assert len(paused) == 6
    found = recorder.result()
    assert [c.name for c in found.calls] == ["first", "second", "first"]
    assert found.items == ((0, -1, 1, 2),)
    assert [c.seconds for c in found.calls] == pytest.approx([5e-6, 0.0, 5e-6])
    assert recorder.durations() == [c.seconds for c in found.calls]


def test_what_cannot_be_recorded_is_refused() -> None:
    table = Segments()
    call = KernelCall("k", PythonLaunch(lambda: None), (), (table.intern("x"),))
    with pytest.raises(ValueError, match="give its inner executor record='times'"):
        ListRecorder(make_executor("serial", record="order"), table).run([[call]])
    with pytest.raises(ValueError, match="which it has not yielded"):
        ListRecorder(make_executor("serial", record="times"), table).run([[AwaitCounts(call)]])


def test_the_mean_of_the_middle_half() -> None:
    assert middle_mean([3.0]) == 3.0
    assert middle_mean([100.0, 1.0, 2.0, 3.0]) == 2.5
    assert middle_mean([9.0, 1.0, 2.0, 3.0, 4.0, 5.0, -7.0, 6.0]) == pytest.approx(3.5)
