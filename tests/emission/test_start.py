"""What a simulation works out before its first step: the kernels of all groups at once, and all things once."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Barrier
from typing import Any

import pytest

from simengine.backends.host import HostBackend
from simengine.engines.list_engine import ListEngine
from simengine.kernels.functions import Build, together
from simengine.model import load_table
from simengine.plan import step_plan
from simengine.plan.catalogue import POSITION
from simengine.plan.contact_kernels import NARROW, SCAN_KERNEL
from simengine.plan.evaluation import plan_evaluation
from simengine.plan.launches import Launch
from simengine.plan.scratch import scratch_plan
from simengine.plan.step_plan import StepPlan
from tests.emission.test_memory import GpuOnPaper
from tests.helpers.islands import heap
from tests.models import gymnasium_path

MODELS = {"ant": gymnasium_path("ant"), "humanoid": gymnasium_path("humanoid"), "heap": heap(12)}


class Counting(GpuOnPaper):
    """A GPU on paper that notes what is compiled together."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[Sequence[Build]] = []

    def load(self, builds: Sequence[Build], dtype: str, own_tables: bool) -> list[Any]:
        self.loads.append(builds)
        return super().load(builds, dtype, own_tables)


@pytest.mark.parametrize("names", [("ant", "ant"), ("ant", "humanoid"), ("heap", "ant")])
def test_the_kernels_of_all_groups_are_compiled_together_and_once(names: tuple[str, ...]) -> None:
    backend = Counting()
    groups = [(load_table(MODELS[name]), 6) for name in names]
    engine = ListEngine(groups, backend, "serial", "float32", 1, "counted", {})
    (builds,) = backend.loads
    assert len(set(builds)) == len(builds)
    for emitters in engine.emitters.values():
        for emitter in emitters:
            list(emitter.steps(1, frozenset()))
    assert len(backend.loads) == 1, "a step compiles kernels that were not compiled at the start"


def test_the_largest_builds_come_first_and_all_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    kernels = SCAN_KERNEL, POSITION, NARROW["plane_sphere"]
    builds = [Build(kernel, lanes) for lanes, kernel in enumerate(kernels, start=1)]
    meet = Barrier(3, timeout=30)

    def make(build: Build) -> int:
        meet.wait()
        return build.lanes

    made = list(together(make, builds, lambda build: build.lanes))
    assert made == [(build, build.lanes) for build in builds[::-1]]


def test_an_evaluation_and_its_scratch_are_worked_out_once_for_all_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[Any] = []
    placed: list[Any] = []

    def plan(*args: Any) -> Any:
        planned.append(args)
        return plan_evaluation(*args)

    def place(*args: Any) -> Any:
        placed.append(args)
        return scratch_plan(*args)

    monkeypatch.setattr(step_plan, "plan_evaluation", plan)
    monkeypatch.setattr(step_plan, "scratch_plan", place)
    groups = [(load_table(MODELS[name]), 8) for name in ("ant", "humanoid")]
    engine = ListEngine(groups, Counting(), "serial", "float32", 4, "counted", {})
    for emitters in engine.emitters.values():
        for emitter in emitters:
            list(emitter.steps(1, frozenset()))
    assert len(planned) == sum(4 if model.opt_integrator == "rk4" else 1 for model, _ in groups)
    launches = {(group, item.kernel, item.nrow) for group in engine.stores for item in _launches(engine.plan(group))}
    assert len(placed) == len(launches)


def _launches(plan: StepPlan) -> list[Launch]:
    evaluations = plan.step(plan.shard_sizes[0], frozenset(), False)
    return [item for evaluation in evaluations for item in evaluation.launches if isinstance(item, Launch)]


def test_many_groups_need_not_be_split_to_occupy_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simengine.backends.host.usable_processors", lambda: 4)
    backend = HostBackend()
    shards = [backend.shards_for(64, "threads", "whole", share) for share in (1.0, 0.5, 0.2, 0.05, 0.001)]
    assert shards == [4, 4, 4, 1, 1]
    assert backend.shards_for(200, "threads", "whole", 0.001) == 4, "a shard stays in the cache of a core"
    small, large = load_table(MODELS["ant"]), load_table(MODELS["humanoid"])
    engine = ListEngine([(small, 16)] * 20 + [(large, 16)] * 4, backend, "threads", "float32", None, "auto", {})
    numbers = [engine.num_shards(group) for group in engine.stores]
    assert numbers[:20] == [1] * 20
    assert numbers[20:] == [2] * 4
