"""Joints that have turned far have the right orientations: many times, or by more than half a turn in one step."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.check.states import as_numpy

WHEELS = """
<mujoco><worldbody>
  <body><joint axis="0 0 1"/><geom size="0.1" contype="0"/></body>
  <body pos="1 0 0"><joint axis="1 2 0"/><geom size="0.1" contype="0" conaffinity="0"/></body>
</worldbody></mujoco>"""
TOLERANCE = {"float64": {1e6: 1e-13, 1e9: 1e-12}, "float32": {1e6: 6e-6, 1e9: 1e-5}}
"""Largest error of a quaternion by precision, for angles up to some number of radians."""


JAX_IN_SINGLE = pytest.param("jax", "float32", marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("backend", "dtype"),
    [
        *[("host", "float64"), ("host", "float32"), ("jax", "float64"), JAX_IN_SINGLE],
        *(pytest.param("cuda", dtype, marks=pytest.mark.gpu) for dtype in TOLERANCE),
    ],
)
def test_orientations_are_those_of_the_angles(backend: str, dtype: str) -> None:
    rng, worlds = np.random.default_rng(0), 64
    for most, tolerance in TOLERANCE[dtype].items():
        angles = (most ** rng.uniform(0.0, 1.0, (worlds, 2))).astype(np.float32).astype(np.float64)
        with Simulation(load_model(WHEELS), worlds, backend=backend, dtype=dtype) as sim:
            sim.set_state(qpos=angles)
            sim.forward()
            found = as_numpy(sim.field("xquat"))[:, 1:]
        for wheel, axis in enumerate(((0.0, 0.0, 1.0), (0.2**0.5, 0.8**0.5, 0.0))):
            half = 0.5 * angles[:, wheel, None]
            wanted = np.hstack((np.cos(half), np.sin(half) * axis))
            assert np.abs(found[:, wheel] - wanted).max() < tolerance, (most, wheel)


SPINNING = """
<mujoco><option integrator="RK4" timestep="0.02" gravity="0 0 0"/><worldbody>
  <body><joint type="ball"/><geom type="box" size="0.1 0.2 0.3" contype="0"/></body>
  <body pos="2 0 0"><freejoint/><geom type="box" size="0.3 0.1 0.2" contype="0" conaffinity="0"/></body>
</worldbody></mujoco>"""
"""Bodies that turn by up to a turn and a quarter in a step."""


@pytest.mark.parametrize("backend", ["host", "jax", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_runge_kutta_turns_by_more_than_half_a_turn_as_mujoco(backend: str) -> None:
    model, worlds = load_model(SPINNING), 32
    axes = np.random.default_rng(0).normal(size=(worlds, model.nv))
    for first in (0, 6):
        axes[:, first : first + 3] /= np.linalg.norm(axes[:, first : first + 3], axis=1, keepdims=True)
    qvel = axes * np.linspace(1.0, 400.0, worlds)[:, None]
    with Simulation(model, worlds, backend=backend, dtype="float64") as sim:
        sim.set_state(qvel=qvel)
        sim.step()
        found = as_numpy(sim.qpos)
    for world, velocity in enumerate(qvel):
        data = mujoco.MjData(model.mj)
        data.qvel[:] = velocity
        mujoco.mj_step(model.mj, data)
        np.testing.assert_allclose(found[world], data.qpos, rtol=0, atol=1e-11)
