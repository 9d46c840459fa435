"""Which groups use a kernel of whole steps on the GPU, how their worlds share blocks, and which calls are issued."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mujoco
import pytest

from simengine import BackendError
from simengine.backends.base import StepShape
from simengine.backends.block_shape import worlds_of_block
from simengine.backends.cuda import step_shape
from simengine.engines.list_engine import ListEngine
from simengine.kernels import cuda_build, sources
from simengine.model import ModelTable, load_table
from simengine.plan.issue import Issue, Issuing
from simengine.plan.step_plan import StepPlan, has_step_kernel, plan_step
from simengine_scheduler import KernelCall, Options, Segments, Trace
from simengine_scheduler.core import Emitter
from simengine_scheduler.executors import AutoExecutor
from tests.emission.test_memory import GpuOnPaper
from tests.helpers.islands import heap
from tests.models import OWN, gymnasium_path

NOTHING = frozenset[str]()
PLANE = '<geom type="plane" size="5 5 1"/>'
BALL = '<body pos="0 0 1"><freejoint/><geom size="0.1"/></body>'
SIMPLE = f"<mujoco><worldbody>{PLANE}{BALL}</worldbody></mujoco>"


def engine_of(*groups: tuple[ModelTable, int], emission: str = "whole", executor: str = "serial") -> ListEngine:
    return ListEngine(list(groups), GpuOnPaper(), executor, "float32", None, emission, {})


def names(engine: ListEngine, group: int = 0, **how: Any) -> list[str]:
    how = {"keep": NOTHING, "whole": True} | how
    return [call.name for call in engine.emitters[group][0].ahead(**how)]


def gymnasium(name: str) -> ModelTable:
    return load_table(str(gymnasium_path(name)))


def test_simple_models_have_kernels_of_whole_steps() -> None:
    assert all(has_step_kernel(gymnasium(name)) for name in ("ant", "half_cheetah", "swimmer", "reacher"))
    assert has_step_kernel(load_table(SIMPLE))


@pytest.mark.parametrize(
    "source",
    [
        *(OWN[name] for name in ("crates", "dual", "ropes", "actuators", "linkage", "terrain")),
        heap(4),
        heap(45),
        SIMPLE.replace("<worldbody>", '<option solver="PGS"/><worldbody>'),
        SIMPLE.replace("<worldbody>", '<option cone="elliptic"/><worldbody>'),
        SIMPLE.replace("<worldbody>", '<option integrator="implicitfast"/><worldbody>'),
        SIMPLE.replace("<worldbody>", '<option noslip_iterations="2"/><worldbody>'),
        SIMPLE.replace(BALL, BALL + BALL.replace('size="0.1"', 'type="ellipsoid" size="0.1 0.2 0.3"')),
    ],
)
def test_others_have_none(source: str) -> None:
    model = load_table(source)
    assert not has_step_kernel(model)
    engine = engine_of((model, 2))
    emitter = engine.emitters[0][0]
    assert not emitter.can_go_ahead or names(engine) == names(engine, whole=False)


def test_what_would_take_much_memory_is_stepped_by_lists() -> None:
    """More than 256 MiB to work in, for all worlds of a group."""
    model, backend = gymnasium("ant"), GpuOnPaper()

    issuing = Issuing("serial", "whole", Issue.STEP_KERNEL, waits=False)

    def plan(worlds: int) -> StepPlan:
        return plan_step(model, worlds, backend, "float32", issuing, 1, [worlds])

    few = plan(10)
    assert few.step_kernel is not None
    most = 2**28 // (4 * few.step_memory.in_global.words)
    assert plan(most).step_kernel == few.step_kernel
    assert plan(most + 1).step_kernel is None


def test_what_is_issued_for_steps() -> None:
    engine = engine_of((gymnasium("hopper"), 8))
    whole = names(engine)
    assert len(whole) == 1
    assert names(engine, rounds=5) == whole
    by_kernels = names(engine, whole=False)
    assert len(by_kernels) > 8
    assert names(engine, rounds=3, keep=frozenset({"xpos"}))[:1] == whole
    assert len(names(engine, rounds=3, keep=frozenset({"xpos"}))) == 1 + len(by_kernels)
    assert len(names(engine, keep=frozenset({"xpos"}))) == len(by_kernels)


def test_whole_steps_are_done_when_they_arrive() -> None:
    emitter = engine_of((gymnasium("hopper"), 8)).emitters[0][0]
    assert emitter.arrive(5, NOTHING, whole=True) == 20
    assert emitter.arrive(5, frozenset({"xpos"}), whole=True) == 16  # no evaluation of the last one has passed
    assert emitter.arrive(5, NOTHING, whole=False) == 0


class Taken:
    """Under the name of an executor, notes the calls of each run and runs none."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.runs: list[list[str]] = []

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        self.runs.append([item.name for emitter in emitters for item in emitter if isinstance(item, KernelCall)])
        trace = Trace(self.name, "off")
        trace.counters.calls = len(self.runs[-1])
        return trace

    def synchronize(self) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is held."""


def test_workers_are_given_kernels_one_by_one() -> None:
    engine = engine_of((gymnasium("hopper"), 8))
    for executor, whole in (("serial", True), ("device", False)):
        taken = Taken(executor)
        engine.step(1, NOTHING, {}, taken)
        assert taken.runs[0] == names(engine, whole=whole)


def test_kernels_of_groups_that_pause_in_turn_stay_in_kept_graphs() -> None:
    hopper = gymnasium("hopper")
    engine = engine_of(*[(hopper, 2)] * 4)

    def asleep() -> list[bool]:
        return [bool(store.sleep_flag().ptr and store._asleep and store._asleep[0]) for store in engine.stores.values()]

    def issued(*paused: int, name: str = "graph-cached", keep: frozenset[str] = NOTHING) -> int:
        engine.paused = set(paused)
        taken = Taken(name)
        engine.step(1, keep, {}, taken)
        return len(taken.runs[0])

    assert issued(1) == 4
    assert asleep() == [False, True, False, False]
    assert issued(1, name="streams") == 3  # for which each launch takes time
    assert not any(asleep())
    assert issued(2, 3) == 4
    assert asleep() == [False, False, True, True]
    assert issued(0, 1, 2, 3) == 0  # most groups pause
    of_lists = issued(1, keep=frozenset({"xpos"}))  # the last step is made by kernels that do not read the flag
    assert of_lists % 3 == 0
    assert not any(asleep())
    assert [issued(0) for _ in range(9)] == [4] * 8 + [3]  # and group 0 goes on pausing
    assert not any(asleep())
    assert issued() == 4


def test_auto_compares_the_times_of_calls_that_have_work() -> None:
    """Where it tries kept graphs, kernels of groups that pause stay in their lists, and do not count."""
    made: dict[str, Taken] = {}
    options = Options(segments=Segments(), candidates="graph-cached+streams")
    auto = AutoExecutor(options, lambda name, _: made.setdefault(name, Taken(name)))  # type: ignore[arg-type,return-value]
    engine = engine_of(*[(gymnasium("hopper"), 2)] * 4)
    for step in range(64):
        engine.paused = {step % 4}
        engine.step(1, NOTHING, {}, auto)
    assert {len(run) for run in made["graph-cached"].runs} == {4}
    assert {len(run) for run in made["streams"].runs} == {3}
    assert auto._tried.calls / auto._tried.runs == 3


@pytest.mark.parametrize(("name", "calls"), [("graph-cached", 4), ("streams", 3)])
def test_what_auto_has_chosen_is_told_who_pauses_also_in_several_steps(name: str, calls: int) -> None:
    taken = Taken(name)
    auto = AutoExecutor(Options(candidates=name), lambda *_: taken)  # type: ignore[arg-type,return-value]
    engine = engine_of(*[(gymnasium("hopper"), 2)] * 4)
    engine.paused = {1}
    engine.step(5, NOTHING, {}, auto)
    assert {len(run) for run in taken.runs} == {calls}


def test_counts_of_whole_steps_are_added_up_once_somebody_asks() -> None:
    engine = engine_of((gymnasium("hopper"), 8))
    taken = engine.executor = Taken("serial")  # type: ignore[assignment]
    engine.step(3, NOTHING, {})
    assert not engine.has_bad_worlds()
    assert "scan" not in [name for run in taken.runs for name in run]
    engine.emitters[0][0].bad[0] = 1  # as a kernel does that has flagged a world
    for _ in range(2):
        taken.runs.clear()
        engine.step(1, NOTHING, {})
        assert engine.has_bad_worlds()
        assert engine.bad_worlds(0) == 1
        engine.counts(0)
        assert taken.runs[1:] == [["scan"]]


def test_a_step_that_is_made_again_and_again_has_the_calls_of_the_groups_that_there_are() -> None:
    engine = engine_of((gymnasium("hopper"), 8))
    whole, by_kernels = names(engine), names(engine, whole=False)
    taken = engine.executor = Taken("serial")  # type: ignore[assignment]

    def logged() -> list[str]:
        return [entry.name for entry in engine.last_kernel_list()]

    def issued() -> list[str]:
        taken.runs.clear()
        engine.step(1, NOTHING, {})
        assert [logged()] == taken.runs
        return logged()

    assert issued() == issued() == whole
    engine.step(1, frozenset({"xpos"}), {})
    assert logged() != whole
    assert issued() == whole
    engine.lists()
    assert logged() == by_kernels
    assert issued() == whole
    engine.forward()
    assert logged() != whole
    assert issued() == whole
    added = engine.add(gymnasium("hopper"), 3)
    assert issued() == 2 * whole
    engine.remove(added)
    assert issued() == whole
    engine.paused.add(0)
    assert issued() == []


def asked_shapes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How many worlds, of how many groups, the backend is asked to step by such kernels."""
    asked: list[tuple[int, int]] = []

    def shape(self: GpuOnPaper, all_worlds: int, groups: int, lanes: int, scratch_bytes: int) -> StepShape:
        asked.append((all_worlds, groups))
        return StepShape(1, 1)

    monkeypatch.setattr(GpuOnPaper, "step_shape", shape)
    return asked


