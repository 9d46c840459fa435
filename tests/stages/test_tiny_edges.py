"""Meshes of scans have edges of micrometres. The corners that touch are MuJoCo's also where others are that near."""

from __future__ import annotations

import jax
import mujoco
import numpy as np
import pytest

from simengine import Simulation

STATES, CORNERS = 300, 40
TINY = 2e-6  # [m]


def pebble(rng: np.random.Generator) -> str:
    """Vertices of a hull of 0.1 m, each of which is an edge of two micrometres."""
    ways = rng.normal(size=(CORNERS, 3))
    corners = 0.05 * ways / np.linalg.norm(ways, axis=1, keepdims=True)
    both = np.concatenate((corners, corners + TINY * rng.normal(size=corners.shape)))
    return " ".join(map(repr, both.ravel().tolist()))


@pytest.mark.parametrize("backend", ["host", pytest.param("jax", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("dtype", "most"), [("float64", 0), ("float32", STATES // 30)])
def test_as_many_contacts_as_in_mujoco(backend: str, dtype: str, most: int) -> None:
    rng = np.random.default_rng(0)
    mj = mujoco.MjModel.from_xml_string(f"""
<mujoco><asset><mesh name="pebble" vertex="{pebble(rng)}"/></asset>
  <worldbody><geom type="box" size="1 1 0.1" pos="0 0 -0.1"/>
    <body><freejoint/><geom type="mesh" mesh="pebble"/></body></worldbody></mujoco>""")
    data = mujoco.MjData(mj)
    qpos = np.tile(mj.qpos0, (STATES, 1))
    qpos[:, 2] = 0.04
    qpos[:, 3:] = rng.normal(size=(STATES, 4))
    qpos[:, 3:] /= np.linalg.norm(qpos[:, 3:], axis=1, keepdims=True)
    qpos = qpos.astype(np.float32).astype(np.float64)
    with jax.enable_x64(True), Simulation(mj, num_worlds=STATES, backend=backend, dtype=dtype) as sim:
        sim.set_state(qpos=qpos)
        sim.forward()
        ours = [len(sim.contacts(world).dist) for world in range(STATES)]
    theirs = []
    for state in qpos:
        data.qpos[:] = state
        mujoco.mj_forward(mj, data)
        theirs.append(data.ncon)
    assert {1, 2} <= set(theirs)
    assert np.count_nonzero(np.array(ours) != theirs) <= most
