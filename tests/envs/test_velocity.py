"""Velocity tracking: the robots stand, commands and kicks come, and worlds, ground and levels are as the task says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import simengine
from simengine_envs import PureEnv
from simengine_envs.tasks.commands import next_level
from simengine_envs.tasks.ground import height_near, rough_heights
from simengine_envs.tasks.legged import ROBOTS, legged_model
from simengine_envs.tasks.published import published_spec
from simengine_envs.tasks.velocity import VelocityTracking

STILL: dict[str, Any] = {"push_interval": 0.0, "noise": {}, "friction_scale": None, "mass_scale": None}


@pytest.mark.parametrize("name", ["quadruped", "biped"])
def test_the_robot_stands_in_its_home_pose(name: str) -> None:
    model = simengine.load_model(name)
    home = model.mj.key("home")
    with simengine.Simulation(model, 1, backend="host") as sim:
        sim.set_state(qpos=home.qpos[None])
        sim.step(750, ctrl=home.ctrl[None])
        qpos, qvel = sim.qpos[0], sim.qvel[0]
    assert abs(qpos[2] - home.qpos[2]) < 0.03
    assert qpos[3] > 0.99
    assert np.abs(qpos[7:] - home.qpos[7:]).max() < 0.15
    assert np.abs(qvel).max() < 0.1


@pytest.mark.parametrize("name", ["quadruped", "biped"])
def test_actuators_follow_the_order_of_the_joints(name: str) -> None:
    mj = legged_model(name, False).mj
    assert mj.actuator_trnid[:, 0].tolist() == list(range(1, mj.nu + 1))
    assert np.isfinite(mj.actuator_forcerange).all()
    assert (mj.jnt_range[1:, 0] < mj.key("home").qpos[7:]).all()


@pytest.mark.slow
def test_a_vector_environment_with_everything_random() -> None:
    envs = gymnasium.make_vec("simengine/QuadrupedRough-v0", num_envs=4, backend="host", push_interval=0.1)
    envs.action_space.seed(0)
    first, infos = envs.reset(seed=0)
    assert first.shape == (4, 48)
    assert sum(envs.unwrapped.observation_structure.values()) == 48
    assert (np.abs(infos["command"]) <= 0.3 * np.array([1, 0.5, 1])).all()
    state = envs.unwrapped.state
    assert len(set(np.asarray(state.params["body_mass"])[:, 1].tolist())) == 4
    assert len(set(np.asarray(state.worlds.qpos)[:, 0].tolist())) == 4
    for _ in range(5):
        observation, rewards, terminations, _, infos = envs.step(envs.action_space.sample())
        assert np.isfinite(observation).all()
        assert not terminations.any()
        total = sum(infos[name] for name in infos if name.startswith("reward_"))
        np.testing.assert_allclose(rewards, total, rtol=1e-5, atol=1e-7)  # terms of both signs may cancel


def test_a_robot_that_stands_tracks_the_command_to_stand_and_a_fallen_one_ends() -> None:
    env = gymnasium.make("simengine/BipedFlat-v0", backend="host", dtype="float64", **STILL, start_level=0.01).unwrapped
    env.reset(seed=0)
    home = env.model.key("home")
    for _ in range(30):
        observation, _, terminated, _, info = env.step(np.zeros(21))
    assert not terminated
    assert info["reward_tracking_linear"] > 0.8
    assert info["reward_upright"] > -0.05
    np.testing.assert_allclose(observation[6:9], [0, 0, 1], atol=0.15)
    lying = home.qpos.copy()
    lying[3:7] = [np.sqrt(0.5), 0, np.sqrt(0.5), 0]
    lying[2] = 1.5
    env.set_state(lying, np.zeros(27))
    assert env.step(np.zeros(21))[2]


def test_commands_change_and_kicks_move_the_robot() -> None:
    env = PureEnv(VelocityTracking(command_interval=0.05, push_interval=0.02, noise={}), backend="host")
    step = jax.jit(env.step)
    state, _ = jax.jit(lambda: env.reset(0, 3))()
    commands, speeds = [], []
    for _ in range(15):
        state, _ = step(state, jnp.zeros((3, 12)))
        commands.append(np.asarray(state.memory["command"]))
        speeds.append(np.asarray(state.worlds.qvel)[:, :2])
    assert len({tuple(command[0]) for command in commands}) > 2
    assert np.abs(speeds).max() > 0.2


def test_the_level_follows_how_well_the_last_episode_tracked() -> None:
    last = {
        "level": jnp.array([0.5, 0.5, 0.5, 1.0]),
        "tracked": jnp.array([900.0, 9.0, 100.0, 1000.0]),
        "episode_length": jnp.array([1000, 10, 1000, 1000]),
    }
    np.testing.assert_allclose(next_level(last), [0.55, 0.5, 0.45, 1.0], rtol=1e-6)


def test_no_foot_starts_inside_rough_ground() -> None:
    model = legged_model("quadruped", True)
    heights = rough_heights() * ROBOTS["quadruped"].roughness
    assert heights.min() == 0
    assert heights.max() == pytest.approx(ROBOTS["quadruped"].roughness)
    data = mujoco.MjData(model.mj)
    for place in np.random.default_rng(0).uniform(-4, 4, (20, 2)):
        data.qpos[:] = model.mj.key("home").qpos
        data.qpos[:2] = place
        data.qpos[2] += float(height_near(heights, jnp.asarray(place[None]))[0])
        mujoco.mj_forward(model.mj, data)
        assert all(contact.dist > -1e-3 for contact in data.contact)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"robot": "quadrupd"}, "did you mean 'quadruped'"),
        ({"terrain": "steep"}, "terrain is 'steep'; give one of flat, rough"),
        ({"noise": {"upp": 1.0}}, "no part of the observation.*did you mean 'up'"),
        ({"start_level": 0.0}, "start_level must be above 0"),
        ({"mass_scale": (2.0, 1.0)}, "mass_scale must be"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VelocityTracking(**arguments)


def test_without_its_package_a_robot_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco_menagerie", None)
    monkeypatch.setitem(sys.modules, "mjlab", None)
    legged_model.cache_clear()
    with pytest.raises(ImportError, match=r"robot 'go1' is a model of MuJoCo Menagerie.*install simengine\[robots\]"):
        gymnasium.make("simengine/Go1Flat-v0", backend="host")


def test_a_robot_comes_from_mjlab_where_menagerie_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """mjlab is looked up and not imported, since that takes long."""
    folder = tmp_path / "mjlab" / "asset_zoo" / "robots" / "tripod" / "xmls"
    folder.mkdir(parents=True)
    (tmp_path / "mjlab" / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "tripod.xml").write_text('<mujoco model="tripod"><worldbody><site/></worldbody></mujoco>')
    monkeypatch.setitem(sys.modules, "mujoco_menagerie", None)
    monkeypatch.delitem(sys.modules, "mjlab", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert published_spec("tripod", "tripod").modelname == "tripod"
    with pytest.raises(ImportError, match=r"robot 'quadripod'.*install simengine\[robots\]"):
        published_spec("quadripod", "quadripod")


@pytest.mark.parametrize(("name", "joints"), [("go1", 12), ("g1", 29)])
def test_robots_of_other_packages_stand_on_their_feet(name: str, joints: int) -> None:
    """Needs mjlab, or MuJoCo Menagerie with its files in a cache, a checkout or the network."""
    try:
        model = legged_model(name, False)
    except (ImportError, FileNotFoundError) as error:
        pytest.skip(str(error))
    assert model.nu == joints
    data = mujoco.MjData(model.mj)
    mujoco.mj_resetDataKeyframe(model.mj, data, 0)
    mujoco.mj_forward(model.mj, data)
    feet = model.mj.site_bodyid[[model.mj.site(foot).id for foot in ROBOTS[name].feet]]
    touching = {int(model.mj.geom_bodyid[geom]) for contact in data.contact for geom in contact.geom}
    assert touching <= {0, *feet.tolist()}
    mujoco.mj_step(model.mj, data, 50)
    assert data.ncon >= len(feet)
    assert abs(data.qpos[2] - model.mj.key("home").qpos[2]) < 0.05