def test_worlds_without_such_kernels_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asked_shapes(monkeypatch)
    engine = engine_of((gymnasium("hopper"), 8), (load_table(OWN["dual"]), 1000))
    assert set(asked) == {(8, 1)}
    asked.clear()
    added = engine.add(gymnasium("reacher"), 5)
    assert set(asked) == {(13, 2)}
    engine.remove(added)
    asked.clear()
    engine.footprint(0, 8, NOTHING)
    assert set(asked) == {(8, 1)}


def test_a_group_that_does_not_fit_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asked_shapes(monkeypatch)
    engine = engine_of((gymnasium("hopper"), 8))
    with monkeypatch.context() as full:
        full.setattr(GpuOnPaper, "free_memory", lambda self: 1000)
        with pytest.raises(BackendError, match="GiB free"):
            engine.add(gymnasium("reacher"), 5)
    held = engine.nbytes()
    asked.clear()
    engine.footprint(0, 8, NOTHING)
    assert set(asked) == {(8, 1)}
    assert engine.nbytes() == held


@pytest.mark.parametrize(
    ("worlds", "groups", "lanes", "nbytes", "shape"),
    [
        (132, 1, 16, 10_000, StepShape(1, 1)),
        (3 * 132, 1, 16, 10_000, StepShape(3, 1)),
        (6 * 132, 1, 16, 10_000, StepShape(4, 2)),
        (6 * 132, 6, 32, 10_000, StepShape(4, 1)),
        (6 * 132, 6, 16, 70_000, StepShape(3, 1)),
        (6 * 132, 1, 32, 10_000, None),  # two rounds, and lists take less
        (132, 1, 16, 300_000, None),
        (16 * 132, 1, 8, 5_000, StepShape(4, 4)),
    ],
)
def test_worlds_take_as_few_blocks_as_there_are_multiprocessors(
    worlds: int, groups: int, lanes: int, nbytes: int, shape: StepShape | None
) -> None:
    assert step_shape(132, 232_448, worlds, groups, lanes, nbytes) == shape


