"""Ant against Gymnasium's Ant-v5, along one history of states and actions."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest

STEPS = 250


class Comparison(NamedTuple):
    """Worst absolute differences along the history, and what the history covered."""

    observation: float
    reward: float
    info: float
    contact_steps: int
    episodes: int
    moved: float


def follow(dtype: str, backend: str = "host", steps: int = STEPS, **arguments: Any) -> Comparison:
    """Step both environments with random actions, ours from the reference's state each time.

    The actions are float32, and Gymnasium adds up their squares in float32: that alone makes rewards differ by 1e-7.
    Only `qpos` and `qvel` are copied. What the reward remembers of the step before is our own, and has to be the
    position at the last Runge-Kutta evaluation, as it is in Gymnasium.
    """
    ours = gymnasium.make("simengine/Ant-v5", backend=backend, dtype=dtype, **arguments)
    reference = gymnasium.make("Ant-v5", **arguments)
    data = reference.unwrapped.data
    simulation = ours.unwrapped.worlds.simulation
    reference.action_space.seed(5)
    worst = {"observation": 0.0, "reward": 0.0, "info": 0.0}
    contact_steps = episodes = 0
    moved = 0.0

    def reset() -> None:
        compare(ours.reset(seed=episodes), reference.reset(seed=episodes))

    def compare(actual: tuple[Any, dict[str, Any]], expected: tuple[Any, dict[str, Any]]) -> None:
        assert actual[0].shape == expected[0].shape
        assert actual[0].dtype == expected[0].dtype
        assert list(actual[1]) == list(expected[1])
        worst["observation"] = max(worst["observation"], np.abs(actual[0] - expected[0]).max())
        worst["info"] = max(worst["info"], *(abs(actual[1][key] - expected[1][key]) for key in expected[1]))

    reset()
    for _ in range(steps):
        simulation.set_state(qpos=data.qpos[None], qvel=data.qvel[None])
        action = reference.action_space.sample()
        observation, reward, terminated, truncated, info = ours.step(action)
        expected, expected_reward, *expected_ends, expected_info = reference.step(action)
        compare((observation, info), (expected, expected_info))
        worst["reward"] = max(worst["reward"], abs(reward - expected_reward))
        assert [terminated, truncated] == expected_ends
        contact_steps += bool(data.cfrc_ext.any())
        moved = max(moved, expected_info["distance_from_origin"])
        if terminated or truncated:
            episodes += 1
            reset()
    ours.close()
    reference.close()
    return Comparison(**worst, contact_steps=contact_steps, episodes=episodes, moved=moved)


def assert_covers(result: Comparison) -> None:
    """The history has contacts in many steps, the end of an episode, and a robot that goes somewhere."""
    assert result.contact_steps > 50, result
    assert result.episodes >= 1, result
    assert result.moved > 0.5, result


PRECISIONS = pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-6), ("float32", 1e-3)])


@PRECISIONS
def test_equals_gymnasium(dtype: str, tolerance: float) -> None:
    result = follow(dtype)
    assert_covers(result)
    assert result.observation < tolerance, result
    assert result.reward < tolerance, result
    assert result.info < tolerance, result


@pytest.mark.slow
def test_equals_gymnasium_on_jax() -> None:
    result = follow("float64", backend="jax", steps=80)
    assert result.contact_steps > 10, result
    assert max(result.observation, result.reward, result.info) < 1e-6, result


@pytest.mark.gpu
@PRECISIONS
def test_equals_gymnasium_on_cuda(dtype: str, tolerance: float) -> None:
    result = follow(dtype, backend="cuda")
    assert_covers(result)
    assert max(result.observation, result.reward, result.info) < tolerance, result


def test_every_argument_does_what_gymnasiums_does() -> None:
    result = follow(
        "float64",
        steps=120,
        frame_skip=3,
        forward_reward_weight=2.5,
        ctrl_cost_weight=0.1,
        contact_cost_weight=0.03,
        healthy_reward=0.7,
        main_body="aux_2",
        healthy_z_range=(0.3, 0.9),
        contact_force_range=(-3.0, 2.0),
        reset_noise_scale=0.05,
        exclude_current_positions_from_observation=False,
    )
    assert result.contact_steps > 20, result
    assert result.episodes >= 1, result
    assert max(result.observation, result.reward, result.info) < 1e-6, result


def test_unhealthy_robot_goes_on_when_asked_to() -> None:
    result = follow("float64", steps=60, healthy_z_range=(0.6, 0.7), terminate_when_unhealthy=False)
    assert result.episodes == 0, result
    assert max(result.observation, result.reward, result.info) < 1e-6, result


@pytest.mark.parametrize("weight", [0.0, 5e-4])
def test_observation_without_contact_forces(weight: float) -> None:
    result = follow("float64", steps=60, include_cfrc_ext_in_observation=False, contact_cost_weight=weight)
    assert max(result.observation, result.reward, result.info) < 1e-6, result


def test_free_run_from_one_seed_agrees_before_chaos_sets_in() -> None:
    ours = gymnasium.make("simengine/Ant-v5", backend="host", dtype="float64")
    reference = gymnasium.make("Ant-v5")
    for env in (ours, reference):
        env.reset(seed=11)
    reference.action_space.seed(0)
    for _ in range(20):
        action = reference.action_space.sample()
        actual, expected = ours.step(action), reference.step(action)
        np.testing.assert_allclose(actual[0], expected[0], atol=1e-5)
        np.testing.assert_allclose(actual[1], expected[1], atol=1e-5)


def test_a_reset_in_contact_shows_no_contact_force() -> None:
    ours = gymnasium.make("simengine/Ant-v5", backend="host", dtype="float64")
    reference = gymnasium.make("Ant-v5")
    ours.reset(seed=0)
    reference.reset(seed=0)
    low = reference.unwrapped.init_qpos.copy()
    low[2] = 0.2
    reference.unwrapped.set_state(low, reference.unwrapped.init_qvel)
    assert reference.unwrapped.data.ncon > 0
    worlds = ours.unwrapped.worlds
    observation, _ = worlds.set_state(np.array([0]), low[None], worlds.init_qvel[None])
    assert not observation[0, 27:].any()
    np.testing.assert_array_equal(observation[0], reference.unwrapped._get_obs())
