"""Contacts of boxes within their margin do not depend on how the whole scene is turned."""

from __future__ import annotations

import mujoco
import numpy as np

from simengine import Simulation, load_model
from simengine.check.boxes import SparseBoxes, separation

BOXES = """
<mujoco><worldbody>
  <body><freejoint/><geom type="box" size="0.08 0.11 0.14" margin="0.035"/></body>
  <body><freejoint/><geom type="box" size="0.07 0.08 0.06" margin="0.04"/></body>
</worldbody></mujoco>
"""
FIRST = [0.203395, 0.301116, 0.485717, 0.180765, 0.650888, 0.363309, -0.64162]
SECOND = [-0.174698, 0.313867, 0.475185, -0.312442, 0.472659, 0.813606, -0.130455]
"""Poses of boxes whose corners are 0.08 apart, and which an axis separates by 0.073 only; the margin is 0.075."""

WORLDS = 200


def turned() -> np.ndarray:
    """The scene turned by random rotations about the origin, (WORLDS, 14)."""
    found = np.zeros((WORLDS, 14))
    for world, turn in enumerate(np.random.default_rng(0).normal(size=(WORLDS, 4))):
        turn /= np.linalg.norm(turn)
        for k, pose in enumerate((FIRST, SECOND)):
            mujoco.mju_rotVecQuat(found[world, 7 * k : 7 * k + 3], np.array(pose[:3]), turn)
            mujoco.mju_mulQuat(found[world, 7 * k + 3 : 7 * k + 7], turn, np.array(pose[3:]))
    return found


def test_a_contact_in_the_margin_is_there_however_the_scene_is_turned() -> None:
    """Boxes along the axes of the world once lost it: they are farther apart than what the best axis of both says."""
    with Simulation(load_model(BOXES), WORLDS, backend="host", dtype="float64") as sim:
        sim.set_state(qpos=turned())
        sim.forward()
        assert {len(sim.contacts(world).dist) for world in range(WORLDS)} == {1}
        assert abs(float(sim.contacts(0).dist[0]) - 0.0727) < 1e-4


def test_the_check_leaves_out_what_mujocos_frame_decides() -> None:
    mj = mujoco.MjModel.from_xml_string(BOXES)
    data, boxes, numbers = mujoco.MjData(mj), SparseBoxes(mj), set()
    for qpos in turned():
        data.qpos[:] = qpos
        mujoco.mj_forward(mj, data)
        numbers.add(data.ncon)
        assert boxes.are_in(data)
    assert 0 in numbers, "MuJoCo's own list lacks it in some frames"
    data.qpos[7:10] += 0.1 * (data.qpos[:3] - data.qpos[7:10])
    mujoco.mj_forward(mj, data)
    assert 0 < separation(data, 0, 1, mj.geom_size) < 0.075
    assert mujoco.mj_geomDistance(mj, data, 0, 1, 1.0, np.zeros(6)) < 0.075
    assert not boxes.are_in(data)
