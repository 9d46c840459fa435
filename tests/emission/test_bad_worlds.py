"""A world whose state becomes non-finite is named, frozen or reset, and the bits of other worlds do not change."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import mujoco
import numpy as np
import pytest

import simengine
from simengine import NonFiniteError, Simulation
from simengine.arrays import to_host
from simengine.state.fields import WORLD_STATUS
from tests.emission.worlds import ANTS, BALL, ant, host, rolling, state
from tests.models import OWN

NAN = float("nan")

RAIL = """
<mujoco model="rail">
  <option timestep="0.004" gravity="0 0 0" integrator="{integrator}"/>
  <worldbody><body><joint type="slide" axis="1 0 0"/><geom size="0.1" mass="0.1"/></body></worldbody>
</mujoco>
"""


def poisoned(world: int, field: str = "qpos", **options: Any) -> Simulation:
    """Six ants, one of which gets a NaN behind the engine's back."""
    sim = rolling(**options)
    sim.step(2)
    np.asarray(getattr(sim, field))[world, 1] = NAN
    return sim


@pytest.mark.parametrize("executor", ["serial", "threads", "shuffled"])
@pytest.mark.parametrize("field", ["qpos", "qvel", "ctrl"])
def test_a_nan_is_named_and_contained(field: str, executor: str) -> None:
    sim, healthy = poisoned(3, field, executor=executor, shards=2), rolling(executor="serial")
    frozen = state(sim, [3])
    with pytest.raises(NonFiniteError, match=r"model 'ant' in world 3 \(in input\)") as caught:
        sim.step()
    assert (caught.value.worlds, caught.value.stages, caught.value.model) == ((3,), ("input",), "ant")
    sim.step(4)  # said once
    healthy.step(7)
    others = [0, 1, 2, 4, 5]
    assert state(sim, others) == state(healthy, others)
    assert state(sim, [3])[:2] == frozen[:2]
    assert sim.time[3] == pytest.approx(0.02)


def test_a_bad_warm_start_is_no_start() -> None:
    """The solver then starts from the smooth acceleration, as with a warm start that was cleared."""
    sim, cleared = rolling(), rolling()
    for each, value in ((sim, NAN), (cleared, 0.0)):
        each.step(2)
        np.asarray(each.field("qacc_warmstart"))[:] = value
        each.step()
    np.testing.assert_allclose(np.asarray(sim.qvel), np.asarray(cleared.qvel), atol=1e-4)
    assert not np.asarray(sim.field("world_status")).any()


def test_a_frozen_world_lives_again_after_reset() -> None:
    sim = poisoned(3)
    with pytest.raises(NonFiniteError):
        sim.step()
    sim.reset([3])
    sim.step(2)
    alone = host(ant(), 1)
    alone.step(2)
    assert state(sim, [3]) == state(alone)


def test_each_bad_world_is_said_once() -> None:
    """Also after another world was reset, by whichever way, and when one goes bad as another is reset."""
    sim = poisoned(3)
    with pytest.raises(NonFiniteError):
        sim.step()
    np.asarray(sim.qpos)[5, 0] = NAN
    with pytest.raises(NonFiniteError) as caught:
        sim.step()
    assert caught.value.worlds == (5,)
    sim.reset([5])
    sim.step(2)
    sim.groups[0].reset([3])
    np.asarray(sim.qpos)[1, 0] = NAN
    with pytest.raises(NonFiniteError) as caught:
        sim.step()
    assert caught.value.worlds == (1,)
    sim.step()


def test_forward_finds_a_nan_too() -> None:
    sim = poisoned(2)
    with pytest.raises(NonFiniteError, match="world 2"):
        sim.forward()


def test_bad_worlds_can_be_frozen_silently() -> None:
    sim, healthy = poisoned(0, on_nonfinite="freeze"), rolling()
    sim.step(3)
    healthy.step(5)
    assert state(sim, range(1, ANTS)) == state(healthy, range(1, ANTS))
    assert WORLD_STATUS[int(np.asarray(sim.field("world_status"))[0])] == "input"
    assert sim.schedule.counts()["bad"] == 1


def test_bad_worlds_can_be_reset() -> None:
    sim, healthy = poisoned(0, on_nonfinite="reset"), rolling()
    sim.step()
    healthy.step(3)
    assert state(sim, [0]) == state(host(ant(), 1))
    assert state(sim, range(1, ANTS)) == state(healthy, range(1, ANTS))
    sim.step(3)
    assert np.isfinite(np.asarray(sim.qpos)).all()
    assert sim.time[0] == pytest.approx(0.03)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("model", [BALL, OWN["two_arms"], OWN["contact_parameters"]], ids=["ball", "two_arms", "rk4"])
def test_a_world_that_explodes_is_flagged_and_contained(model: str, dtype: str) -> None:
    big = 1e30 if dtype == "float32" else 1e300
    sims = [host(model, 5, dtype=dtype, on_nonfinite="freeze") for _ in range(2)]
    rng = np.random.default_rng(3)
    qvel = rng.normal(size=(5, sims[0].model.nv))
    sims[0].set_state(qvel=qvel)
    qvel[2] = big
    sims[1].set_state(qvel=qvel)
    for sim in sims:
        for _ in range(20):
            sim.step()
    others = [0, 1, 3, 4]
    assert state(sims[1], others) == state(sims[0], others)
    assert np.isfinite(np.asarray(sims[1].qpos)[2]).all()
    assert np.flatnonzero(np.asarray(sims[1].field("world_status"))).tolist() == [2]


