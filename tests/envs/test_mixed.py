"""Several robots in one vector environment: layout, autoreset modes, kinds of arrays, errors."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from simengine_envs.mixed import shares

NAME = "simengine/MixedLocomotion-v0"
ROBOTS = ("ant", "quadruped", "random:0")


def make(num_envs: int, **arguments: Any) -> Any:
    return gymnasium.make_vec(NAME, num_envs=num_envs, backend="host", **{"robots": ROBOTS, **arguments})


def test_worlds_are_split_evenly() -> None:
    assert shares(7, 3) == [3, 2, 2]
    assert shares(1, 3) == [1, 0, 0]
    assert make(5).unwrapped.robot_index.tolist() == [0, 0, 1, 1, 2]


def test_what_a_robot_lacks_is_zero_and_unused() -> None:
    env = make(5)
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
    many, one = make(5), gymnasium.make(NAME, backend="host", robots=ROBOTS, robot="quadruped")
    seen = many.reset(seed=0)[0]
    same(one.reset(seed=2)[0], seen[2])
    action = np.linspace(-1, 1, 14)
    same(one.step(action)[0], many.step(np.tile(action, (5, 1)))[0][2])


@pytest.mark.parametrize("mode", list(AutoresetMode))
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
    env = make(3, array="jax")
    observation, _ = env.reset(seed=0)
    result = env.step(jnp.zeros((3, 14), observation.dtype))
    np.testing.assert_allclose(observation, make(3).reset(seed=0)[0])
    assert all(isinstance(value, jnp.ndarray) for value in result[:4])
    assert result[4]["robot"].tolist() == [0, 1, 2]


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(ValueError, match="num_envs is 2, but there are 3 robots; give each a world"):
        make(2)
    with pytest.raises(ValueError, match="did you mean 'quadruped'"):
        make(3, robot="quadrupd")
    with pytest.raises(ValueError, match="robots of MixedLocomotion is empty"):
        make(3, robots=())
    with pytest.raises(ValueError, match="robot 'random:x' has no seed"):
        make(3, robots=("random:x",))
    with pytest.raises(ValueError, match="different shapes"):
        make(3).unwrapped.set_params(body_mass=1.0)
