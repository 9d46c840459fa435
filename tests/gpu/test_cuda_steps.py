"""Kernels of whole steps on the GPU give the bits of kernel lists, whatever is set, stored, frozen or mixed."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

from simengine import Model, Simulation, load_model
from simengine.backends.base import StepShape
from simengine.backends.cuda import CudaBackend
from simengine.zoo import random_robot
from tests.gpu.compare import cuda_only, state_bits, to_host
from tests.models import OWN, gymnasium_path

GYMNASIUM = ("ant", "half_cheetah", "hopper", "humanoid", "swimmer", "reacher", "inverted_double_pendulum")
MODELS: dict[str, Any] = {name: gymnasium_path(name) for name in GYMNASIUM}
MODELS |= {f"robot {seed}": random_robot(seed) for seed in (5, 7, 12)}
WORLDS = 33


def loaded(source: Any) -> Model:
    """A model, solved by Newton's method if the file asks for PGS."""
    if str(source).endswith("humanoid.xml"):
        model = mujoco.MjModel.from_xml_path(str(source))
        model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
        return load_model(model)
    return load_model(source)


def pair(source: Any, **options: Any) -> tuple[Simulation, Simulation]:
    """A simulation by kernels of whole steps, and one by lists."""
    model = source if isinstance(source, list) else [(loaded(source), WORLDS)]
    sims = [Simulation(model, backend="cuda", emission=e, **options) for e in ("whole", "ahead")]
    for sim in sims:
        for index, group in enumerate(sim.groups):
            scatter(group, index)
    return sims[0], sims[1]