@pytest.mark.parametrize(
    ("units", "lanes", "nbytes", "worlds"),
    [
        (2112, 32, 3_000, 1),
        (2113, 32, 3_000, 2),
        (8192, 32, 3_000, 4),
        (8192, 32, 12_000, 2),  # nine blocks of two are 18 worlds, four of four are 16
        (8192, 32, 14_400, 1),  # 15 worlds, not 14 or 12
        (8192, 16, 14_400, 2),  # a warp has two worlds
        (8192, 32, 57_000, 4),  # as many as alone
        (8192, 64, 3_000, 1),  # two warps of a world wait for their whole block
    ],
)
def test_worlds_share_blocks_as_long_as_no_shared_memory_is_lost(
    units: int, lanes: int, nbytes: int, worlds: int
) -> None:
    most = min(128 // lanes, 232_448 // nbytes)
    assert worlds_of_block(units, lanes, nbytes, most, 2112, 233_472) == worlds


@pytest.mark.parametrize("lanes", [8, 16, 32])
def test_no_shape_is_beyond_what_a_block_has(lanes: int) -> None:
    for worlds in (1, 7, 60, 500, 1500, 3000):
        for nbytes in (500, 9_000, 40_000, 99_000):
            for groups in (1, 9):
                shape = step_shape(60, 99_000, worlds, groups, lanes, nbytes)
                assert shape is None or shape.worlds * nbytes <= 99_000
                assert shape is None or (shape.warps <= 4 and shape.worlds_in_warp * lanes <= 32)


def test_words_of_columns_are_those_of_the_dialect() -> None:
    assert "#define COLUMN_WORDS (4 * LANES)" in sources.dialect()
    assert [cuda_build.column_words(n) for n in (8, 16, 32, 128)] == [32, 64, 128, 4]


def test_a_model_solved_by_newton_in_place_of_pgs_has_a_kernel() -> None:
    mj = mujoco.MjModel.from_xml_path(str(gymnasium_path("humanoid")))
    assert not has_step_kernel(load_table(mj))
    mj.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    assert has_step_kernel(load_table(mj))
