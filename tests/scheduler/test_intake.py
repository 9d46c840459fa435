"""Compiled code that pulls and numbers calls, against the Python that it stands for."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_scheduler import AwaitCounts, KernelCall, Segments, make_executor
from simengine_scheduler.core import IDLE
from simengine_scheduler.core.emission import Feeder
from simengine_scheduler.executors import feeding, numbering
from simengine_scheduler.executors.compiled import CompiledCalls
from simengine_scheduler.executors.feeding import CompiledFeeder
from simengine_scheduler.executors.numbering import Numbering
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.native.intake import Intake
from simengine_scheduler.native.issuer import Functions, Issuer
from simengine_scheduler.testing import CalledDevice
from tests.scheduler.programs import Program, Spec, run_and_check, specs

EXECUTORS = ["serial", "streams"]


class Launch:
    """A launch of which a test sees what compiled code was told."""

    def __init__(self, buffers: BufferSet | None = None, node: Any = None) -> None:
        self.buffers = buffers
        self.answer = node if node is not None else (1, (2, 3, 4), (5, 6, 7), 8, 9)

    def node(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def issue(self, stream: int) -> None:
        """Do nothing."""


class OutsideGraphs(Launch):
    """A launch that is no node of graphs."""

    in_graphs = False


class HostLaunch:
    """A launch that only Python can issue."""

    def issue(self, stream: int) -> None:
        """Do nothing."""


def both(table: Segments | None) -> list[Any]:
    conflicts = None if table is None else table.conflicts
    return [kind(Issuer(Functions(0, 0, 0, 0)), conflicts) for kind in (Numbering, Intake)]


Draw = tuple[int, tuple[int, ...], tuple[int, ...], int]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 7),
            st.lists(st.integers(0, 5), max_size=3).map(tuple),
            st.lists(st.integers(0, 5), max_size=3).map(tuple),
            st.integers(0, 2),
        ),
        max_size=12,
    ),
    st.lists(st.integers(0, 11), max_size=40),
    st.integers(1, 8),
)
def test_numbers_and_hazards_are_those_of_python(drawn: list[Draw], order: list[int], together: int) -> None:
    table, buffers = Segments(), [BufferSet(), BufferSet()]
    moving = buffers[0].add("x", 1, 1)
    calls: list[KernelCall] = []
    for kind, reads, writes, of in drawn:
        partitions = [None, ("half", 0), ("half", 1)]
        ids = [[table.intern("x" if s < 3 else f"y{s}", 0, partitions[s % 3]) for s in own] for own in (reads, writes)]
        launch = HostLaunch() if kind == 0 else (OutsideGraphs if kind == 1 else Launch)((*buffers, None)[of])
        calls.append(KernelCall(f"call {len(calls)}", launch, tuple(ids[0]), tuple(ids[1][:2]), tuple(ids[1][2:])))
    chosen = [calls[i] for i in order if i < len(calls)]
    pair = both(table)
    found = []
    for own in pair:
        numbers = []
        for at in range(0, len(chosen), together):
            numbers += own.numbers(chosen[at : at + together])
            own.hand_over()
        found.append(numbers)
    assert found[0] == found[1]
    assert pair[0].by_number == pair[1].by_number
    moving.rebind(2, 1)
    again = [own.numbers(chosen) for own in pair]
    for own in pair:
        own.hand_over()
    assert again[0] == again[1]
    by_python, by_compiled = (list(map(sorted, own._issuer.check(again[0], 8))) for own in pair)
    assert by_python == by_compiled


@settings(max_examples=60, deadline=None)
@given(specs(), st.sampled_from(EXECUTORS), st.integers(1, 4), st.integers(0, 99))
def test_lists_run_where_compiled_code_cannot_call_python(
    emitters: list[list[Spec]], name: str, streams: int, seed: int
) -> None:
    def missing() -> None:
        raise OSError("undefined symbol: PyObject_GetAttr")

    device = CalledDevice(seed, 0.3)
    program = Program(emitters, device.launch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feeding, "library", missing)
        patch.setattr(numbering, "Intake", lambda *given: missing())
        executor = make_executor(
            name, segments=program.segments, driver=device, device="cuda", stream=0, streams=streams, record="order"
        )
        run_and_check(program, executor)
    assert device.called or not any(emitters)
    executor.close()


@pytest.mark.parametrize("kind", [0, 1])
def test_a_call_whose_arguments_were_refused_is_defined_when_it_comes_again(kind: int) -> None:
    table = Segments()
    launch, good = Launch(node=ValueError("offset 9 lies outside buffer 'x'")), Launch()
    calls = [KernelCall("k", launch, (), (table.intern("x"),)), KernelCall("l", good, (), (0,))]
    own = both(table)[kind]
    for _ in range(2):
        with pytest.raises(ValueError, match="offset 9"):
            own.numbers(calls)
    assert own.by_number == []
    launch.answer = good.answer
    assert list(own.numbers(calls)) == [0, 1]
    own.hand_over()
    assert own._issuer.check(own.numbers(calls), 4) == [[], [0]]


@pytest.mark.parametrize("node", [(1, 2), (1, (1, 1), (1, 1, 1), 0, 0), (1, 1, 1, 1, 1), None, ("a", (1,), (1,), 0, 0)])
def test_what_is_no_node_is_refused(node: Any) -> None:
    launch = Launch()
    launch.answer = node
    with pytest.raises(TypeError):
        both(Segments())[1].numbers([KernelCall("k", launch, (), ())])


@pytest.mark.parametrize("kind", [0, 1])
def test_a_segment_that_the_table_lacks_is_named(kind: int) -> None:
    table = Segments()
    table.intern("x")
    for wrong in (1, -1):
        own, call = both(table)[kind], KernelCall("k", Launch(), (0,), (wrong,))
        with pytest.raises(ValueError, match=f"call 'k' names segment {wrong}, but the table holds 1; intern"):
            own.numbers([call])


def test_what_its_own_calls_refer_to_is_let_go() -> None:
    class Watched(Launch):
        owner: Any

    own = CompiledCalls(Issuer(Functions(0, 0, 0, 0)), Segments().conflicts, 4)
    launch = Watched()
    launch.owner = own
    feeder = CompiledFeeder([(call for call in [KernelCall("k", launch, (), ())])], lambda seq: True)
    feeder.take(1)
    own.numbers(feeder.taken)
    of_launch = weakref.ref(launch)
    del own, launch, feeder
    gc.collect()
    assert of_launch() is None


def test_nothing_is_kept_of_calls_that_were_forgotten() -> None:
    class Watched(Launch):
        pass

    table, buffers = Segments(), BufferSet()
    own = CompiledCalls(Issuer(Functions(0, 0, 0, 0)), table.conflicts, 4)
    launches = [Watched(buffers) for _ in range(20)]
    references = [weakref.ref(launch) for launch in launches]
    own.numbers([KernelCall("k", launch, (), ()) for launch in launches])
    launches.clear()
    gc.collect()
    assert all(reference() is not None for reference in references)
    of_buffers = weakref.ref(buffers)
    del own, buffers
    gc.collect()
    assert of_buffers() is None
    assert all(reference() is None for reference in references)


Items = list[tuple[str, int]]


@settings(deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.sampled_from("kkkkai"), st.integers(0, 3)), max_size=9), max_size=5),
    st.integers(1, 7),
    st.lists(st.booleans(), max_size=60),
    st.booleans(),
)
def test_a_feeder_of_compiled_code_has_the_order_of_python(
    programs: list[Items], most: int, complete: list[bool], asks: bool
) -> None:
    calls = [KernelCall(f"call {k}", HostLaunch(), (), ()) for k in range(4)]

    def emit(items: Items) -> Iterator[Any]:
        yielded = [calls[0]]
        yield calls[0]
        for kind, which in items:
            if kind == "k":
                yielded.append(calls[which])
                yield calls[which]
            else:
                yield IDLE if kind == "i" else AwaitCounts(yielded[which % len(yielded)])

    def run(kind: Callable[..., Feeder]) -> list[Any]:
        answers, seen, fresh = iter(complete), list[Any](), 5

        def is_complete(seq: int) -> bool:
            if seq >= fresh and not asks:  # which compiled code knows by itself
                return False
            seen.append(seq)
            return next(answers, True)

        feeder = kind([emit(items) for items in programs], is_complete, 5)
        while not feeder.exhausted:
            fresh = feeder.latest + 1
            feeder.take(most)
            seen += [call.name for call in feeder.taken]
            feeder.taken = []
            seen += [feeder.latest, feeder.calls, feeder.awaits, sorted(feeder.waiting)]
            for seq in sorted(feeder.waiting)[:1]:
                feeder.release(seq)
        return seen

    assert run(partial(CompiledFeeder, asks=asks)) == run(Feeder)


@pytest.mark.parametrize("kind", [Feeder, CompiledFeeder, partial(CompiledFeeder, asks=False)])
def test_emitters_that_fail_or_yield_something_else(kind: Callable[..., Feeder]) -> None:
    call, closed = KernelCall("k", HostLaunch(), (), ()), []

    def emit(item: Any) -> Iterator[Any]:
        try:
            yield call
            if item is None:
                raise OSError("no more")
            yield item
        finally:
            closed.append(item)

    for item, error, text in ((None, OSError, "no more"), (5, TypeError, "yielded a int; yield KernelCall")):
        feeder = kind([emit(item), emit("other")], lambda seq: True)
        with pytest.raises(error, match=text):
            feeder.take(9)
        assert [each.name for each in feeder.taken] == ["k", "k"]
        feeder.close()
    with pytest.raises(ValueError, match="awaits call 'k', which it has not yielded"):
        kind([[AwaitCounts(call)]], lambda seq: True).take(1)
    assert closed == [None, "other", 5, "other"]
