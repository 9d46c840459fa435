"""Evaluates a policy by its mean return over whole episodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
from gymnasium.vector import VectorEnv

from simengine_training.environments import make_envs, to_space
from simengine_training.errors import TrainingError
from simengine_training.policy import Policy

MAX_STEPS = 100_000  # of an episode; a longer one is taken to have no end


class Evaluation(NamedTuple):
    """Undiscounted returns of whole episodes.

    Attributes:
        returns: (episodes,), undiscounted return of each episode.
        lengths: (episodes,), number of steps of each episode.
    """

    returns: np.ndarray
    lengths: np.ndarray

    @property
    def mean(self) -> float:
        """Mean return of an episode."""
        return float(self.returns.mean())

    def as_dict(self) -> dict[str, Any]:
        """Mean and standard deviation of the returns, mean length, and number of episodes, ready for JSON."""
        return {
            "return_mean": round(self.mean, 3),
            "return_std": round(float(self.returns.std()), 3),
            "length_mean": round(float(self.lengths.mean()), 1),
            "episodes": len(self.returns),
        }


def evaluate_policy(
    policy: Policy,
    env_id: str,
    episodes: int = 16,
    *,
    seed: int = 0,
    env_arguments: dict[str, Any] | None = None,
    stochastic: bool = False,
) -> Evaluation:
    """Run one episode in each of `episodes` environments.

    Each environment counts once, since the first episodes to end in a few environments would be short ones too often.

    Args:
        policy: the policy.
        env_id: id of the environment.
        episodes: number of episodes, and of environments.
        seed: seed of the environments and of the noise of actions.
        env_arguments: further arguments of the environment.
        stochastic: whether actions are drawn from the distribution. If not, the most likely actions are taken.

    Raises:
        ValueError: `episodes` is less than 1, or the spaces of the environment are not supported.
        TrainingError: the environment cannot be made, or an episode has not ended after `MAX_STEPS` steps.
    """
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1, not {episodes}")
    vector = make_envs(env_id, episodes, env_arguments)
    try:
        return run_episodes(policy, vector, seed, stochastic)
    finally:
        vector.close()


def run_episodes(policy: Policy, vector: VectorEnv, seed: int, stochastic: bool = False) -> Evaluation:
    """Run the first episode of each environment of `vector`; see `evaluate_policy`.

    Raises:
        TrainingError: an episode has not ended after `MAX_STEPS` steps.
    """
    observations, _ = vector.reset(seed=seed)
    returns, lengths = np.zeros(vector.num_envs), np.zeros(vector.num_envs, dtype=np.int64)
    running = np.ones(vector.num_envs, dtype=bool)
    key = jax.random.key(seed)
    for step in range(MAX_STEPS):
        if not running.any():
            return Evaluation(returns, lengths)
        actions = policy.act(observations, jax.random.fold_in(key, step) if stochastic else None)
        observations, rewards, terminated, truncated, _ = vector.step(to_space(actions, vector))
        returns[running] += rewards[running]
        lengths[running] += 1
        running &= ~(terminated | truncated)
    raise TrainingError(
        f"the episode of environment {np.flatnonzero(running)[0]} has not ended after {MAX_STEPS} steps; give the "
        "environment a time limit, or train with eval_episodes=0"
    )
