"""Capsules of a planar mechanism, whose axes cross: the normal is across both, on the side that MuJoCo chooses."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model

PLANAR = """
<mujoco><worldbody>
  <geom type="capsule" size="0.02 1" euler="0 90 0"/>
  <body><joint type="slide" axis="1 0 0"/><joint axis="0 1 0"/><geom type="capsule" size="0.05 0.3"/></body>
</worldbody></mujoco>
"""


@pytest.mark.parametrize(
    ("backend", "dtype"),
    [
        *[("host", "float32"), ("host", "float64"), ("jax", "float32")],
        pytest.param("jax", "float64", marks=pytest.mark.slow),
        *(pytest.param("cuda", dtype, marks=pytest.mark.gpu) for dtype in ("float32", "float64")),
    ],
)
def test_rounding_does_not_choose_the_side_where_axes_are_almost_parallel(backend: str, dtype: str) -> None:
    mj, rng = mujoco.MjModel.from_xml_string(PLANAR), np.random.default_rng(0)
    data, angle = mujoco.MjData(mj), rng.uniform(0.002, 0.2, 64) * rng.choice((-1, 1), 64)
    qpos = np.column_stack([rng.uniform(-0.5, 0.5, 64), np.pi / 2 + angle]).astype(np.float32)
    with Simulation(load_model(mj), 64, backend=backend, dtype=dtype) as sim:
        sim.set_state(qpos=qpos)
        sim.forward()
        for world in range(64):
            data.qpos[:] = qpos[world]
            mujoco.mj_forward(mj, data)
            frame = sim.groups[0].to_host(sim.contacts(world).frame).reshape(-1, 9)
            assert len(frame) == data.ncon == 1
            assert np.abs(frame[0, :3] - data.contact.frame[0, :3]).max() < 1e-3, (world, qpos[world])
