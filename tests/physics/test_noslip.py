"""Noslip sweeps after each solver, on pyramidal and elliptic cones of every condim, and on rows of several islands."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.backends import select
from simengine.check.states import STATE_ARRAYS, Sampler
from tests import models
from tests.gpu.compare import to_host
from tests.helpers.checkout import ROOT
from tests.helpers.cuda_on_host.backend import FiberBackend

SKID = """
<mujoco model="skid">
  <option timestep="0.005" solver="{solver}" cone="{cone}" iterations="300" tolerance="1e-15" noslip_iterations="12"
          noslip_tolerance="{tolerance}"/>
  <worldbody>
    <geom type="plane" size="5 5 1" euler="0 12 0"/>
    <body pos="0 0 0.1">
      <freejoint/>
      <geom type="box" size="0.1 0.15 0.1" condim="{condim}" friction="0.5 0.02 0.01"/>
    </body>
    <body pos="0 0 0.29">
      <freejoint/>
      <geom size="0.1" condim="{condim}"/>
      <body pos="0.1 0 0.1">
        <joint name="lid" axis="0 1 0" frictionloss="0.3" range="-5 5" limited="true"/>
        <geom size="0.06" type="capsule" fromto="0 0 0 0.2 0 0"/>
      </body>
    </body>
    <body pos="2 0 -0.34" euler="0 12 0">
      <freejoint/>
      <geom type="box" size="0.1 0.12 0.1" condim="{condim}"/>
    </body>
  </worldbody>
  <tendon><fixed frictionloss="0.2"><joint joint="lid" coef="1"/></fixed></tendon>
</mujoco>
"""
WORLDS = 10
CASES = [("Newton", "pyramidal", 4), ("CG", "elliptic", 3), ("PGS", "pyramidal", 6), ("Newton", "elliptic", 4)]


def theirs(mj: mujoco.MjModel, qvel: np.ndarray) -> list[mujoco.MjData]:
    """MuJoCo's evaluations of the model at rest with these velocities."""
    datas = []
    for velocity in qvel:
        data = mujoco.MjData(mj)
        data.qvel[:] = velocity
        mujoco.mj_forward(mj, data)
        datas.append(data)
    return datas


@pytest.mark.parametrize("tolerance", [0.0, 1e-3], ids=["all sweeps", "until it converges"])
@pytest.mark.parametrize(("solver", "cone", "condim"), CASES)
def test_accelerations_and_forces_are_those_of_mujoco(solver: str, cone: str, condim: int, tolerance: float) -> None:
    text = SKID.format(solver=solver, cone=cone, condim=condim, tolerance=tolerance)
    mj = mujoco.MjModel.from_xml_string(text)
    qvel = np.random.default_rng(5).normal(size=(WORLDS, mj.nv))
    wanted = theirs(mj, qvel)
    assert {data.nisland for data in wanted} == {2}
    mj.opt.noslip_iterations = 0
    assert np.abs(wanted[0].qacc - theirs(mj, qvel)[0].qacc).max() > 0.05
    for dtype, bound in (("float64", 1e-6), ("float32", 2e-3)):
        sim = Simulation(load_model(text), WORLDS, backend="host", dtype=dtype)
        sim.set_state(qvel=qvel)
        sim.forward()
        for name in ("qacc", "qfrc_constraint"):
            for world, data in enumerate(wanted):
                b = getattr(data, name)
                assert np.abs(np.asarray(sim.field(name))[world] - b).max() <= bound * max(1.0, np.abs(b).max()), name


def test_boxes_creep_less() -> None:
    """Without the sweeps the regularisation of friction lets a box slide down a slope slowly."""
    text = SKID.format(solver="Newton", cone="pyramidal", condim=3, tolerance=1e-6)
    speed = {}
    for iterations in (0, 12):
        sim = Simulation(text.replace('noslip_iterations="12"', f'noslip_iterations="{iterations}"'), 1, backend="host")
        sim.step(300)
        speed[iterations] = np.abs(np.asarray(sim.qvel)[0, -6:-3]).max()
    assert speed[12] < 0.1 * speed[0]


def test_single_precision_keeps_small_changes_of_large_forces() -> None:
    mj = mujoco.MjModel.from_xml_string(models.OWN["linkage"])
    mj.opt.tolerance, mj.opt.noslip_tolerance, mj.opt.noslip_iterations = 1e-15, 0, 20
    model = load_model(mj)
    states = list(Sampler(mj, 0).settled(60))
    results = []
    for dtype in ("float32", "float64"):
        sim = Simulation(model, len(states), backend="host", dtype=dtype)
        sim.set_state(**{name: np.array([getattr(state, name) for state in states]) for name in STATE_ARRAYS})
        sim.forward()
        results.append(np.array(sim.field("qacc"), float))
        forces = np.abs(sim.constraints(0).force)
        sim.close()
    assert forces.max() > 1000  # where a body at rest weighs 50 N
    error = np.abs(results[0] - results[1]).max(axis=1) / np.maximum(1, np.abs(results[1]).max(axis=1))
    assert error.max() < 2e-3, error  # the tolerance of solutions in `simengine check`


@pytest.mark.parametrize("backend", ["host", "kernels of a GPU", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_single_precision_tells_thin_friction_from_none(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rows of friction of two turns and a bent finger are nearly dependent, but not wholly."""
    if backend == "kernels of a GPU":
        backend = "cuda"
        monkeypatch.setitem(select._MAKERS, "cuda", FiberBackend)
    mj = mujoco.MjModel.from_xml_path(str(ROOT / "tests" / "corpus" / "thin_friction.xml"))
    mj.opt.noslip_tolerance = 0
    rng = np.random.default_rng(0)
    qpos, qvel = np.zeros((64, mj.nq)), rng.normal(scale=0.1, size=(64, mj.nv))
    qpos[:, 1] = rng.normal(size=64)
    qpos[:, 2:] = rng.normal((0.35, 0.58), 0.02, size=(64, 2))
    wanted = []
    for position, velocity in zip(qpos, qvel, strict=True):
        data = mujoco.MjData(mj)
        data.qpos[:], data.qvel[:] = position, velocity
        mujoco.mj_forward(mj, data)
        wanted.append(np.array(data.qacc))
    with Simulation(load_model(mj), len(qpos), backend=backend, dtype="float32") as sim:
        sim.set_state(qpos=qpos, qvel=qvel)
        sim.forward()
        error = np.abs(to_host(sim.qacc) - np.array(wanted)).max(axis=1) / np.abs(wanted).max(axis=1)
    assert error.max() < 1e-3, error
