"""implicitfast uses derivatives of gyroscopic forces for free bodies without children, and for no other bodies."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model

INERTIAL = '<inertial pos="0.02 0.01 0.03" mass="1.4" diaginertia="0.025 0.022 0.04"/>'
BODIES = f"""
<mujoco>
  <option integrator="implicitfast" timestep="0.004" density="300" viscosity="0.2"/>
  <worldbody>
    <body><joint type="free" damping="0.1"/>{INERTIAL}<body pos="0.3 0 0.2">{INERTIAL}</body></body>
    <body pos="2 0 0"><freejoint/>{INERTIAL}<body pos="0.3 0 0.2"><joint axis="0 1 0"/>{INERTIAL}</body></body>
    <body pos="4 0 0"><joint type="ball"/>{INERTIAL}</body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("backend", ["host", "jax"])
def test_a_step_of_turning_bodies_is_that_of_mujoco(backend: str) -> None:
    model = load_model(BODIES)
    qvel = np.random.default_rng(0).normal(size=model.nv) * 2
    sim = Simulation(model, 1, backend=backend, dtype="float64")
    sim.set_state(qvel=qvel)
    sim.step()
    data = mujoco.MjData(model.mj)
    data.qvel[:] = qvel
    mujoco.mj_step(model.mj, data)
    np.testing.assert_allclose(np.asarray(sim.qvel)[0], data.qvel, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.asarray(sim.qpos)[0], data.qpos, rtol=0, atol=1e-12)
