"""A step of Runge-Kutta that is made of evaluations by MuJoCo is MuJoCo's step."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine.check.runge_kutta import RungeKutta
from simengine.check.states import Sampler

TUMBLING = """
<mujoco><option integrator="RK4" timestep="0.01" tolerance="1e-14"><flag contact="{}"/></option><worldbody>
  <geom type="plane" size="3 3 1"/>
  <body pos="0 0 0.25"><joint type="ball" name="ball"/><geom type="box" size="0.1 0.2 0.3"/>
    <body pos="0.3 0 0"><joint name="hinge" axis="1 2 0"/><geom type="capsule" size="0.05 0.2"/></body></body>
  <body pos="1 0 0.1"><freejoint/><geom type="box" size="0.3 0.1 0.2"/></body>
</worldbody><actuator>
  <general joint="hinge" dyntype="filter" dynprm="0.05" gainprm="30"/>
  <general joint="ball" gear="0 1 0" dyntype="integrator" gainprm="20"/>
</actuator></mujoco>"""


@pytest.mark.parametrize(("speed", "contact"), [(1.0, "enable"), (20.0, "disable"), (500.0, "disable")])
def test_a_step_that_is_put_together_is_that_of_mujoco(speed: float, contact: str) -> None:
    mj = mujoco.MjModel.from_xml_string(TUMBLING.format(contact))
    sampler, data = Sampler(mj, 0), mujoco.MjData(mj)
    for state in (sampler.random() for _ in range(8)):
        state.put_into(mj, data)
        data.qvel[:] *= speed
        step = RungeKutta(mj, data.qpos, data.qvel, data.act)
        stepped = mujoco.MjData(mj)
        mujoco.mj_copyData(stepped, mj, data)
        mujoco.mj_step(mj, stepped)
        for _ in range(4):
            data.qpos[:], data.qvel[:], data.act[:] = step.qpos, step.qvel, step.act
            mujoco.mj_forward(mj, data)
            step.advance(data.qacc, data.act_dot)
        for name in ("qpos", "qvel", "act"):
            wanted = getattr(stepped, name)
            error = np.abs(getattr(step, name) - wanted).max() / max(1.0, np.abs(wanted).max())
            assert error < 1e-11, (name, error)
