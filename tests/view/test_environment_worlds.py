"""Worlds of the page that are an environment: they step as Gymnasium's, and what is drawn is their state."""

from __future__ import annotations

import argparse

import gymnasium
import mujoco
import numpy as np
import pytest

from simengine.backends.select import available_backends
from simengine.cli.environments.acting import make_actor
from simengine.cli.environments.ids import make_environment
from simengine.cli.environments.worlds import EnvironmentWorlds
from simengine.view.worlds import Worlds
from simengine_envs import BatchEnv

pytestmark = pytest.mark.skipif(bool(available_backends()["host"]), reason="needs a C++ compiler")
PENDULUM = "simengine/InvertedPendulum-v5"


def made(name: str, num_worlds: int, actions: str = "random") -> tuple[EnvironmentWorlds, BatchEnv]:
    envs = make_environment(name, num_worlds, "host", None)
    options = argparse.Namespace(policy=None, actions=actions)
    worlds: Worlds = EnvironmentWorlds(name, envs, make_actor(options, name, envs, 5)[0], 5)
    assert isinstance(worlds, EnvironmentWorlds)
    return worlds, envs


def qpos(envs: BatchEnv) -> np.ndarray:
    return envs.runner.host("qpos")


@pytest.fixture
def pendulums() -> tuple[EnvironmentWorlds, BatchEnv]:
    return made(PENDULUM, 4)


def test_it_steps_as_gymnasium_does(pendulums: tuple[EnvironmentWorlds, BatchEnv]) -> None:
    worlds, envs = pendulums
    same = gymnasium.make_vec(PENDULUM, num_envs=4, backend="host")
    same.reset(seed=5)
    totals, ended = np.zeros(4), []
    for _ in range(60):
        worlds.step(1)
        actions = np.array([worlds.input(world) for world in range(4)])
        _, rewards, terminated, truncated, _ = same.step(actions)
        assert np.array_equal(qpos(envs), same.unwrapped.runner.host("qpos"))
        totals += rewards
        over = terminated | truncated
        ended += totals[over].tolist()
        totals[over] = 0
    assert worlds.episodes == len(ended) > 3
    assert worlds.return_mean == pytest.approx(np.mean(ended))
    assert worlds.timestep == 0.04
    for world in np.flatnonzero(~over):
        assert worlds.note(world).startswith(f"random actions\n\n**return {totals[world]:.1f}** in episode ")
        assert f"mean return {np.mean(ended):.1f} of {len(ended)} episodes" in worlds.note(world)


@pytest.mark.parametrize("name", [PENDULUM, "simengine/QuadrupedFlat-v0"])
def test_what_is_drawn_is_the_state(name: str) -> None:
    worlds, envs = made(name, 3)
    data = mujoco.MjData(worlds.mj)
    for _ in range(3):
        worlds.step(4)
        xpos, xmat = worlds.geom_poses(1, 3)
        for index, world in enumerate((1, 2)):
            data.qpos[:] = qpos(envs)[world]
            mujoco.mj_kinematics(worlds.mj, data)
            np.testing.assert_allclose(xpos[index], data.geom_xpos, atol=2e-5)
            np.testing.assert_allclose(xmat[index].reshape(-1, 9), data.geom_xmat, atol=2e-5)


def test_contact_forces_carry_the_weight() -> None:
    """Of robots whose masses the task draws: a standing robot's contacts carry its own weight, not the model's."""
    worlds, envs = made("simengine/QuadrupedFlat-v0", 2, "zero")
    heavy = 1.5 * worlds.mj.body_mass
    envs.set_params(body_mass=heavy)
    worlds.step(40)
    force = worlds.contact_forces(0).force.sum(axis=0)
    assert force[2] == pytest.approx(9.81 * heavy.sum(), rel=0.1)


def test_looking_changes_nothing() -> None:
    (watched, seen), (alone, unseen) = made(PENDULUM, 3), made(PENDULUM, 3)
    for _ in range(20):
        watched.step(1)
        watched.geom_poses(0, 3)
        watched.contact_forces(1)
        alone.step(1)
    assert np.array_equal(qpos(seen), qpos(unseen))


def test_resets_start_the_next_episode(pendulums: tuple[EnvironmentWorlds, BatchEnv]) -> None:
    worlds, envs = pendulums
    worlds.step(3)
    moved = qpos(envs)
    worlds.reset(2)
    assert worlds.time(2) == 0
    assert worlds.time(0) == pytest.approx(0.12)
    assert np.array_equal(qpos(envs)[:2], moved[:2])
    assert "in episode 1, step 0" in worlds.note(2)
    worlds.reset()
    assert [worlds.time(world) for world in range(4)] == [0] * 4
    assert "in episode 2, step 0" in worlds.note(2)
    assert "in episode 1, step 0" in worlds.note(0)


def test_held_actions_reach_one_world() -> None:
    worlds, envs = made(PENDULUM, 3, "zero")
    inputs = worlds.inputs
    assert (inputs.title, inputs.names, inputs.low.tolist(), inputs.high.tolist()) == ("Action", ("slide",), [-3], [3])
    worlds.hold(1, np.array([2.0]))
    worlds.step(3)
    assert worlds.input(1) == 2
    assert worlds.input(0) == 0
    assert worlds.is_held(1)
    assert not worlds.is_held(0)
    assert qpos(envs)[1, 0] - qpos(envs)[0, 0] > 0.02
    worlds.hold(1, None)
    worlds.step(1)
    assert worlds.input(1) == 0


def test_a_push_moves_the_world_until_its_episode_ends() -> None:
    worlds, envs = made(PENDULUM, 2, "zero")
    cart = worlds.mj.body("cart").id
    worlds.push(1, cart, np.array([200.0, 0, 0]))
    assert worlds.applied_forces(1).force[cart].tolist() == [200, 0, 0]
    assert not worlds.applied_forces(0).force.any()
    worlds.step(2)
    assert qpos(envs)[1, 0] - qpos(envs)[0, 0] > 0.02
    worlds.reset(1)
    assert not worlds.applied_forces(1).force.any()
