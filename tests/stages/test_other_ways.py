"""Smooth shapes deep in each other have several ways out that are nearly as short; the shortest counts."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model

SHAPES = {
    "ellipsoid": 'type="ellipsoid" size="0.11 0.14 0.15"',
    "thin": 'type="ellipsoid" size="0.05 0.14 0.06"',
    "small": 'type="ellipsoid" size="0.08 0.12 0.11"',
    "cylinder": 'type="cylinder" size="0.1 0.13"',
    "capsule": 'type="capsule" size="0.1 0.1"',
}
PAIR = """
<mujoco><option ccd_tolerance="1e-12" ccd_iterations="2000"><flag multiccd="disable"/></option><worldbody>
  <geom {}/><body><freejoint/><geom {}/></body></worldbody></mujoco>"""
# Of the poses that are drawn, some in which the first way that the search finds is longer than another by over 1e-5 m.
LONGER = {
    ("ellipsoid", "cylinder"): (6216, 2424),
    ("ellipsoid", "ellipsoid"): (9574, 7716),
    ("small", "cylinder"): (11251, 6812),
    ("thin", "cylinder"): (837,),
    ("thin", "small"): (2979, 8201),
    ("ellipsoid", "capsule"): (6330,),
}


def drawn() -> np.ndarray:
    """Poses (n, 7) of shapes whose centres are near each other."""
    rng, number = np.random.default_rng(5), 12_000
    places, quats = rng.uniform(-0.05, 0.05, (number, 3)), rng.normal(size=(number, 4))
    return np.concatenate((places, quats / np.linalg.norm(quats, axis=1, keepdims=True)), axis=1)


@pytest.mark.parametrize(("dtype", "exact"), [("float64", 1e-8), ("float32", 1e-6)])
def test_the_shortest_way_out_of_smooth_shapes_is_found(dtype: str, exact: float) -> None:
    poses = drawn().astype(dtype).astype(np.float64)
    for (first, second), chosen in LONGER.items():
        mj = mujoco.MjModel.from_xml_string(PAIR.format(SHAPES[first], SHAPES[second]))
        data, qpos = mujoco.MjData(mj), poses[list(chosen)]
        sim = Simulation(load_model(mj), num_worlds=len(chosen), backend="host", dtype=dtype)
        sim.set_state(qpos=qpos)
        sim.forward()
        for world, pose in enumerate(qpos):
            data.qpos[:] = pose
            mujoco.mj_fwdPosition(mj, data)
            ours, theirs = sim.contacts(world), data.contact
            assert abs(float(ours.dist[0]) - theirs.dist[0]) < exact, (first, second, chosen[world])
            np.testing.assert_allclose(ours.frame[0][0], theirs.frame[0][:3], atol=2e-3)
