"""An ellipsoid below an edge of a face touches the edge in one prism of a field, and the face in the next one."""

from __future__ import annotations

import numpy as np

from simengine import Simulation, load_model

HILLS = "2 2 3 6 3 0 1 1 8 8 1 4 9 8 0 7 4 10 5 2 4 9 0 6 5 7 10 9 8 2 9 2 9 3 4 7"
BELOW = f"""
<mujoco><asset><hfield name="hills" nrow="6" ncol="6" size="1 1 0.3 0.2" elevation="{HILLS}"/></asset><worldbody>
  <geom type="hfield" hfield="hills" pos="0.0137 -0.0071 -0.3" margin="0.046"/>
  <body><freejoint/><geom type="ellipsoid" size="0.12 0.1 0.11"/></body></worldbody></mujoco>"""
POSE = (-0.1986724, 0.0980729, -0.6509934, 0.8486313, -0.4314740, 0.0178377, -0.3055108)
# Some of the poses around it, in which steps of Newton's method in float32 lead to and fro across the edge.
CHOSEN = (31, 157, 240, 328, 790, 999, 1209, 1810, 1817, 2396, 2444, 2683, 3588, 3873, 4769, 5008, 5120, 5150, 6601)


def test_the_normal_at_an_edge_of_a_face_is_exact_in_float32() -> None:
    moves = np.random.default_rng(0).uniform(-2e-3, 2e-3, (8000, 7))
    poses = (np.array(POSE) + moves)[list(CHOSEN)].astype(np.float32)
    model = load_model(BELOW)
    sims = [Simulation(model, num_worlds=len(poses), backend="host", dtype=dtype) for dtype in ("float32", "float64")]
    for sim in sims:
        sim.set_state(qpos=poses)
        sim.forward()
    for world in range(len(poses)):
        rounded, exact = (sim.contacts(world) for sim in sims)
        assert len(rounded.dist) == len(exact.dist) == 2
        np.testing.assert_allclose(rounded.dist, exact.dist, atol=1e-6, err_msg=f"pose {CHOSEN[world]}")
        np.testing.assert_allclose(rounded.frame, exact.frame, atol=5e-4, err_msg=f"pose {CHOSEN[world]}")
