"""Simple actuators on spatial tendons. They are as linear as a motor, but their moments depend on the state."""

from __future__ import annotations

import mujoco
import numpy as np

from simengine import Simulation

WINCH = """
<mujoco model="winch">
  <worldbody>
    <site name="s0" pos="0 0 1"/><site name="s1" pos="0.1 0 1"/><site name="s2" pos="0.2 0.1 0.9"/>
    <body pos="0.3 0 0.5">
      <joint type="hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03"/>
      <site name="s3" pos="0.3 0 0.05"/>
    </body>
  </worldbody>
  <tendon><spatial name="rope"><site site="s0"/><site site="s1"/><site site="s2"/><site site="s3"/></spatial></tendon>
  <actuator><position tendon="rope" kp="30" gear="2"/><motor tendon="rope"/></actuator>
</mujoco>
"""


def test_they_act_like_mujocos() -> None:
    mj = mujoco.MjModel.from_xml_string(WINCH)
    data = mujoco.MjData(mj)
    data.qpos[:], data.ctrl[:] = 0.4, (0.8, -2.0)
    mujoco.mj_forward(mj, data)
    sim = Simulation(mj, num_worlds=1, backend="host", dtype="float64")
    sim.set_state(qpos=data.qpos[None], ctrl=data.ctrl[None])
    sim.forward()
    np.testing.assert_allclose(sim.field("actuator_length")[0], data.actuator_length, rtol=1e-12)
    np.testing.assert_allclose(sim.field("qfrc_actuator")[0], data.qfrc_actuator, rtol=1e-12)
