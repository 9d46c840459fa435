"""Geoms and sites whose frame MuJoCo identifies with a frame of their body have MuJoCo's poses."""

from __future__ import annotations

import mujoco
import numpy as np

from simengine.model import load_table

NEARLY = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body pos="0.3 0 0.5" quat="0.9 0.1 -0.2 0.3">
      <freejoint/>
      <inertial pos="0.01 0.02 0.03" quat="0.8 0.1 0.5 0.2" mass="1" diaginertia="0.03 0.02 0.01"/>
      <geom type="box" size="0.1 0.2 0.3" euler="3e-7 0 0"/>
      <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0" euler="0 4e-7 0"/>
      <geom type="box" size="0.1 0.2 0.3" pos="0.01 0.02 0.0300001" quat="0.8 0.1 0.5 0.2000003"/>
      <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0" quat="0.8 0.1 0.5 0.2000003"/>
      <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0" euler="0.1 0.2 0.3"/>
      <site pos="3e-7 0 0"/>
      <site pos="0.2 0 0" euler="0 0 3e-7"/>
    </body>
    <body>
      <freejoint/>
      <inertial pos="2e-7 0 0" mass="1" diaginertia="0.03 0.02 0.01"/>
    </body>
  </worldbody>
</mujoco>
"""


def test_frames_stand_where_mujocos_kinematics_puts_them() -> None:
    mj = mujoco.MjModel.from_xml_string(NEARLY)
    marks = {int(mark) for marks in (mj.geom_sameframe, mj.site_sameframe, mj.body_sameframe) for mark in marks}
    assert marks == {int(mark) for mark in mujoco.mjtSameFrame.__members__.values()}
    model, data = load_table(mj), mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, data)
    everything = np.arange(mj.nbody)
    for bodies, pos, quat, xpos, xmat in (
        (mj.geom_bodyid, model.geom_pos, model.geom_quat, data.geom_xpos, data.geom_xmat),
        (mj.site_bodyid, model.site_pos, model.site_quat, data.site_xpos, data.site_xmat),
        (everything, model.body_ipos, model.body_iquat, data.xipos, data.ximat),
    ):
        for i, body in enumerate(bodies):
            frame, turn = data.xmat[body].reshape(3, 3), np.zeros(9)
            mujoco.mju_quat2Mat(turn, quat[i])
            np.testing.assert_allclose(data.xpos[body] + frame @ pos[i], xpos[i], atol=1e-14)
            np.testing.assert_allclose(frame @ turn.reshape(3, 3), xmat[i].reshape(3, 3), atol=1e-14)
