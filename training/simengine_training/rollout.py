"""Rollouts: the policy steps a vector environment for a while, and what happened is kept as arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
from gymnasium.vector import VectorEnv

from simengine_training.environments import last_observations, to_space
from simengine_training.policy import Functions, Params
from simengine_training.statistics import Statistics


class Rollout(NamedTuple):
    """T steps of n environments; every array is (T, n) or (T, n, size), float32 but for the two masks.

    Attributes:
        observations: normalised, before the step.
        actions: as drawn, before they were clipped to the action space.
        log_probs: logarithm of the actions' density when they were drawn.
        values: the critic's, at `observations`.
        rewards: of the step.
        next_values: the critic's at the observation the step led to; of an episode that ended, at its last one.
        terminated: whether the episode ended there for good: nothing follows, and `next_values` does not count.
        ended: whether the episode ended there, for good or because its time was up.
    """

    observations: Any
    actions: Any
    log_probs: Any
    values: Any
    rewards: Any
    next_values: Any
    terminated: Any
    ended: Any


class Collected(NamedTuple):
    """A rollout and what is counted beside it.

    Attributes:
        rollout: with rewards as the environment gave them.
        raw_observations: (T, n, size), not normalised.
        discounted: (T, n), the discounted sum of each episode's rewards so far.
        returns: undiscounted return of every episode that ended, in the order of their ends.
        lengths: steps of those episodes.
    """

    rollout: Rollout
    raw_observations: np.ndarray
    discounted: np.ndarray
    returns: list[float]
    lengths: list[int]


class Collector:
    """Steps a vector environment (autoreset mode SAME_STEP) and goes on where the last rollout stopped.

    Args:
        vector: the environment.
        functions: of the network, compiled.
        gamma: discount of the sums in `Collected.discounted`.
    """

    def __init__(self, vector: VectorEnv, functions: Functions, gamma: float):
        self.vector, self.functions, self.gamma = vector, functions, gamma
        self._observations = np.zeros((0, 0))

    def restart(self, seed: int) -> None:
        """Start new episodes in all environments; must come before the first `collect`."""
        self._observations, _ = self.vector.reset(seed=seed)
        n = self.vector.num_envs
        self._returns, self._lengths, self._discounted = np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(n)

    def collect(self, params: Params, statistics: Statistics, key: jax.Array, steps: int) -> Collected:
        """Step `steps` times, with parameters and statistics that stay the same throughout.

        Args:
            params: the network's.
            statistics: by which observations are normalised.
            key: of the actions' noise.
            steps: T.
        """
        rows: list[Rollout] = []
        raw, discounted, returns, lengths = [], [], [], []
        for step in range(steps):
            raw.append(self._observations)
            row, ended = self._step(params, statistics, jax.random.fold_in(key, step))
            rows.append(row)
            discounted.append(self._discounted.copy())
            returns += self._returns[ended].tolist()
            lengths += self._lengths[ended].tolist()
            for counter in (self._returns, self._lengths, self._discounted):
                counter[ended] = 0
        rollout = Rollout(*(np.stack(column) for column in zip(*rows, strict=True)))
        last = np.asarray(self.functions.value(params, statistics.normalized(self._observations)))
        following = np.concatenate([rollout.values[1:], last[None]])
        truncated = rollout.ended & ~rollout.terminated
        rollout = rollout._replace(next_values=np.where(truncated, rollout.next_values, following))
        return Collected(rollout, np.stack(raw), np.stack(discounted), returns, lengths)

    def _step(self, params: Params, statistics: Statistics, key: jax.Array) -> tuple[Rollout, np.ndarray]:
        """One step; its `next_values` are right only where an episode was truncated. Also who ended, indices."""
        inputs = statistics.normalized(self._observations)
        actions, log_probs, values = map(np.asarray, self.functions.sample(params, inputs, key))
        taken = to_space(actions, self.vector)
        self._observations, rewards, terminated, truncated, infos = self.vector.step(taken)
        self._returns += rewards
        self._lengths += 1
        self._discounted = rewards + self.gamma * self._discounted
        next_values = np.zeros_like(values)
        if (truncated & ~terminated).any():
            last = last_observations(self._observations, infos)
            next_values = np.asarray(self.functions.value(params, statistics.normalized(last)))
        ended = terminated | truncated
        reward = np.asarray(rewards, dtype=np.float32)
        row = Rollout(inputs, actions, log_probs, values, reward, next_values, terminated.copy(), ended)
        return row, np.flatnonzero(ended)
