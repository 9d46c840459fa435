"""Mocap bodies that a controller moves from step to step, and keyframes as starting points."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation

PUSHED = """
<mujoco model="pushed">
  <option timestep="0.005" tolerance="1e-12"/>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="hand" mocap="true" pos="-0.3 0 0.1"><geom size="0.1"/></body>
    <body name="wall" mocap="true" pos="0.6 0 0.1" quat="1 0 1 0"><geom type="capsule" size="0.05 0.3"/></body>
    <body name="ball" pos="0 0 0.1"><freejoint/><geom size="0.1"/></body>
    <body name="gate" pos="0.3 0.3 0.5"><joint name="gate" type="hinge" axis="0 0 1" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.03"/></body>
  </worldbody>
  <actuator><motor joint="gate"/></actuator>
  <keyframe>
    <key name="above" time="0.25" qpos="0 0 1 1 0 0 0 0.4" qvel="0 0 -1 0 0 0 2" ctrl="0.3" mpos="0 1 0 0 2 0"
         mquat="0 1 0 0 1 0 0 0"/>
    <key qpos="0.5 0 0.1 1 0 0 0 0"/>
  </keyframe>
</mujoco>
"""
SET_BY_KEY = ("qpos", "qvel", "ctrl", "mocap_pos", "mocap_quat")


@pytest.mark.parametrize("backend", ["host", "jax"])
def test_moving_mocap_bodies_push_as_in_mujoco(backend: str) -> None:
    """Two worlds whose hands move differently, 60 steps; hand and floor, which nothing moves, do not touch."""
    mj = mujoco.MjModel.from_xml_string(PUSHED)
    sim = Simulation(mj, num_worlds=2, backend=backend, dtype="float32")
    datas = [mujoco.MjData(mj), mujoco.MjData(mj)]
    rows = 0
    for step in range(60):
        hands = [[-0.3 + 0.006 * step, 0.02 * world, 0.09] for world in range(2)]
        turned = [[1.0, 0.01 * step, 0, 1 - world] for world in range(2)]
        pos, quat = np.array(sim.field("mocap_pos")), np.array(sim.field("mocap_quat"))
        pos[:, 0], quat[:, 1] = hands, turned
        sim.set_state(mocap_pos=pos, mocap_quat=quat)
        sim.step()
        for world, data in enumerate(datas):
            data.mocap_pos[0], data.mocap_quat[1] = hands[world], turned[world]
            mujoco.mj_step(mj, data)
            rows = max(rows, data.nefc)
    assert rows >= 8, "the hand and the floor hold the ball"
    np.testing.assert_allclose(np.asarray(sim.qpos), [d.qpos for d in datas], atol=2e-4)
    assert datas[0].qpos[0] > 0.1


@pytest.mark.parametrize("backend", ["host", "jax"])
def test_reset_to_a_keyframe_sets_what_mujoco_sets(backend: str) -> None:
    mj = mujoco.MjModel.from_xml_string(PUSHED)
    sim = Simulation(mj, num_worlds=3, backend=backend, dtype="float64" if backend == "host" else "float32")
    sim.set_state(qfrc_applied=np.ones(mj.nv))
    steps = 3 if backend == "host" else 0  # JAX would compile long for it
    for _ in range(steps):
        sim.step()
    sim.reset([1], keyframe="above")
    sim.reset([2], keyframe=1)
    for world, number in ((1, 0), (2, 1)):
        data = mujoco.MjData(mj)
        mujoco.mj_resetDataKeyframe(mj, data, number)
        for name in SET_BY_KEY:
            np.testing.assert_allclose(np.asarray(sim.field(name))[world], getattr(data, name), atol=1e-6)
        assert sim.time[world] == data.time
        assert not np.asarray(sim.field("qfrc_applied"))[world].any()
    assert sim.time[0] == pytest.approx(steps * 0.005)
    sim.reset()
    np.testing.assert_allclose(np.asarray(sim.field("mocap_pos"))[1], mujoco.MjData(mj).mocap_pos, atol=1e-7)


@pytest.mark.parametrize("key", ["below", "", 2, -1, 1.0, True])
def test_a_keyframe_that_is_not_there_is_named(key: object) -> None:
    sim = Simulation(PUSHED, backend="host")
    with pytest.raises(ValueError, match=r"model 'pushed' has no keyframe .*; it has numbers 0 to 1 and names 'above'"):
        sim.reset(keyframe=key)
