"""Rollouts: their contents, and the value that follows a step which ended an episode."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from simengine_training.environments import last_observations, make_envs, sizes, to_space
from simengine_training.errors import TrainingError
from simengine_training.policy import Functions, Sampled
from simengine_training.rollout import Collected, Collector
from simengine_training.statistics import Statistics
from tests.training import point

GAMMA = 0.9


def scripted(action: float) -> Functions:
    """A policy that always does the same, and whose value is ten times the normalised observation plus one."""

    def value(params: Any, observations: Any) -> Any:
        return 10 * np.asarray(observations)[:, 0] + 1

    def sample(params: Any, observations: Any, key: jax.Array) -> Any:
        n = len(observations)
        actions = np.full((n, 1), action, dtype=np.float32)
        return Sampled(actions, np.zeros(n, dtype=np.float32), value(params, observations))

    return Functions(sample, value, value)


def collect(action: float, steps: int, num_envs: int = 5, rounds: int = 1, **arguments: Any) -> list[Collected]:
    collector = Collector(make_envs(point.ID, num_envs, arguments), scripted(action), GAMMA)
    collector.restart(seed=3)
    empty = Statistics.empty((1,))
    return [collector.collect(None, empty, jax.random.key(0), steps) for _ in range(rounds)]


def test_truncated_episode_goes_on_in_its_value() -> None:
    [got] = collect(0.0, point.STEPS + 4, terminate=False)
    rollout, last = got.rollout, point.STEPS - 1
    assert rollout.ended.sum(axis=0).tolist() == [1] * 5
    assert rollout.ended[last].all()
    assert not rollout.terminated.any()
    # The point does not move, so the last observation is that of every step of the episode, not the next episode's.
    np.testing.assert_array_equal(rollout.next_values[last], rollout.values[last])
    assert (rollout.next_values[last] != rollout.values[last + 1]).all()
    np.testing.assert_array_equal(rollout.next_values[last + 1 : -1], rollout.values[last + 2 :])


def test_terminated_episode_is_marked() -> None:
    [got] = collect(-0.5, 40)
    rollout = got.rollout
    distance = np.abs(rollout.rewards)
    np.testing.assert_array_equal(rollout.terminated, distance < point.GOAL)
    assert 0 < rollout.terminated.sum() < rollout.ended.sum()
    assert (rollout.ended >= rollout.terminated).all()


def test_last_value_is_of_the_observation_after_the_rollout() -> None:
    first, second = collect(0.1, 3, rounds=2)
    np.testing.assert_array_equal(first.rollout.next_values[-1], second.rollout.values[0])
    np.testing.assert_array_equal(second.rollout.next_values[:-1], second.rollout.values[1:])


def test_returns_lengths_and_discounted_sums() -> None:
    rounds = collect(0.25, 15, rounds=3)
    rewards = np.concatenate([got.rollout.rewards for got in rounds])
    ended = np.concatenate([got.rollout.ended for got in rounds])
    returns, lengths = [], []
    sums, counts, discounted = np.zeros(5), np.zeros(5, dtype=int), np.zeros(5)
    expected = []
    for reward, end in zip(rewards, ended, strict=True):
        sums, counts, discounted = sums + reward, counts + 1, reward + GAMMA * discounted
        expected.append(discounted.copy())
        returns += sums[end].tolist()
        lengths += counts[end].tolist()
        sums[end], counts[end], discounted[end] = 0, 0, 0
    assert len(returns) >= 5
    np.testing.assert_allclose([x for got in rounds for x in got.returns], returns, rtol=1e-5)
    assert [x for got in rounds for x in got.lengths] == lengths
    for got, part in zip(rounds, np.split(np.array(expected), len(rounds)), strict=True):
        assert got.discounted.number == part.size
        np.testing.assert_allclose(got.discounted[1:], (part.mean(), part.var()), rtol=1e-5)


def test_shapes_and_precision() -> None:
    [got] = collect(0.1, 6)
    rollout = got.rollout
    assert rollout.observations.shape == (6, 5, 1)
    assert got.observed.number == 30
    assert got.observed.mean.shape == got.observed.var.shape == (1,)
    assert rollout.actions.shape == (6, 5, 1)
    for name in ("log_probs", "values", "rewards", "next_values", "terminated", "ended"):
        assert getattr(rollout, name).shape == (6, 5)
    assert rollout.observations.dtype == rollout.actions.dtype == rollout.rewards.dtype == np.float32


def test_actions_span_the_space_and_stay_in_it() -> None:
    vector = make_envs(point.ID, 4)
    taken = to_space(np.array([[0.5], [-1.0], [3.0], [0.0]], dtype=np.float32), vector)
    np.testing.assert_array_equal(taken, [[1.0], [-2.0], [2.0], [0.0]])
    assert taken.dtype == np.float32


def test_final_observations_replace_the_next_first_ones() -> None:
    observations = np.array([[1.0], [2.0]])
    final = np.array([None, np.array([9.0])], dtype=object)
    np.testing.assert_array_equal(
        last_observations(observations, {"final_obs": final, "_final_obs": np.array([False, True])}), [[1.0], [9.0]]
    )
    np.testing.assert_array_equal(last_observations(observations, {}), observations)


def test_environment_without_vector_form_is_stepped_by_gymnasium() -> None:
    vector = make_envs("Pendulum-v1", 2)
    assert sizes(vector) == (3, 1)
    vector.reset(seed=0)
    infos = [vector.step(np.zeros((2, 1), dtype=np.float32))[4] for _ in range(200)][-1]
    assert infos["_final_obs"].all()
    vector.close()


@pytest.mark.parametrize(("env_id", "message"), [("MountainCar-v0", "acts in Discrete"), ("FrozenLake-v1", "observes")])
def test_unfit_environment_is_refused(env_id: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_envs(env_id, 2)


@pytest.mark.parametrize(
    ("env_id", "arguments", "message"),
    [
        ("simengine/Nothing-v0", {}, "'simengine/Nothing-v0' cannot be made"),
        ("CartPole-v1", {}, "'CartPole-v1' cannot be made: .*autoreset_mode"),
        (
            "simengine/Ant-v5",
            {"nothing": 1},
            "'simengine/Ant-v5' cannot be made: .*nothing.*; check its id and arguments",
        ),
    ],
)
def test_environment_that_cannot_be_made_is_named(env_id: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        make_envs(env_id, 2, arguments)
