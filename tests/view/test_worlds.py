"""A simulation as worlds of the page: poses and forces against MuJoCo, controls, pushes and resets."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simengine import Simulation, to_host
from simengine.view.forces import Forces, arrows
from simengine.view.worlds import HELD_FOR, SimulatedWorlds
from tests.models import OWN, compile_model

KEYED = """<mujoco><option timestep="0.01"/><worldbody>
<body name="ball" pos="0 0 1"><freejoint/><geom size="0.1"/></body>
<body><joint name="turn" type="hinge"/><geom size="0.1" mass="1" pos="1 0 0"/></body></worldbody>
<actuator><motor joint="turn" ctrlrange="-2 3"/></actuator>
<keyframe><key name="up" qpos="0 0 5 1 0 0 0 0.5" ctrl="1"/></keyframe></mujoco>"""


def source(name: str, cone: str = "pyramidal") -> str | mujoco.MjModel:
    model = compile_model(name)
    model.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone.upper()}")
    return model


def in_mujoco(worlds: SimulatedWorlds, world: int) -> mujoco.MjData:
    """The state of a world, evaluated by MuJoCo."""
    data = mujoco.MjData(worlds.mj)
    for name in ("qpos", "qvel", "act", "ctrl", "qacc_warmstart"):
        getattr(data, name)[:] = to_host(worlds.sim.field(name))[world]
    data.xfrc_applied[:] = to_host(worlds.sim.field("xfrc_applied"))[world]
    mujoco.mj_forward(worlds.mj, data)
    return data


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("name", ["ant", "contact_parameters", "crates", "mixed_tree"])
def test_poses_and_contact_forces_are_those_of_mujoco(name: str, cone: str) -> None:
    with Simulation(source(name, cone), 3, backend="host", dtype="float64") as sim:
        worlds = SimulatedWorlds(sim)
        sim.set_state(qvel=np.random.default_rng(4).uniform(-0.3, 0.3, (3, worlds.mj.nv)))
        worlds.step(120)
        xpos, xmat = worlds.geom_poses(1, 3)
        touching = 0
        for world in (1, 2):
            data = in_mujoco(worlds, world)
            assert np.allclose(xpos[world - 1], data.geom_xpos, atol=1e-9)
            assert np.allclose(xmat[world - 1].reshape(-1, 9), data.geom_xmat, atol=1e-9)
            forces = worlds.contact_forces(world)
            assert len(forces.pos) == data.ncon
            touching += data.ncon
            for index in range(data.ncon):
                wrench, contact = np.zeros(6), data.contact[index]
                mujoco.mj_contactForce(worlds.mj, data, index, wrench)
                expected = contact.frame.reshape(3, 3).T @ wrench[:3]
                if worlds.mj.geom_bodyid[contact.geom1] > worlds.mj.geom_bodyid[contact.geom2]:
                    expected = -expected
                assert np.allclose(forces.pos[index], contact.pos, atol=1e-8)
                assert np.allclose(forces.force[index], expected, atol=1e-4 * max(1, np.abs(wrench).max()))
        assert touching


def test_friction_of_a_world_counts() -> None:
    """The sliding force of a pyramid follows from its edges and the friction, which may differ from world to world."""
    with Simulation(source("ant"), 2, backend="host", dtype="float64") as sim:
        worlds = SimulatedWorlds(sim)
        friction = 2 * np.array(worlds.mj.geom_friction)
        sim.set_params([1], geom_friction=friction)
        sim.set_state(qvel=np.append([1.0, 0.5], np.zeros(worlds.mj.nv - 2)))
        worlds.step(90)
        worlds.mj.geom_friction[:] = friction  # MuJoCo's copy; the simulation has taken its own
        data = in_mujoco(worlds, 1)
        forces = worlds.contact_forces(1)
        assert data.ncon
        for index in range(data.ncon):
            wrench = np.zeros(6)
            mujoco.mj_contactForce(worlds.mj, data, index, wrench)
            expected = data.contact[index].frame.reshape(3, 3).T @ wrench[:3]
            assert np.allclose(forces.force[index], expected, atol=1e-4 * max(1, np.abs(wrench).max()))


def test_looking_changes_no_bit() -> None:
    results = []
    for looks in (False, True):
        with Simulation(source("ant"), 2, backend="host") as sim:
            worlds = SimulatedWorlds(sim, random=True)
            for _ in range(20):
                worlds.step(5)
                if looks:
                    worlds.geom_poses(0, 2)
                    worlds.contact_forces(1)
            results.append(to_host(sim.qpos).tobytes())
    assert results[0] == results[1]


def test_worlds_start_and_restart_at_the_keyframe() -> None:
    with Simulation(KEYED, 3, backend="host") as sim:
        worlds = SimulatedWorlds(sim, keyframe="up")
        start = np.array(to_host(sim.qpos))
        assert start[0, 2] == 5
        worlds.step(10)
        assert worlds.time(1) == pytest.approx(10 * worlds.timestep)
        worlds.reset(1)
        moved = np.array(to_host(sim.qpos))
        assert np.array_equal(moved[1], start[1])
        assert not np.array_equal(moved[0], start[0])
        assert (worlds.time(0), worlds.time(1)) == (pytest.approx(0.1), 0)
        worlds.reset()
        assert np.array_equal(to_host(sim.qpos), start)
        assert worlds.input(0) == 1
        xpos, _ = worlds.geom_poses(0, 1)
        assert xpos[0, 0, 2] == 5


def test_unknown_keyframe_is_refused() -> None:
    with Simulation(KEYED, 1, backend="host") as sim, pytest.raises(ValueError, match="did you mean 'up'"):
        SimulatedWorlds(sim, keyframe="upp")


def test_random_controls_are_held_for_a_while_and_lie_in_the_range() -> None:
    with Simulation(KEYED, 8, backend="host") as sim:
        worlds = SimulatedWorlds(sim, random=True)
        hold = round(HELD_FOR / worlds.timestep)
        seen = []
        for _ in range(3 * hold):
            worlds.step(1)
            seen.append(np.array(to_host(sim.ctrl)))
        for index, ctrl in enumerate(seen):
            assert np.array_equal(ctrl, seen[index // hold * hold])
        draws = np.array(seen[::hold])
        assert len(np.unique(draws)) == draws.size
        assert draws.min() >= -2
        assert draws.max() <= 3
        assert draws.max() > 1


def test_held_controls_stay_through_draws_and_resets() -> None:
    with Simulation(KEYED, 2, backend="host") as sim:
        worlds = SimulatedWorlds(sim, random=True)
        worlds.hold(1, np.array([2.5]))
        worlds.step(25)
        assert worlds.input(1) == 2.5
        assert worlds.input(0) != 2.5
        worlds.reset()
        assert worlds.input(1) == 2.5
        assert worlds.is_held(1)
        assert not worlds.is_held(0)
        worlds.hold(1, None)
        assert not worlds.is_held(1)
        worlds.step(11)
        assert worlds.input(1) != 2.5


def test_a_push_moves_the_body_until_the_reset() -> None:
    with Simulation(KEYED, 2, backend="host") as sim:
        worlds = SimulatedWorlds(sim, keyframe="up")
        ball = worlds.mj.body("ball").id
        worlds.push(1, ball, np.array([30.0, 0, 0]))
        applied = worlds.applied_forces(1)
        assert np.array_equal(applied.force[ball], (30, 0, 0))
        assert np.allclose(applied.pos[ball], (0, 0, 5))
        assert not worlds.applied_forces(0).force.any()
        worlds.step(20)
        xpos, _ = worlds.geom_poses(0, 2)
        assert xpos[0, 0, 0] == 0
        assert xpos[1, 0, 0] > 0.05
        worlds.reset(1)
        assert not worlds.applied_forces(1).force.any()


def test_worlds_that_are_not_finite_are_counted() -> None:
    with Simulation(OWN["mixed_tree"], 4, backend="host", on_nonfinite="freeze") as sim:
        worlds = SimulatedWorlds(sim)
        assert worlds.frozen() == 0
        sim.set_state([2], qvel=np.full(worlds.mj.nv, 1e30))
        worlds.step(5)
        assert worlds.frozen() == 1
        worlds.reset(2)
        assert worlds.frozen() == 0


def test_arrows_follow_the_forces() -> None:
    mj = compile_model("ant")
    weight = mj.body_subtreemass[0] * 9.81
    drawn = arrows(mj, Forces(np.array([(1.0, 2, 3), (4, 5, 6)]), np.array([(0.0, 0, 0), (0, 0, weight)])))
    assert drawn.shape == (1, 2, 3)
    assert np.allclose(drawn[0, 0], (4, 5, 6))
    assert np.allclose(drawn[0, 1] - drawn[0, 0], (0, 0, mj.stat.extent / 2))
