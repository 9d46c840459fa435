"""Several robots in one vector environment: layout, autoreset modes, kinds of arrays, errors."""

from __future__ import annotations

from functools import cache
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from simengine_envs import MixedPureEnv, PureEnv
from simengine_envs.mixed_pure import shares
from simengine_envs.tasks.mixed_locomotion import MixedLocomotion

NAME = "simengine/MixedLocomotion-v0"
ROBOTS = ("ant", "quadruped", "random:0")


def make(num_envs: int, **arguments: Any) -> Any:
    return gymnasium.make_vec(NAME, num_envs=num_envs, backend="host", **{"robots": ROBOTS, **arguments})


@cache
def five() -> Any:
    """Five worlds, which tests reset before they look at them. Compiling their programs takes most of the time."""
    return make(5)


def test_worlds_are_split_evenly() -> None:
    assert shares(7, 3) == [3, 2, 2]
    assert shares(1, 3) == [1, 0, 0]
    assert five().unwrapped.robot_index.tolist() == [0, 0, 1, 1, 2]


def test_what_a_robot_lacks_is_zero_and_unused() -> None:
    env = five()
    face = env.unwrapped
    assert [model.nu for model in face.models] == [8, 12, 14]
    assert [part.dt for part in face.pure.parts] == pytest.approx([0.04] * 3)
    assert face.action_mask.sum(axis=1).tolist() == [8, 8, 12, 12, 14]
    seen, infos = env.reset(seed=3)
    assert infos["robot"].tolist() == [0, 0, 1, 1, 2]
    assert seen.shape == face.observation_mask.shape
    outside = np.where(face.action_mask, 0.3, 0.0).astype(np.float32)
    results = []
    for action in (outside, np.where(face.action_mask, 0.3, 1.0)):
        env.reset(seed=3)
        observation, rewards, *_ = env.step(action)
        assert (observation[~face.observation_mask] == 0).all()
        results.append((observation, rewards))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-6)


def test_a_world_equals_the_single_environment_of_its_robot(same: Any) -> None:
    many, one = five(), gymnasium.make(NAME, backend="host", robots=ROBOTS, robot="quadruped")
    seen = many.reset(seed=0)[0]
    same(one.reset(seed=2)[0], seen[2])
    action = np.linspace(-1, 1, 14)
    same(one.step(action)[0], many.step(np.tile(action, (5, 1)))[0][2])


@pytest.mark.parametrize(
    "mode",
    [
        AutoresetMode.SAME_STEP,
        pytest.param(AutoresetMode.NEXT_STEP, marks=pytest.mark.slow),
        pytest.param(AutoresetMode.DISABLED, marks=pytest.mark.slow),
    ],
)
def test_episodes_of_every_robot_start_anew(mode: AutoresetMode) -> None:
    env = make(3, autoreset_mode=mode, max_episode_steps=2)
    first = env.reset(seed=0)[0]
    ended = 0
    for _ in range(4):
        observation, _, terminations, truncations, infos = env.step(np.zeros((3, 14)))
        over = terminations | truncations
        ended += over.sum()
        if mode == AutoresetMode.SAME_STEP and over.all():
            assert all(final.shape == first[0].shape for final in infos["final_obs"])
        if mode == AutoresetMode.DISABLED and over.any():
            observation = env.reset(options={"reset_mask": over})[0]
    assert ended >= 3
    assert np.isfinite(observation).all()


def test_arrays_stay_with_jax() -> None:
    env = make(5, array="jax")
    observation, _ = env.reset(seed=0)
    result = env.step(jnp.zeros((5, 14), observation.dtype))
    np.testing.assert_allclose(observation, five().reset(seed=0)[0])
    assert all(isinstance(value, jnp.ndarray) for value in result[:4])
    assert result[4]["robot"].tolist() == [0, 0, 1, 1, 2]


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(ValueError, match="num_envs is 2, but there are 3 robots; give each a world"):
        make(2)
    with pytest.raises(ValueError, match="did you mean 'quadruped'"):
        make(3, robot="quadrupd")
    with pytest.raises(ValueError, match="robots of MixedLocomotion is empty"):
        make(3, robots=())
    with pytest.raises(ValueError, match="robot 'random:x' has no seed"):
        make(3, robots=("random:x",))
    with pytest.raises(ValueError, match=r"body_mass is one array.*give it by robot, as in body_mass=\{'ant': ...\}"):
        make(3).unwrapped.set_params(body_mass=1.0)
    with pytest.raises(ValueError, match="body_mass names 'antt'.*did you mean 'ant'"):
        make(3).unwrapped.set_params(body_mass={"antt": 1.0})
    with pytest.raises(ValueError, match="params name 'antt', which is no robot.*did you mean 'ant'"):
        MixedPureEnv(MixedLocomotion(robots=ROBOTS), "host").reset(0, 3, {"antt": {}})


