"""CartPoleSwingUp: what is observed and rewarded, and that the pole cannot be lifted in one go."""

from __future__ import annotations

import gymnasium
import numpy as np

NAME = "simengine/CartPoleSwingUp-v0"


def test_a_standing_pole_earns_most_and_a_hanging_one_nothing() -> None:
    env = gymnasium.make(NAME, backend="host", dtype="float64").unwrapped
    env.reset(seed=0)
    rewards = {}
    for name, angle in (("upright", 0.0), ("level", np.pi / 2), ("hanging", np.pi)):
        env.set_state(np.array([0.0, angle]), np.zeros(2))
        observation, rewards[name], terminated, _, info = env.step(np.zeros(1))
        np.testing.assert_allclose(observation[1] ** 2 + observation[2] ** 2, 1)
        assert not terminated
        assert info["success"] == (name == "upright")
    assert rewards["upright"] > 0.98
    assert 0.3 < rewards["level"] < 0.6
    assert rewards["hanging"] < 0.01


def test_swinging_lifts_the_pole_and_a_constant_push_does_not() -> None:
    """A push along the pole's own motion pumps energy into it."""
    env = gymnasium.make_vec(NAME, num_envs=2, backend="host")
    observation, _ = env.reset(seed=0)
    highest = np.full(2, -1.0)
    for _ in range(150):
        x, cosine, _, _, turning = observation.T
        pump = np.sign(turning * cosine) * 0.9 - 0.3 * x
        action = np.stack([-pump[:1], np.ones(1)])
        observation = env.step(np.clip(action, -1, 1))[0]
        highest = np.maximum(highest, observation[:, 1])
    assert highest[0] > 0.5
    assert highest[1] < highest[0]
