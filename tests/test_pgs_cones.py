"""PGS on elliptic cones of every condim gives MuJoCo's forces, also where MuJoCo's search for friction ends early."""

from __future__ import annotations

from copy import copy

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model

TUMBLING = """
<mujoco>
  <option solver="PGS" cone="elliptic" iterations="{iterations}" tolerance="1e-12" impratio="{impratio}"/>
  <worldbody>
    <geom type="plane" size="5 5 1" euler="0 8 0"/>
    <body pos="0 0 0.09">
      <freejoint/>
      <geom type="box" size="0.1 0.15 0.1" condim="4" friction="0.9 {torsion} 0.001" density="3000"/>
    </body>
    <body pos="0.5 0 0.14">
      <freejoint/>
      <geom type="ellipsoid" size="0.2 0.1 0.15" condim="4" friction="0.3 {torsion} 0.001"/>
    </body>
  </worldbody>
</mujoco>
"""
WORLDS = 8
LIGHT, SMALL = (5e-3, 1.0), (2e-4, 30.0)
"""Coefficients of torsional friction, and `impratio`: in the second, MuJoCo takes scaled matrices for singular."""


def velocities(nv: int) -> np.ndarray:
    return np.random.default_rng(2).normal(size=(WORLDS, nv))


def accelerations(mj: mujoco.MjModel) -> np.ndarray:
    data, found = mujoco.MjData(mj), []
    for qvel in velocities(mj.nv):
        mujoco.mj_resetData(mj, data)
        data.qvel[:] = qvel
        mujoco.mj_forward(mj, data)
        found.append(data.qacc.copy())
    return np.array(found)


@pytest.mark.parametrize(("torsion", "impratio"), [LIGHT, SMALL])
@pytest.mark.parametrize(("backend", "dtype"), [("host", "float64"), ("host", "float32"), ("jax", "float64")])
def test_forces_are_those_of_mujocos_iteration(backend: str, dtype: str, torsion: float, impratio: float) -> None:
    text = TUMBLING.format(iterations=30, torsion=torsion, impratio=impratio)
    mj = mujoco.MjModel.from_xml_string(text)
    wanted = accelerations(mj)
    newton = copy(mj)
    newton.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    scale = np.maximum(1.0, np.abs(wanted).max(axis=1))
    assert (np.abs(accelerations(newton) - wanted).max(axis=1) / scale).max() > 0.05, "the optimum is elsewhere"
    with Simulation(load_model(text), WORLDS, backend=backend, dtype=dtype) as sim:
        sim.set_state(qvel=velocities(mj.nv))
        sim.forward()
        error = np.abs(np.asarray(sim.qacc) - wanted).max(axis=1) / scale
    assert error.max() < (1e-7 if dtype == "float64" else 2e-3), error
