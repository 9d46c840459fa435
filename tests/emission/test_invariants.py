"""Laws of physics that the host backend must obey, such as conservation laws, without a comparison with MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from tests.emission.worlds import BALL, FEATHER, ant, ant_start, host

BILLIARDS = """
<mujoco model="billiards">
  <option timestep="0.001" gravity="0 0 0"/>
  <worldbody>
    <body name="a"><freejoint/><geom size="0.1" density="500"/></body>
    <body name="b" pos="0.35 0.05 0"><freejoint/><geom size="0.15"/></body>
    <body name="c" pos="0.7 0.1 0.05"><freejoint/><geom type="capsule" size="0.1 0.2"/></body>
  </worldbody>
</mujoco>
"""

CHAIN = """
<mujoco model="chain">
  <option timestep="{timestep}" integrator="RK4"/>
  <default><geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.4" contype="0" conaffinity="0"/></default>
  <worldbody>
    <body pos="0 0 2"><joint axis="0 1 0"/><geom/>
      <body pos="0 0 -0.4"><joint axis="1 0.2 0"/><geom/>
        <body pos="0 0 -0.4"><joint axis="0 1 0.3"/><geom/></body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def momentum(mj: mujoco.MjModel, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
    """Linear momentum [kg m/s], and angular momentum about the world's origin [kg m^2/s], by MuJoCo's velocities."""
    data = mujoco.MjData(mj)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(mj, data)
    mujoco.mj_subtreeVel(mj, data)
    linear = mj.body_subtreemass[0] * data.subtree_linvel[0]
    return np.concatenate([linear, data.subtree_angmom[0] + np.cross(data.subtree_com[0], linear)])


def energy(mj: mujoco.MjModel, qpos: np.ndarray, qvel: np.ndarray) -> float:
    """Potential and kinetic energy [J]."""
    data = mujoco.MjData(mj)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(mj, data)
    mujoco.mj_energyPos(mj, data)
    mujoco.mj_energyVel(mj, data)
    return float(data.energy.sum())


def test_a_tumbling_body_keeps_its_momentum() -> None:
    model = load_model(FEATHER)
    sim = host(model, 1, dtype="float64")
    qvel = np.array([0.3, -0.2, 0.1, 2.0, 5.0, -1.0])
    sim.set_state(qvel=qvel)
    before = momentum(model.mj, model.qpos0, qvel)
    sim.step(500)
    after = momentum(model.mj, np.asarray(sim.qpos)[0], np.asarray(sim.qvel)[0])
    np.testing.assert_allclose(after, before, atol=1e-6)
    assert np.abs(np.asarray(sim.qvel)[0] - qvel).max() > 0.5


def test_colliding_bodies_keep_their_linear_momentum() -> None:
    model = load_model(BILLIARDS)
    sim = host(model, 1, dtype="float64")
    qvel = np.zeros(model.nv)
    qvel[:3], qvel[12:18] = [2.0, 0.2, 0.1], [-1.0, 0, 0, 1, 2, 3]
    sim.set_state(qvel=qvel)
    before = momentum(model.mj, model.qpos0, qvel)[:3]
    contacts = 0
    for _ in range(400):
        sim.step()
        contacts += sim.schedule.counts()["ncon"]
    assert contacts > 10
    np.testing.assert_allclose(
        momentum(model.mj, np.asarray(sim.qpos)[0], np.asarray(sim.qvel)[0])[:3], before, atol=1e-9
    )


def test_a_free_fall_is_a_parabola() -> None:
    sim = host(BALL, 1, dtype="float64")
    sim.set_state(qpos=[0, 100, 0], qvel=[1, 2, 3])
    sim.step(100)
    steps, h, g = 100, 0.004, 9.81
    height = 100 + 2 * steps * h - g * h * h * steps * (steps + 1) / 2  # semi-implicit Euler, exactly
    np.testing.assert_allclose(np.asarray(sim.qpos)[0, :2], [steps * h, height], rtol=1e-12)


def test_energy_of_a_frictionless_chain_has_the_order_of_runge_kutta() -> None:
    """The energy's error falls by about 2^4 or more when the step is halved."""
    errors = []
    for timestep in (0.01, 0.005, 0.0025):
        model = load_model(CHAIN.format(timestep=timestep))
        sim = host(model, 1, dtype="float64")
        start = np.array([1.2, -0.7, 0.9])
        sim.set_state(qpos=start)
        before = energy(model.mj, start, np.zeros(3))
        sim.step(round(1.0 / timestep))
        errors.append(abs(energy(model.mj, np.asarray(sim.qpos)[0], np.asarray(sim.qvel)[0]) - before))
    assert errors[0] < 0.05 * abs(before)
    assert errors[0] / errors[1] > 12
    assert errors[1] / errors[2] > 12


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_sphere_on_a_plane_stays(dtype: str) -> None:
    sim = host(BALL, 1, dtype=dtype)
    sim.set_state(qpos=[0, -0.4, 0])
    sim.step(1000)
    rest = np.array(sim.qpos)[0]
    assert -0.41 < rest[1] < -0.4
    sim.step(1000)
    np.testing.assert_allclose(np.asarray(sim.qpos)[0], rest, atol=1e-7 if dtype == "float64" else 2e-5)
    np.testing.assert_allclose(np.asarray(sim.qvel)[0], 0, atol=1e-9 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize(("push", "moves"), [(20.0, False), (80.0, True)])
def test_friction_holds_below_its_cone_and_gives_way_beyond(push: float, moves: bool) -> None:
    """A sphere that cannot roll: friction 1 holds it against less than its weight, 41 N, but for a creep."""
    text = BALL.replace('axis="0 1 0" range="-60 60" damping="0.01"', 'axis="0 1 0" range="-60 60" damping="1e6"')
    sim = host(text, 1, dtype="float64")
    sim.set_state(qpos=[0, -0.4, 0])
    sim.step(500)
    start = float(np.asarray(sim.qpos)[0, 0])
    sim.set_state(ctrl=[push, 0])
    sim.step(250)
    moved = float(np.asarray(sim.qpos)[0, 0]) - start
    assert (moved > 1.0) if moves else (moved < 0.05)


def test_mirrored_worlds_mirror() -> None:
    sim = host(BALL, 2, dtype="float64")
    qpos, qvel = np.array([0.3, -0.35, 0.2]), np.array([1.0, -2.0, 3.0])
    mirror = np.array([-1, 1, -1])
    sim.set_state(qpos=[qpos, qpos * mirror], qvel=[qvel, qvel * mirror], ctrl=[[5, 1], [-5, -1]])
    touched = 0
    for _ in range(100):
        sim.step()
        touched += sim.schedule.counts()["ncon"]
        np.testing.assert_allclose(np.asarray(sim.qpos)[1] * mirror, np.asarray(sim.qpos)[0], atol=1e-10)
    assert touched > 10


def test_a_turned_and_shifted_ant_moves_as_before() -> None:
    """Physics does not depend on the place, nor on the heading by right angles, which keep friction pyramids."""
    start = ant_start(6)
    angle, shift = np.pi / 2, np.array([12.0, -7.0])
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, -s], [s, c]])
    qpos, qvel = start.qpos.copy(), start.qvel.copy()
    qpos[:, :2] = start.qpos[:, :2] @ turn.T + shift
    qvel[:, :2] = start.qvel[:, :2] @ turn.T
    half = np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
    for world in range(6):
        mujoco.mju_mulQuat(qpos[world, 3:7], half, start.qpos[world, 3:7])
    sims: list[Simulation] = []
    for q, v in ((start.qpos, start.qvel), (qpos, qvel)):
        sim = host(ant(), 6, dtype="float64")
        sim.set_state(qpos=q, qvel=v)
        sim.step(20)
        sims.append(sim)
    plain, turned = (np.asarray(sim.qpos) for sim in sims)
    np.testing.assert_allclose(turned[:, :2], plain[:, :2] @ turn.T + shift, atol=1e-5)
    np.testing.assert_allclose(turned[:, 2], plain[:, 2], atol=1e-5)
    np.testing.assert_allclose(turned[:, 7:], plain[:, 7:], atol=1e-5)
