"""All rows of a constraint are of one island: also rows that move nothing, and rows that touch different trees.

Sweeps that stop early tell, since the order in which they visit rows depends on the number of rows of an island.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model

BODIES = {
    # across slides, a weld has rows of zeros
    "rows of zeros": """
      <geom type="plane" size="5 5 1"/>
      <body name="a" pos="0 0 0.05"><joint type="slide" axis="0 0 1" frictionloss="1"/><joint axis="1 0.2 0"/>
        <geom type="capsule" size="0.1 0.2" euler="0 80 0" pos="0.1 0 0"/>
        <body name="b"><joint type="slide" axis="0.2 0 1" armature="1"/><geom size="0.1" pos="0.3 0 0"/></body></body>
      <body pos="2 0 0.05"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>""",
    # one row of the connection touches one tree, and another the other
    "rows of different trees": """
      <body name="a"><joint type="slide" axis="1 0 0" frictionloss="0.3"/><geom size="0.1"/></body>
      <body name="b" pos="0 0 1"><joint type="slide" axis="0 1 0" frictionloss="0.2"/><geom size="0.1"/></body>
      <geom type="plane" size="5 5 1" pos="0 9 0"/>
      <body pos="0 9 0.09"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>""",
}


def model(name: str, cone: str, noslip: int) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="degree"/><option solver="PGS" cone="{cone}" iterations="3" tolerance="0" '
        f'noslip_iterations="{noslip}" noslip_tolerance="0"/><worldbody>{BODIES[name]}</worldbody>'
        '<equality><weld body1="a" body2="b"/></equality></mujoco>'
    )


@pytest.mark.parametrize(
    "backend",
    [
        "host",
        pytest.param("jax", marks=pytest.mark.slow),
        pytest.param("cuda", marks=pytest.mark.gpu),
    ],
)
@pytest.mark.parametrize("noslip", [0, 2])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("name", BODIES)
def test_sweeps_that_stop_early_end_where_mujocos_do(name: str, cone: str, noslip: int, backend: str) -> None:
    mj = model(name, cone, noslip)
    data, rng = mujoco.MjData(mj), np.random.default_rng(0)
    with Simulation(load_model(mj), 8, backend=backend, dtype="float64") as sim:
        qpos = mj.qpos0 + rng.uniform(-0.01, 0.01, (8, mj.nq))
        qvel = rng.uniform(-1, 1, (8, mj.nv))
        sim.set_state(qpos=qpos, qvel=qvel)
        sim.forward()
        found = sim.groups[0].to_host(sim.qacc)
        for world in range(8):
            mujoco.mj_resetData(mj, data)
            data.qpos[:], data.qvel[:] = qpos[world], qvel[world]
            mujoco.mj_forward(mj, data)
            assert data.nefc > 8
            np.testing.assert_allclose(found[world], data.qacc, rtol=1e-8, atol=1e-7)
