"""Rollouts inside a program against a plain loop over the vector environment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simengine_training.network import Network, log_density
from simengine_training.rollout import collect
from simengine_training.statistics import Statistics
from simengine_training.worlds import environment_of, first_worlds

ID = "simengine/Ant-v5"
OPTIONS: dict[str, Any] = {"backend": "host", "max_episode_steps": 9, "healthy_z_range": (0.6, 1.0)}
WORLDS, STEPS, GAMMA = 6, 12, 0.9


@pytest.fixture(autouse=True)
def _single_precision() -> Iterator[None]:
    with jax.enable_x64(False):
        yield


def test_a_rollout_is_that_of_a_loop_over_the_vector_environment() -> None:
    """Both collect two rollouts in a row, in which episodes terminate and are truncated."""
    env = environment_of(ID, OPTIONS)
    vector: Any = gymnasium.make_vec(ID, num_envs=WORLDS, autoreset_mode="SameStep", **OPTIONS)
    network = Network(105, 8, (16,))
    params = jax.tree.map(jnp.asarray, network.init(0, initial_log_std=-0.5))
    data = np.random.default_rng(0).normal(0.3, 2.0, (50, 105)).astype(np.float32)
    statistics = Statistics.empty((105,)).updated(jnp.asarray(data))
    worlds = first_worlds(env, jnp.arange(11, 11 + WORLDS, dtype=jnp.uint32), spread=False)
    observation, _ = vector.reset(seed=11)
    discounted, length, total = np.zeros(WORLDS), np.zeros(WORLDS), np.zeros(WORLDS)
    seen = {"terminated": 0, "truncated": 0}
    for number in range(2):
        key = jax.random.fold_in(jax.random.key(5), number)
        worlds, found, sums = collect(env, network, params, statistics, worlds, key, STEPS, GAMMA, whole=False)
        ends, returns, lengths = 0, 0.0, 0.0
        for t in range(STEPS):
            np.testing.assert_allclose(found.observations[t], observation, rtol=2e-3, atol=2e-3)
            means = network.means(params, statistics.normalized(jnp.asarray(observation)))
            noise = (np.asarray(found.outputs[t]) - np.asarray(means)) / np.exp(np.asarray(params.log_std))
            np.testing.assert_allclose(found.log_probs[t], log_density(noise, params.log_std), rtol=2e-3, atol=2e-3)
            actions = np.clip(np.asarray(found.outputs[t]), -1, 1)
            observation, rewards, terminated, truncated, infos = vector.step(actions)
            ended = terminated | truncated
            final = observation.copy()
            for world in np.flatnonzero(ended):
                final[world] = infos["final_obs"][world]
            discounted, length, total = rewards + GAMMA * discounted, length + 1, total + rewards
            np.testing.assert_allclose(found.final_observations[t], final, rtol=2e-3, atol=2e-3)
            np.testing.assert_allclose(found.rewards[t], rewards, rtol=2e-3, atol=2e-3)
            np.testing.assert_allclose(found.discounted[t], discounted, rtol=2e-3, atol=2e-3)
            np.testing.assert_array_equal(found.terminated[t], terminated)
            np.testing.assert_array_equal(found.ended[t], ended)
            ends, returns, lengths = ends + ended.sum(), returns + total[ended].sum(), lengths + length[ended].sum()
            for counter in (discounted, length, total):
                counter[ended] = 0
            seen["terminated"] += int(terminated.sum())
            seen["truncated"] += int((truncated & ~terminated).sum())
        assert (int(sums.number), int(sums.lengths), int(sums.stalled)) == (ends, lengths, 0)
        np.testing.assert_allclose(sums.returns, returns, rtol=1e-3)
    assert min(seen.values()) > 3
    vector.close()


def test_noise_is_drawn_with_the_policys_deviation() -> None:
    env = environment_of(ID, OPTIONS)
    network = Network(105, 8, (4,))
    params = jax.tree.map(jnp.asarray, network.init(0, initial_log_std=-0.7))
    worlds = first_worlds(env, jnp.arange(64, dtype=jnp.uint32), spread=False)
    _, found, _ = collect(
        env, network, params, Statistics.empty((105,)), worlds, jax.random.key(0), 8, GAMMA, whole=False
    )
    outputs = np.asarray(found.outputs)
    np.testing.assert_allclose(outputs.std(axis=(0, 1)), np.exp(-0.7), rtol=0.15)
    assert len(np.unique(outputs)) == outputs.size
