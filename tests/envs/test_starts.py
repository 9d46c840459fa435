"""Starts of episodes: the distributions of Gymnasium's resets, from random numbers by seed, world and episode."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from scipy.stats import ks_2samp

from simengine_envs import PureEnv
from simengine_envs.options import task_class
from simengine_envs.registration import REGISTRATIONS

GYMNASIUMS = [item for item in REGISTRATIONS if item.id.endswith("-v5")]
"""The tasks that Gymnasium has too."""

NUM_STARTS = 3000
TASKS = pytest.mark.parametrize("item", GYMNASIUMS, ids=lambda item: item.id)


def our_starts(item: Any) -> np.ndarray:
    """States of many worlds after a reset, (NUM_STARTS, nq + nv)."""
    env = PureEnv(task_class(item.task)(), "host", "float64")
    state, _ = jax.jit(env.reset)(np.arange(NUM_STARTS))
    return np.concatenate([state.worlds.qpos, state.worlds.qvel], axis=1)


def gymnasiums_starts(item: Any) -> np.ndarray:
    """States of Gymnasium's environment after many resets, (NUM_STARTS, nq + nv)."""
    env = gymnasium.make(item.id).unwrapped
    env.reset(seed=0)
    states = []
    for _ in range(NUM_STARTS):
        env.reset_model()
        states.append(env.state_vector())
    env.close()
    return np.array(states)


def with_radii(states: np.ndarray, nq: int) -> np.ndarray:
    """The states, and the distances from the origin of each two neighbouring coordinates: goals are not independent."""
    return np.concatenate([states, np.hypot(states[:, : nq - 1], states[:, 1:nq])], axis=1)


@pytest.mark.slow
@TASKS
def test_starts_are_distributed_as_gymnasiums(item: Any) -> None:
    nq = gymnasium.make(item.id).unwrapped.model.nq
    ours, reference = with_radii(our_starts(item), nq), with_radii(gymnasiums_starts(item), nq)
    assert ours.shape == reference.shape
    for index, (actual, expected) in enumerate(zip(ours.T, reference.T, strict=True)):
        spread = expected.std()
        if spread < 1e-12:
            np.testing.assert_allclose(actual, expected[0], atol=1e-12)
            continue
        # Of 400 such comparisons of equal distributions, one in a thousand runs would have one below this.
        assert ks_2samp(actual, expected).pvalue > 2.5e-6, index
        # Bounded noise fills its range, and does not leave it.
        bounded = np.ptp(expected) < 3.6 * spread
        assert not bounded or abs(np.ptp(actual) - np.ptp(expected)) < 0.02 * np.ptp(expected), index
    correlation = np.corrcoef(ours[:, ours.std(axis=0) > 1e-12][:, :8].T)
    reference_correlation = np.corrcoef(reference[:, reference.std(axis=0) > 1e-12][:, :8].T)
    assert np.abs(correlation - reference_correlation).max() < 0.12


def test_the_cylinder_is_never_at_the_goal() -> None:
    (item,) = (item for item in REGISTRATIONS if item.id == "Pusher-v5")
    places = our_starts(item)[:, 7:9]
    assert np.hypot(*places.T).min() > 0.17
    assert (places.min(axis=0) >= (-0.3, -0.2)).all()
    assert (places.max(axis=0) <= (0.0, 0.2)).all()


def test_scale_of_the_noise() -> None:
    (item,) = (item for item in REGISTRATIONS if item.id == "Hopper-v5")
    task = task_class(item.task)
    spread = []
    for scale in (0.0, 0.25):
        env = PureEnv(task(reset_noise_scale=scale), "host", "float64")
        state, _ = jax.jit(env.reset)(np.arange(500))
        spread.append(np.concatenate([state.worlds.qpos - env.model.mj.qpos0, state.worlds.qvel], axis=1))
    assert not spread[0].any()
    assert np.abs(spread[1]).max() <= 0.25
    assert (np.abs(spread[1]).max(axis=0) > 0.24).all()


def test_a_start_depends_on_seed_and_episode_only() -> None:
    env = gymnasium.make("simengine/Reacher-v5", backend="host", dtype="float64").unwrapped
    first = [env.reset(seed=3)[0], env.reset()[0], env.reset()[0]]
    env.step(np.zeros(2))
    again = [env.reset(seed=3)[0], env.reset()[0], env.reset()[0]]
    np.testing.assert_array_equal(first, again)
    assert len({tuple(observation) for observation in first}) == 3
    assert not np.array_equal(env.reset(seed=4)[0], first[0])
