"""Adhesion actuators, with which smooth forces depend on contacts."""

from __future__ import annotations

import mujoco
import numpy as np

from simengine import Simulation
from tests.emission.lists import written

GECKO = """
<mujoco model="gecko">
  <option timestep="0.004"/>
  <worldbody>
    <geom type="plane" size="2 2 1" pos="0 0 1" euler="180 0 0"/>
    <body name="pad" pos="0 0 0.905">
      <freejoint/>
      <geom type="sphere" size="0.1" density="200"/>
      <body pos="0 0 -0.1">
        <joint type="hinge" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02"/>
      </body>
    </body>
  </worldbody>
  <actuator><adhesion body="pad" ctrlrange="0 1" gain="60"/></actuator>
</mujoco>
"""
WORLDS, STEPS = 3, 40


def test_steps_are_those_of_mujoco_and_only_the_driven_pad_stays_at_the_ceiling() -> None:
    sim = Simulation(GECKO, WORLDS, backend="host", dtype="float64")
    ctrl = np.linspace(0, 1, WORLDS)[:, None]
    sim.set_state(ctrl=ctrl)
    mj, datas = sim.model.mj, [mujoco.MjData(sim.model.mj) for _ in range(WORLDS)]
    for step in range(STEPS):
        sim.step()
        for data, value in zip(datas, ctrl, strict=True):
            data.ctrl[:] = value
            mujoco.mj_step(mj, data)
        theirs = np.array([data.qpos for data in datas])
        np.testing.assert_allclose(np.asarray(sim.qpos), theirs, atol=1e-6, err_msg=f"step {step}")
    assert np.asarray(sim.qpos)[0, 2] < 0.85 < 0.9 < np.asarray(sim.qpos)[-1, 2]


def test_smooth_forces_follow_the_narrowphase() -> None:
    sim = Simulation(GECKO, 1, backend="host")
    sim.step()
    fields = [written(sim, entry) for entry in sim.schedule.kernel_list]
    contacts, forces, steps = (
        [place for place, names in enumerate(fields) if field in names]
        for field in ("contact_dist", "qacc_smooth", "qpos")
    )
    assert len(forces) == 1
    assert max(contacts) < forces[0] < min(steps)
