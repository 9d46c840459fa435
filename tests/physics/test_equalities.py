"""Equality constraints that are switched on and off in each world, and flags that leave rows out."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model

TIED = """
<mujoco model="tied">
  <option timestep="0.004" tolerance="1e-12" ls_tolerance="1e-12"/>
  <worldbody>
    <body name="post" pos="0 0.5 0"><geom size="0.05"/></body>
    <body name="one" pos="0 0 1"><freejoint/><geom type="box" size="0.1 0.05 0.08" contype="0" conaffinity="0"/></body>
    <body name="two" pos="0.4 0 1">
      <joint name="swing" type="hinge" axis="0 1 0" frictionloss="0.05"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.04" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <equality>
    <connect body1="one" body2="two" anchor="0.2 0 0"/>
    <joint joint1="swing" polycoef="0.3 0 0 0 0" active="false"/>
    <connect body1="post" anchor="0 0 0"/>
  </equality>
</mujoco>
"""
CONNECT, HOLD, STILL = range(3)
ROWS = {(0, 0): 1, (1, 0): 4, (0, 1): 2, (1, 1): 5}
"""Rows by whether the connect and the joint's constraint are active: the friction loss has one, the third none."""


@pytest.mark.parametrize("backend", ["host", pytest.param("jax", marks=pytest.mark.slow)])
def test_worlds_differ_in_what_is_active(backend: str) -> None:
    """Four worlds with other equalities on, switched half way through 20 steps, against MuJoCo."""
    mj = mujoco.MjModel.from_xml_string(TIED)
    sim = Simulation(mj, num_worlds=4, backend=backend, dtype="float32")
    assert np.asarray(sim.field("eq_active")).tolist() == [[1, 0, 1]] * 4
    datas = [mujoco.MjData(mj) for _ in ROWS]
    for active in (np.array([(*on, 1) for on in ROWS]), np.array([(1 - a, 1 - b, 0) for a, b in ROWS])):
        sim.set_state(eq_active=active)
        for data, on in zip(datas, active, strict=True):
            data.eq_active[:] = on
        sim.forward()
        for world, on in enumerate(active.tolist()):
            rows = sim.constraints(world)
            assert rows.nefc == ROWS[on[CONNECT], on[HOLD]]
            loss = rows.type == mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF
            assert rows.id[loss].tolist() == [6]
            assert rows.frictionloss[loss].tolist() == pytest.approx([0.05])
            assert set(rows.id[~loss].tolist()) == {k for k in (CONNECT, HOLD) if on[k]}
        sim.step(10)
        for data in datas:
            mujoco.mj_step(mj, data, 10)
        np.testing.assert_allclose(np.asarray(sim.qpos), [d.qpos for d in datas], atol=1e-4)
    sim.reset([1, 2])
    assert np.asarray(sim.field("eq_active"))[[1, 2]].tolist() == [[1, 0, 1]] * 2
    assert np.asarray(sim.field("eq_active"))[[0, 3]].tolist() == [[1, 1, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("flag", "rows"), [("mjDSBL_EQUALITY", 1), ("mjDSBL_FRICTIONLOSS", 3), ("mjDSBL_CONSTRAINT", 0)]
)
def test_a_flag_leaves_rows_out(flag: str, rows: int) -> None:
    mj = mujoco.MjModel.from_xml_string(TIED)
    mj.opt.disableflags = getattr(mujoco.mjtDisableBit, flag)
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    sim = Simulation(load_model(mj), num_worlds=1, backend="host", dtype="float64")
    sim.forward()
    assert sim.constraints(0).nefc == data.nefc == rows
    np.testing.assert_allclose(np.asarray(sim.qacc)[0], data.qacc, atol=1e-9)
