"""Meshes of which an edge lies on a face have MuJoCo's contacts also where several faces could hold an edge."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model

LUMP = (
    "0.0676 0.0162 0.0571 -0.0185 -0.0202 -0.0285 0.1023 0.1005 0.0648 -0.1018 0.0165 0.0353 0.0053 0.0743 -0.0028 "
    "0.0496 -0.051 -0.0907 0.0481 -0.0891 -0.0195 -0.0208 -0.0865 -0.0484 -0.0025 -0.0324 0.0565"
)
LUMPS = f"""
<mujoco><asset><mesh name="lump" vertex="{LUMP}"/></asset><worldbody>
  <geom type="mesh" mesh="lump" margin="0.1"/>
  <body><freejoint/><geom type="mesh" mesh="lump" margin="0.1"/></body>
</worldbody></mujoco>"""
POSES = np.array(
    [
        (0.18, -0.093, 0.072, 0.06, -2.62, -1.04, 0.54),
        (-0.139, -0.141, 0.089, -1.41, -0.78, -1.28, 0.79),
        (-0.035, -0.113, 0.125, -1.14, -0.08, -2.02, 0.92),
        (0.135, -0.099, 0.072, 0.09, 0.31, 0.87, 1.96),
        (-0.12, 0.028, 0.157, -0.15, 0.78, 0.11, -1.36),
        (-0.067, 0.001, -0.14, -0.87, -0.07, -0.59, 1.05),
        (-0.102, -0.011, 0.157, 0.06, 1.16, 0.71, 0.08),
        (0.005, -0.193, 0.013, -0.66, -0.34, -0.75, 1.59),
        (-0.149, 0.141, -0.019, 0.63, -0.38, 0.29, -0.31),
    ]
)
"""A corner touches an edge; edges at the corner lie on both faces at that edge, or on other faces first."""
TOLERANCE = {"float64": 1e-8, "float32": 2e-5}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("backend", ["host", pytest.param("jax", marks=pytest.mark.slow)])
def test_the_first_face_that_holds_an_edge_decides(backend: str, dtype: str) -> None:
    mj = mujoco.MjModel.from_xml_string(LUMPS)
    mj.opt.ccd_tolerance, mj.opt.ccd_iterations = 1e-12, 500
    data = mujoco.MjData(mj)
    with Simulation(load_model(LUMPS), len(POSES), backend=backend, dtype=dtype) as sim:
        sim.set_state(qpos=POSES)
        sim.forward()
        for world, qpos in enumerate(POSES):
            data.qpos[:] = qpos
            mujoco.mj_forward(mj, data)
            found = sim.contacts(world)
            assert len(found.dist) == data.ncon == 2, world
            # MuJoCo may begin with either end of an edge
            order = np.argsort(np.asarray(found.dist)), np.argsort(data.contact.dist)
            for name in ("dist", "pos", "frame"):
                ours, theirs = np.asarray(getattr(found, name))[order[0]], getattr(data.contact, name)[order[1]]
                assert np.abs(ours.reshape(theirs.shape) - theirs).max() < TOLERANCE[dtype], (name, world)