def _arm(links: int) -> str:
    link = '<body pos="0.1 0 0"><joint axis="0 1 0" armature="0.01"/><geom size="0.05"/>'
    return f"<mujoco><worldbody>{link * links}{'</body>' * links}</worldbody></mujoco>"


@pytest.mark.parametrize(
    "links", [2, pytest.param(20, marks=pytest.mark.slow), pytest.param(70, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("backend", ["host", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_inertia_that_is_no_number_is_flagged(backend: str, links: int) -> None:
    """Parameters on a device are not read when they are set, so NaN may be among them."""
    sim = simengine.Simulation(simengine.load_model(_arm(links)), 3, backend=backend, on_nonfinite="freeze")
    armature = np.full((3, links), 0.01)
    armature[1, -1] = NAN
    sim.groups[0]._engine.set_params(0, None, {"dof_armature": armature})
    sim.step(2)
    assert to_host(sim.field("world_status")).astype(bool).tolist() == [False, True, False]
    assert np.isfinite(to_host(sim.qvel)).all()


@pytest.mark.parametrize(
    ("values", "stage"),
    [
        ({"qpos": [1.01e10]}, "input"),
        ({"qvel": [-1.01e10]}, "input"),
        ({"qfrc_applied": [2.9e38]}, "acceleration"),
        ({"qfrc_applied": [1.01e9]}, "acceleration"),
        ({"xfrc_applied": np.full((2, 6), 2.9e38)}, "acceleration"),
        ({"qvel": [9.99e9], "qfrc_applied": [9e8]}, "integrate"),
        ({"qpos": [9.99e9], "qvel": [9e9]}, "integrate"),
    ],
)
@pytest.mark.parametrize("integrator", ["Euler", "RK4"])
def test_the_stage_that_found_it_is_named(integrator: str, values: dict[str, Any], stage: str) -> None:
    """A light body on a rail: its acceleration, velocity or place leaves the range that MuJoCo allows."""
    sim = host(RAIL.format(integrator=integrator), 3)
    sim.set_state([1], **values)
    before = state(sim, [1])
    with pytest.raises(NonFiniteError) as caught:
        sim.step(3)
    assert (caught.value.worlds, caught.value.stages) == ((1,), (stage,))
    assert state(sim, [1])[:2] == before[:2]
    assert sim.time.tolist() == pytest.approx([0.012, 0, 0.012])


@pytest.mark.parametrize("backend", ["host", "jax"])
@pytest.mark.parametrize("values", [{"qpos": [2e10]}, {"qvel": [2e10]}, {"qfrc_applied": [2e9]}, {"qvel": [9.9e9]}])
def test_a_world_is_flagged_where_mujoco_warns(values: dict[str, Any], backend: str) -> None:
    model = simengine.load_model(RAIL.format(integrator="Euler"))
    data = mujoco.MjData(model.mj)
    for name, value in values.items():
        getattr(data, name)[:] = value
    mujoco.mj_step(model.mj, data)
    causes = ("mjWARN_BADQPOS", "mjWARN_BADQVEL", "mjWARN_BADQACC")
    warned = any(data.warning[getattr(mujoco.mjtWarning, cause)].number for cause in causes)
    with simengine.Simulation(model, 2, backend=backend, on_nonfinite="freeze") as sim:
        sim.set_state([1], **values)
        sim.step()
        assert np.asarray(sim.field("world_status")).astype(bool).tolist() == [False, warned]
        assert sum(sim.warnings().values()) == warned


@pytest.mark.parametrize("on_nonfinite", ["raise", "freeze", "reset"])
def test_warnings_are_counted_by_cause(on_nonfinite: str) -> None:
    sim = host(RAIL.format(integrator="Euler"), 4, on_nonfinite=on_nonfinite)
    expected = {"input": 0, "acceleration": 0, "solve": 0, "integrate": 0}
    assert sim.warnings() == expected
    for worlds, values, stage in (
        ([0, 2], {"qvel": [2e10]}, "input"),
        ([1], {"qfrc_applied": [2e9]}, "acceleration"),
        ([0], {"qvel": [2e10]}, "input"),
    ):
        sim.set_state(worlds, **values)
        with pytest.raises(NonFiniteError) if on_nonfinite == "raise" else nullcontext():
            sim.step(2)
        sim.step(2)
        sim.reset()
        expected[stage] += len(worlds)
    assert sim.warnings() == expected
    assert sim.groups[0].warnings() == expected


def test_looking_at_the_warnings_hides_no_error() -> None:
    sim = host(RAIL.format(integrator="Euler"), 2)
    sim.set_state([1], qfrc_applied=[2e9])
    sim.step()
    assert sim.warnings()["acceleration"] == 1
    with pytest.raises(NonFiniteError, match="world 1"):
        sim.step()
    assert sim.warnings()["acceleration"] == 1
