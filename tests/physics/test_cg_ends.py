"""Conjugate gradients end where MuJoCo's end: also where a step decreases the cost by little."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from simengine import Simulation

ROLLERS = Path(__file__).parents[1] / "models" / "rollers.xml"
WORLDS, STEPS = 6, 40


def loose(tolerance: float) -> mujoco.MjModel:
    """Rolling bodies, solved to a tolerance."""
    mj = mujoco.MjModel.from_xml_path(str(ROLLERS))
    mj.opt.tolerance = tolerance
    return mj


def states(mj: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities of worlds some steps after random pushes."""
    rng, data, found = np.random.default_rng(3), mujoco.MjData(mj), []
    for _ in range(WORLDS):
        mujoco.mj_resetData(mj, data)
        data.qvel = rng.normal(size=mj.nv)
        mujoco.mj_step(mj, data, STEPS)
        found.append((data.qpos.copy(), data.qvel.copy()))
    return np.array([qpos for qpos, _ in found]), np.array([qvel for _, qvel in found])


def accelerations(backend: str, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations and iterations, from a cold start; JAX does not count iterations."""
    mj = loose(tolerance)
    mj.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_WARMSTART
    keep = ("qacc", "solver_niter") if backend == "host" else ("qacc",)
    sim = Simulation(mj, WORLDS, backend=backend, dtype="float64", keep=keep)
    qpos, qvel = states(loose(1e-8))
    sim.set_state(qpos=qpos, qvel=qvel)
    sim.forward()
    iterations = np.array(sim.field("solver_niter")) if backend == "host" else np.zeros(WORLDS)
    result = np.array(sim.field("qacc")), iterations
    sim.close()
    return result


def test_few_iterations_are_as_exact_as_mujocos() -> None:
    tolerance, qacc_of = 1e-4, {}
    qpos, qvel = states(loose(1e-8))
    ours, iterations = accelerations("host", tolerance)
    counted = []
    for given in (tolerance, 1e-14):
        mj = loose(given)
        mj.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_WARMSTART
        data = mujoco.MjData(mj)
        for world in range(WORLDS):
            data.qpos, data.qvel = qpos[world], qvel[world]
            mujoco.mj_forward(mj, data)
            qacc_of[given, world] = data.qacc.copy()
            if given == tolerance:
                counted.append(int(data.solver_niter.max()))
    exact = np.array([qacc_of[1e-14, world] for world in range(WORLDS)])
    theirs = np.array([qacc_of[tolerance, world] for world in range(WORLDS)])
    assert 0 < iterations.mean() < np.mean(counted) + 2
    assert np.abs(ours - exact).max() < 5 * np.abs(theirs - exact).max()


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [1e-3, 1e-5])
def test_jax_ends_at_the_same_point(tolerance: float) -> None:
    host, jax = accelerations("host", tolerance)[0], accelerations("jax", tolerance)[0]
    exact = accelerations("host", 1e-14)[0]
    assert np.abs(host - exact).max() > 1e-7 * np.abs(exact).max()  # the end is before the optimum
    np.testing.assert_allclose(jax, host, rtol=0, atol=1e-9 * np.abs(exact).max())