def scatter(group: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (group.num_worlds, group.model.nv)
    group.set_state(qvel=rng.normal(0, 2, shape))


def controls(sim: Simulation, steps: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.uniform(-1, 1, (steps, group.num_worlds, group.model.nu)) for group in sim.groups]


def same(one: Simulation, other: Simulation) -> bool:
    return all(state_bits(one, k) == state_bits(other, k) for k in range(len(one.groups)))


def names(sim: Simulation) -> list[str]:
    return [entry.name for entry in sim.schedule.kernel_list]


@cuda_only
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", MODELS)
def test_whole_steps_have_the_bits_of_lists(backend: str, name: str, dtype: str) -> None:
    whole, lists = pair(MODELS[name], dtype=dtype)
    for steps in (1, 60, 13):
        ctrl = controls(whole, steps)[0]
        for sim in (whole, lists):
            sim.step(steps, ctrl=ctrl)
        assert same(whole, lists)
    assert len(names(whole)) == 1
    assert len(names(lists)) > 4
    assert whole.schedule.counts() == lists.schedule.counts()


@cuda_only
@pytest.mark.parametrize(("worlds", "warps", "in_warp"), [(50, 1, 1), (200, 4, 1), (450, 4, 2), (530, 4, 3)])
def test_worlds_share_blocks_where_there_are_many(
    backend: str, worlds: int, warps: int, in_warp: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = CudaBackend.step_shape
    asked = StepShape(warps, in_warp)
    monkeypatch.setattr(CudaBackend, "step_shape", lambda self, *a: shape(self, *a) and asked)
    whole, lists = pair([(load_model(gymnasium_path("hopper")), worlds)])
    for sim in (whole, lists):
        sim.step(40)
    assert same(whole, lists)
    assert len(names(whole)) == 1 < len(names(lists))


@cuda_only
def test_rows_that_are_many_are_far(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of worlds that have more than there is shared memory for give the same bits from memory."""
    monkeypatch.setattr("simengine.plan.step_kernels.ROW_CLASSES", (8,))
    whole, lists = pair(gymnasium_path("ant"))
    for sim in (whole, lists):
        sim.step(100)
    assert same(whole, lists)
    counts = whole.schedule.counts()
    assert sum(counts[f"rows_{bound}"] for bound in (16, 32, 64, 128)) > 4


@cuda_only
@pytest.mark.parametrize("keep", ["cfrc_ext", "sensordata"])
def test_what_is_kept_comes_from_kernels_of_its_own(backend: str, keep: str) -> None:
    whole, lists = pair(gymnasium_path("ant") if keep == "cfrc_ext" else OWN["dual"], keep=(keep,))
    for steps in (1, 7):
        ctrl = controls(whole, steps)[0]
        for sim in (whole, lists):
            sim.step(steps, ctrl=ctrl)
        assert same(whole, lists)
        assert to_host(whole.field(keep)).tobytes() == to_host(lists.field(keep)).tobytes()


@cuda_only
@pytest.mark.parametrize("shape", [StepShape(1, 1), StepShape(4, 2)], ids=["alone", "beside others in a warp"])
def test_a_frozen_world_stays_and_others_go_on(backend: str, shape: StepShape, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CudaBackend, "step_shape", lambda *_: shape)
    whole, lists = pair(gymnasium_path("hopper"), on_nonfinite="freeze")
    for sim in (whole, lists):
        sim.step(5)
        sim.set_state(worlds=[3], qvel=np.full((1, sim.groups[0].model.nv), 1e30))
        sim.step(5)
    assert same(whole, lists)
    assert to_host(whole.field("world_status"))[3] != 0
    assert whole.schedule.counts()["bad"] == lists.schedule.counts()["bad"] == 1


@cuda_only
def test_worlds_with_parameters_of_their_own(backend: str) -> None:
    whole, lists = pair(gymnasium_path("ant"))
    masses = np.random.default_rng(3).uniform(0.5, 2, (WORLDS, 1)) * whole.groups[0].model.mj.body_mass
    for sim in (whole, lists):
        sim.set_params(body_mass=masses)
        sim.step(30)
    assert same(whole, lists)


@cuda_only
def test_groups_whole_ahead_and_counted_in_one_batch(backend: str) -> None:
    """Each as it can be: by kernels of whole steps, ahead of counts, and by its counts where islands are solved."""
    groups = [(load_model(source), 20) for source in (gymnasium_path("ant"), OWN["two_arms"], OWN["crates"])]
    groups.append((load_model(random_robot(5)), 7))
    whole, lists = pair(groups)
    for sim in (whole, lists):
        sim.step(20)
        sim.groups[0].paused = True
        sim.step(3)
        sim.groups[0].paused = False
        sim.groups[0].reset(worlds=[1])
        sim.step(4)
    assert same(whole, lists)


@cuda_only
def test_groups_that_pause_in_turn_stay_as_they_are(backend: str) -> None:
    """In whole steps their kernels are launched and end at once; a group that pauses for long is left out."""
    groups = [(load_model(random_robot(seed)), 5) for seed in range(6)]
    whole, lists = pair(groups, executor="graph-cached", on_nonfinite="freeze")
    rng = np.random.default_rng(0)
    for step in range(60):
        paused = [[False] * 4 + [20 <= step < 40, False], (rng.random(6) < 0.3).tolist()][step % 3 > 0 or step > 40]
        for sim in (whole, lists):
            sim.pause(paused)
            sim.step(1 + step % 2)
            if step == 30:
                sim.groups[0].set_state(worlds=[2], qvel=np.full((1, sim.groups[0].model.nv), 1e30))
            if step == 45:
                sim.forward()
    assert same(whole, lists)
    assert [whole.schedule.counts(k) for k in range(6)] == [lists.schedule.counts(k) for k in range(6)]
    assert whole.schedule.counts(0)["bad"] == 1


@cuda_only
@pytest.mark.parametrize("executor", ["serial", "streams", "graph", "pipeline", "device"])
def test_any_executor_runs_whole_steps(backend: str, executor: str) -> None:
    groups = [(load_model(gymnasium_path(name)), 10) for name in ("ant", "half_cheetah")]
    whole, lists = pair(groups, executor=executor)
    for sim in (whole, lists):
        sim.step(11)
    assert same(whole, lists)


@cuda_only
def test_a_trace_of_whole_steps_has_their_kernels(backend: str) -> None:
    whole, lists = pair(gymnasium_path("ant"))
    trace = whole.schedule.trace_step()
    lists.step()
    assert len(trace.events) > 4
    assert same(whole, lists)
