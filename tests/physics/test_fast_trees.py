"""Trees that move far faster than others do not decide when the solver of one world stops."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.check.check import comparable
from simengine.check.states import STATE_ARRAYS, Sampler
from tests.helpers.checkout import ROOT

TREES = """
<mujoco><option timestep="0.01" tolerance="1e-12" impratio="5"/><worldbody>
  <geom type="plane" size="2 2 0.1" condim="4"/>
  <body name="box" pos="0 0 0.03"><freejoint/>
    <geom type="box" size="0.035 0.06 0.04" density="300" condim="4"/></body>
  <body name="cart" pos="0 0 1"><joint name="fast" type="slide" axis="1 0 0"/>
    <geom size="0.02" mass="0.1" contype="0" conaffinity="0"/></body>
  <body pos="1 0 1"><joint type="slide" axis="1 0 0" frictionloss="0.1"/><geom size="0.02"/></body>
</worldbody><actuator><motor joint="fast"/></actuator></mujoco>"""
WORLDS = 64


@pytest.mark.parametrize("backend", ["host", "jax"])
def test_forces_on_a_slow_tree_are_right_beside_a_fast_one_in_float32(backend: str) -> None:
    """The cart has 1.5e5 m/s^2, and the box forces of some newtons, which were off by more than that."""
    mj = mujoco.MjModel.from_xml_string(TREES)
    data, rng = mujoco.MjData(mj), np.random.default_rng(0)
    qpos, qvel = np.tile(mj.qpos0, (WORLDS, 1)), rng.normal(size=(WORLDS, mj.nv)) * 0.3
    qpos[:, 2] += rng.uniform(-0.01, 0.005, WORLDS)
    qpos[:, 3:7] += 0.03 * rng.normal(size=(WORLDS, 4))
    qpos, qvel = (x.astype(np.float32).astype(float) for x in (qpos, qvel))
    sim = Simulation(load_model(mj), num_worlds=WORLDS, backend=backend, dtype="float32")
    sim.set_state(qpos=qpos, qvel=qvel, ctrl=np.full((WORLDS, 1), 1.5e4))
    sim.forward()
    ours = np.asarray(sim.field("qfrc_constraint"), float)
    worst = 0.0
    for world in range(WORLDS):
        data.qpos[:], data.qvel[:], data.ctrl[:] = qpos[world], qvel[world], 1.5e4
        mujoco.mj_forward(mj, data)
        worst = max(worst, float(np.abs(ours[world] - data.qfrc_constraint).max()))
    assert worst < 0.02


def test_friction_of_a_fast_arm_is_right_in_float32() -> None:
    """Newton's steps shrink slowly here, by a factor of four, while the rows of friction leave their bounds."""
    model, _ = comparable(load_model(ROOT / "tests" / "corpus" / "fast_arm_with_friction.xml"), 2)
    falling = list(Sampler(model.mj, 2).settled(9))
    data, sim = mujoco.MjData(model.mj), Simulation(model, num_worlds=len(falling), backend="host", dtype="float32")
    sim.set_state(**{name: np.array([getattr(state, name) for state in falling]) for name in STATE_ARRAYS})
    sim.forward()
    fastest = 0.0
    for world, state in enumerate(falling):
        state.put_into(model.mj, data)
        mujoco.mj_forward(model.mj, data)
        fastest = max(fastest, float(np.abs(data.qacc).max()))
        np.testing.assert_allclose(np.asarray(sim.constraints(world).force), data.efc_force, atol=1e-3)
    assert fastest > 1e4
