"""Advantages against a plain loop, and against sums that can be done by hand."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simengine_training.ppo import gae

jitted = jax.jit(gae, static_argnums=(5, 6))


def reference(
    rewards: np.ndarray,
    values: np.ndarray,
    next_values: np.ndarray,
    terminated: np.ndarray,
    ended: np.ndarray,
    gamma: float,
    lam: float,
) -> np.ndarray:
    """The defining sum, world by world: (gamma lambda)^k times the temporal difference k steps on, to the end."""
    steps, worlds = rewards.shape
    advantages = np.zeros((steps, worlds))
    for world in range(worlds):
        for start in range(steps):
            weight = 1.0
            for t in range(start, steps):
                follows = 0.0 if terminated[t, world] else next_values[t, world]
                delta = rewards[t, world] + gamma * follows - values[t, world]
                advantages[start, world] += weight * delta
                if ended[t, world]:
                    break
                weight *= gamma * lam
    return advantages


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.sampled_from([1, 2, 7]),
    ends=st.floats(0, 1),
    gamma=st.sampled_from([0.0, 0.9, 1.0]),
    lam=st.sampled_from([0.0, 0.95, 1.0]),
)
def test_gae_is_the_defining_sum(seed: int, steps: int, ends: float, gamma: float, lam: float) -> None:
    rng = np.random.default_rng(seed)
    rewards, values, next_values = rng.normal(size=(3, steps, 3)).astype(np.float32)
    ended = rng.random((steps, 3)) < ends
    terminated = ended & (rng.random((steps, 3)) < 0.5)
    advantages, targets = jitted(rewards, values, next_values, terminated, ended, gamma, lam)
    expected = reference(rewards, values, next_values, terminated, ended, gamma, lam)
    assert advantages.dtype == np.float32
    np.testing.assert_allclose(advantages, expected, atol=2e-5)
    np.testing.assert_allclose(targets, expected + values, atol=2e-5)


@pytest.mark.parametrize(
    ("terminated", "ended", "expected"),
    [
        ([False, False], [False, False], [1 + 0.5 * 4 - 2 + 0.25 * (3 + 0.5 * 6 - 4), 3 + 0.5 * 6 - 4]),
        ([True, False], [True, False], [1 - 2, 3 + 0.5 * 6 - 4]),
        ([False, False], [True, False], [1 + 0.5 * 4 - 2, 3 + 0.5 * 6 - 4]),
        ([False, True], [False, True], [1 + 0.5 * 4 - 2 + 0.25 * (3 - 4), 3 - 4]),
    ],
    ids=["goes on", "terminated", "truncated", "terminated at last"],
)
def test_two_steps_by_hand(terminated: list[bool], ended: list[bool], expected: list[float]) -> None:
    columns = ([1.0, 3.0], [2.0, 4.0], [4.0, 6.0])
    arrays = [np.array(column, dtype=np.float32)[:, None] for column in columns]
    masks = [np.array(mask)[:, None] for mask in (terminated, ended)]
    advantages, _ = gae(*arrays, *masks, 0.5, 0.5)
    np.testing.assert_allclose(advantages[:, 0], expected, rtol=1e-6)