@pytest.mark.parametrize("mode", ["NextStep", pytest.param("SameStep", marks=pytest.mark.slow)])
def test_the_pure_form_has_the_bits_of_the_vector_environment(mode: str) -> None:
    with jax.enable_x64(False):
        pure = MixedPureEnv(MixedLocomotion(robots=ROBOTS), "host", "float32", 4, mode)
        env = make(5, array="jax", autoreset_mode=mode, max_episode_steps=4)
        actions = np.random.default_rng(0).uniform(-1, 1, (7, 5, pure.action_size)).astype(np.float32)
        states, first = jax.jit(pure.reset, static_argnums=1)(3, 5)
        np.testing.assert_array_equal(first, env.reset(seed=3)[0])
        states, results = jax.jit(lambda s, a: jax.lax.scan(pure.step, s, a))(states, actions)
        for step, action in enumerate(actions):
            observation, reward, terminated, truncated, _ = env.step(jnp.asarray(action))
            np.testing.assert_array_equal(results.observation[step], observation)
            np.testing.assert_array_equal(results.reward[step], reward)
            np.testing.assert_array_equal(results.terminated[step], terminated)
            np.testing.assert_array_equal(results.truncated[step], truncated)
        assert results.truncated.any()
        assert not results.stalled.any()
        for own, other in zip(states, env.unwrapped.state, strict=True):
            np.testing.assert_array_equal(own.worlds.qvel, other.worlds.qvel)
            np.testing.assert_array_equal(own.total, other.total)


def test_the_pure_form_has_the_interface_of_a_pure_environment() -> None:
    task = MixedLocomotion(robots=ROBOTS)
    several, one = (
        MixedPureEnv(task, "host", max_episode_steps=9),
        PureEnv(task.members()[0], "host", max_episode_steps=9),
    )
    for name in ("backend", "dt", "dtype", "max_episode_steps", "autoreset_mode", "action_size"):
        assert getattr(several, name) == getattr(one, name), name
    np.testing.assert_array_equal(several.action_range(), one.action_range())
    assert several.robots == ROBOTS
    states, observation = several.reset(0, 5)
    _, expected = one.reset(0, 2)
    np.testing.assert_array_equal(observation[:2], expected)
    mask = np.array([True, False, True, False, False])
    restarted, _ = several.restart(states, mask)
    assert [state.episode.tolist() for state in restarted] == [[1, 0], [1, 0], [0]]
    merged, _ = several.merge(states, restarted, ~mask)
    assert [state.episode.tolist() for state in merged] == [[0, 0], [0, 0], [0]]


def test_parameters_are_set_by_robot() -> None:
    env = make(5)
    face = env.unwrapped
    env.reset(seed=0)
    action = np.full((5, 14), 0.5)
    plain = env.step(action)[0]
    face.set_params(
        worlds=[0, 3], body_mass={robot: 2 * m.body_mass for robot, m in zip(ROBOTS, face.models, strict=True)}
    )
    for _ in range(2):  # a reset keeps them
        env.reset(seed=0)
        changed = env.step(action)[0]
        assert (np.abs(changed - plain).max(axis=1) > 1e-3).tolist() == [True, False, False, True, False]
    face.set_params(body_mass={"random:0": 2 * face.models[2].body_mass})
    env.reset(seed=0)
    assert (np.abs(env.step(action)[0] - plain).max(axis=1) > 1e-3).tolist() == [True, False, False, True, True]
