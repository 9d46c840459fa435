"""Corners of a face of a mesh are off its plane by rounding, since MuJoCo holds them in single precision.

All of them touch where the face does, also in double precision. MuJoCo takes the face of the triangle that touches.
"""

from __future__ import annotations

import jax
import mujoco
import numpy as np
import pytest

from simengine import Simulation

STATES = 400
RIM_IN_A_FACE = """
<mujoco>
  <option ccd_tolerance="1e-12" ccd_iterations="500"/>
  <asset><mesh name="faceted" builtin="supersphere" params="8 0.3 0.2" scale="0.13 0.1 0.1"/></asset>
  <worldbody>
    <body><freejoint/><geom type="cylinder" size="0.1 0.06"/></body>
    <body><freejoint/><geom type="mesh" mesh="faceted"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("backend", ["host", pytest.param("jax", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("dtype", "most"), [("float64", 0), ("float32", STATES // 100)])
def test_contacts_are_mujocos(backend: str, dtype: str, most: int) -> None:
    mj = mujoco.MjModel.from_xml_string(RIM_IN_A_FACE)
    data, rng = mujoco.MjData(mj), np.random.default_rng(0)
    qpos = np.tile(mj.qpos0, (STATES, 1))
    qpos[:, 3:7], qpos[:, 10:14] = rng.normal(size=(2, STATES, 4))
    qpos[:, 7:10] = rng.normal(size=(STATES, 3))
    qpos[:, 7:10] *= rng.uniform(0.08, 0.2, (STATES, 1)) / np.linalg.norm(qpos[:, 7:10], axis=1, keepdims=True)
    for part in (slice(3, 7), slice(10, 14)):
        qpos[:, part] /= np.linalg.norm(qpos[:, part], axis=1, keepdims=True)
    with jax.enable_x64(True), Simulation(mj, num_worlds=STATES, backend=backend, dtype=dtype) as sim:
        sim.set_state(qpos=qpos)
        sim.forward()
        ours = [np.asarray(sim.contacts(world).dist) for world in range(STATES)]
    different = 0
    for state, found in zip(qpos, ours, strict=True):
        data.qpos[:] = state
        mujoco.mj_forward(mj, data)
        theirs = np.sort(data.contact.dist)  # rounding swaps the ends of an edge
        different += len(found) != len(theirs) or abs(np.sort(found) - theirs).max(initial=0.0) > 1e-4
    assert different <= most
