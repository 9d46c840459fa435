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
      <geom type="box" size="0.1 0.15 0.1" density="3000" condim="{condim}" friction="{slide} {torsion} {roll}"
        priority="1" contype="0"/>
    </body>
    <body pos="0.5 0 0.14">
      <freejoint/>
      <geom type="ellipsoid" size="0.2 0.1 0.15" condim="{condim}" priority="1" friction="0.3 {torsion} {roll}"
        contype="0"/>
    </body>
  </worldbody>
</mujoco>
"""
WORLDS = 8
CASES = {
    "3": {"condim": 3, "slide": 0.006, "torsion": 5e-3, "roll": 1e-3, "impratio": 1.0},
    "4": {"condim": 4, "slide": 0.05, "torsion": 5e-3, "roll": 1e-3, "impratio": 1.0},
    "4, light": {"condim": 4, "slide": 0.006, "torsion": 2e-4, "roll": 1e-5, "impratio": 30.0},
    "6": {"condim": 6, "slide": 0.001, "torsion": 5e-3, "roll": 1e-3, "impratio": 1.0},
}
"""By condim: coefficients of friction so small that MuJoCo takes scaled matrices for singular, or ends its search."""


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


@pytest.mark.parametrize(
    ("backend", "dtype", "case"),
    [
        *((backend, dtype, case) for backend, dtype in (("host", "float64"), ("host", "float32")) for case in CASES),
        *(pytest.param("jax", "float64", case, marks=pytest.mark.slow) for case in CASES),
    ],
)
def test_forces_are_those_of_mujocos_iteration(backend: str, dtype: str, case: str) -> None:
    text = TUMBLING.format(iterations=30, **CASES[case])
    mj = mujoco.MjModel.from_xml_string(text)
    wanted = accelerations(mj)
    newton = copy(mj)
    newton.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    scale = np.maximum(1.0, np.abs(wanted).max(axis=1))
    assert (np.abs(accelerations(newton) - wanted).max(axis=1) / scale).max() > 2e-3, "the optimum is elsewhere"
    with Simulation(load_model(text), WORLDS, backend=backend, dtype=dtype) as sim:
        sim.set_state(qvel=velocities(mj.nv))
        sim.forward()
        error = np.abs(np.asarray(sim.qacc) - wanted).max(axis=1) / scale
    assert error.max() < (1e-7 if dtype == "float64" else 1e-3), error
