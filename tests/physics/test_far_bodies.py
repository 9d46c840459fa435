"""Small bodies far from the centre of mass of their tree: rounding must not destroy their inertia."""

from __future__ import annotations

import mujoco
import numpy as np

from simengine import Simulation, load_model
from tests.models import compile_model

ARM = """
<mujoco model="far_fingers">
  <option gravity="0 0 0"/>
  <worldbody>
    <body>
      <joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.7 0 0" size="0.06"/>
      <body pos="0.75 0 0">
        <joint axis="0 0 1"/>
        <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.04"/>
        <body pos="0.53 0 0">
          <joint axis="1 0 0"/><joint axis="0 1 1"/>
          <geom size="0.02" pos="0.004 0.002 0"/>
          <body pos="0.03 0 0"><joint axis="0 1 0"/><geom size="0.012" pos="0.008 0 0"/></body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def states(mj: mujoco.MjModel) -> np.ndarray:
    """Coordinates (8, nq) that float32 holds."""
    return np.random.default_rng(0).normal(size=(8, mj.nq)).astype(np.float32).astype(np.float64)


def test_accelerations_are_exact_in_float32() -> None:
    mj = mujoco.MjModel.from_xml_string(ARM)
    qpos, data = states(mj), mujoco.MjData(mj)
    push = np.array([1.0, -0.1, 1e-4, -1e-4, 1e-5], dtype=np.float32)  # as strong as each joint can feel
    sim = Simulation(mj, num_worlds=len(qpos), backend="host", dtype="float32")
    sim.set_state(qpos=qpos, qfrc_applied=np.tile(push, (len(qpos), 1)))
    sim.forward()
    for ours, q in zip(np.asarray(sim.field("qacc_smooth")), qpos, strict=True):
        data.qpos[:], data.qfrc_applied[:] = q, push
        mujoco.mj_forward(mj, data)
        np.testing.assert_allclose(ours, data.qacc_smooth, rtol=0, atol=2e-5 * np.abs(data.qacc_smooth).max())


def test_compact_models_keep_to_the_lean_kernels() -> None:
    assert load_model(ARM).table.general_smooth
    for name in ("ant", "half_cheetah", "hopper", "walker2d", "humanoid", "swimmer"):
        assert not load_model(compile_model(name)).table.general_smooth, name
