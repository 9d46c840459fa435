"""Convex cores that are apart stay apart in float32, also where the search's tetrahedra are thin."""

from __future__ import annotations

import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.check.states import as_numpy

HILLS = "0 0.5 0.1 0.3 0.7 0.1 0 0.5 0.6 0.7 1 0.4 0.8 0.5 0.2 0 0.5 0 0.5 0.5 0.5 0.7 0.3 0.6 0 0.5 0 0.8 1 0.9 0.3"
FIELD = f"""
<mujoco>
  <asset><hfield name="hills" nrow="6" ncol="6" size="1 1 0.3 0.2" elevation="{HILLS} 0.5 0.5 0.4 0.8 0.2"/></asset>
  <worldbody>
    <geom type="hfield" hfield="hills" margin="0.05"/>
    <body><freejoint/><geom type="cylinder" size="0.1 0.08"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("backend", ["host", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_normals_of_near_cylinders_in_single_precision_are_those_in_double(backend: str) -> None:
    """Rounding once put the origin into a thin tetrahedron of cores that are apart, and the normal was off by 0.2."""
    worlds, rng, found = 4000, np.random.default_rng(0), {}
    qpos = np.concatenate((rng.uniform(-0.7, 0.7, (worlds, 2)), rng.uniform(0.1, 0.4, (worlds, 1))), axis=1)
    qpos = np.concatenate((qpos, rng.normal(size=(worlds, 4))), axis=1)
    qpos[:, 3:] /= np.linalg.norm(qpos[:, 3:], axis=1, keepdims=True)
    qpos = qpos.astype(np.float32).astype(np.float64)
    for dtype in ("float64", "float32"):
        with Simulation(load_model(FIELD), worlds, backend=backend, dtype=dtype) as sim:
            sim.set_state(qpos=qpos)
            sim.forward()
            each = [sim.contacts(world) for world in range(worlds)]
            found[dtype] = [(as_numpy(c.dist), as_numpy(c.frame).reshape(-1, 9)[:, :3]) for c in each]
    wrong, compared = [], 0
    for world, ((dist, normal), (dist32, normal32)) in enumerate(zip(found["float64"], found["float32"], strict=True)):
        if len(dist) != len(dist32):
            continue
        apart = (dist > 1e-3) & (dist32 > 1e-3)
        compared += int(apart.sum())
        off = np.abs(dist - dist32) > 2e-5
        turned = np.abs(normal - normal32).max(axis=1, initial=0.0) > 0.05
        wrong += [(world, k) for k in np.flatnonzero(apart & off & turned)]
    assert compared > 3000
    assert not wrong, wrong
