"""Edges of deep shapes that are almost parallel cross far from the points that a search ends with."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.backends import select
from simengine.check.solids import solids
from tests.helpers.cuda_on_host.backend import FiberBackend

HILLS = "8 1 3 10 1 5 4 10 1 8 6 3 4 4 2 6 7 7 9 7 2 8 6 10 1 8 1 9 2 7 1 1 0 5 5 5"
LYING = f"""
<mujoco><asset><hfield name="hills" nrow="6" ncol="6" size="1 1 0.3 0.2" elevation="{HILLS}"/></asset><worldbody>
  <geom type="hfield" hfield="hills"/>
  <body><freejoint/><geom type="cylinder" size="0.13 0.12"/></body></worldbody></mujoco>"""
# A cylinder 0.115 m deep in a prism, of which an edge crosses its side at an angle of two thirds of a degree.
POSE = (0.71898416, -0.10162438, 0.18987865, -0.45188784, 0.69271355, 0.07239548, 0.55740848)
WORLDS = 100


@pytest.mark.parametrize("backend", ["host", "cuda", pytest.param("jax", marks=pytest.mark.slow)])
def test_the_points_of_a_cylinder_along_an_edge_belong_to_both_shapes_in_float32(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in CUDA's kernels, which run on the host here."""
    monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
    moves = np.random.default_rng(0).uniform(-1, 1, (WORLDS, 7)) * ([2e-4] * 3 + [1e-4] * 4)
    poses = (np.array(POSE) + moves).astype(np.float32)
    mj = mujoco.MjModel.from_xml_string(LYING)
    data = mujoco.MjData(mj)
    with Simulation(load_model(mj), num_worlds=WORLDS, backend=backend, dtype="float32") as sim:
        sim.set_state(qpos=poses)
        sim.forward()
        for world in range(WORLDS):
            data.qpos[:] = poses[world]
            mujoco.mj_kinematics(mj, data)
            found = sim.contacts(world)
            dists, points, frames = (np.asarray(x, float) for x in (found.dist, found.pos, found.frame))
            assert len(dists) == 4
            for dist, pos, frame in zip(dists, points, frames.reshape(-1, 3, 3), strict=True):
                for geom, way in ((0, -0.5), (1, 0.5)):
                    end = pos + way * dist * frame[0]
                    assert any(solid.holds(end, 2e-6) for solid in solids(mj, data, geom, end)), (world, dist)


# Two equal cylinders that hinges turn, so that their sides are almost parallel and each holds the other's middle.
TURNED = """
<mujoco><worldbody>
  <body quat="3 0 2 -2"><joint axis="-0.7 3.2 0.6" pos="0.05 -0.1 0.07"/><geom type="cylinder" size="0.15 0.15"/></body>
  <body quat="3 0 2 -2"><joint axis="-0.7 3.2 0.6" pos="0.05 -0.1 0.07"/><geom type="cylinder" size="0.15 0.15"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("backend", "dtype"),
    [
        *(("host", dtype) for dtype in ("float64", "float32")),
        ("cuda", "float32"),
        pytest.param("cuda", "float64", marks=pytest.mark.slow),
        *(pytest.param("jax", dtype, marks=pytest.mark.slow) for dtype in ("float64", "float32")),
    ],
)
def test_sides_of_cylinders_touch_where_they_cross(backend: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo finds the same point after a long search. The points were off by up to 15 mm in float64."""
    monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
    first, apart = np.random.default_rng(0).uniform((-0.5, 0.01), (0.5, 0.1), (WORLDS, 2)).astype(np.float32).T
    angles = np.column_stack((first, first + apart))
    mj = mujoco.MjModel.from_xml_string(TURNED)
    mj.opt.ccd_iterations, mj.opt.ccd_tolerance = 1000, 1e-12
    data, off, outside = mujoco.MjData(mj), *((1e-4, 1e-8) if dtype == "float64" else (5e-3, 2e-6))
    compared = 0
    with Simulation(load_model(mj), num_worlds=WORLDS, backend=backend, dtype=dtype) as sim:
        sim.set_state(qpos=angles)
        sim.forward()
        for world in range(WORLDS):
            data.qpos[:] = angles[world]
            mujoco.mj_forward(mj, data)
            found = sim.contacts(world)
            dist, pos, normal = (np.asarray(x, float) for x in (found.dist[0], found.pos[0], found.frame.ravel()[:3]))
            for geom, way in ((0, -0.5), (1, 0.5)):
                end = pos + way * dist * normal
                assert any(solid.holds(end, outside) for solid in solids(mj, data, geom, end)), world
            as_deep = abs(data.contact.dist[0] - dist) < max(outside, 1e-6)
            assert as_deep or backend == "jax", "JAX may miss the shortest way out"
            # two opposite normals lead out on nearly equally short ways
            if as_deep and data.ncon == 1 and normal @ data.contact.frame[0, :3] > 0:
                np.testing.assert_allclose(pos, data.contact.pos[0], atol=off)
                compared += 1
    assert compared > WORLDS / 2
