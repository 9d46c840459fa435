"""Collects rollouts: arrays with the steps of a vector environment under a policy."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
from gymnasium.vector import VectorEnv

from simengine_training.environments import last_observations, to_space
from simengine_training.policy import Functions, Params
from simengine_training.statistics import Moments, Statistics


class Rollout(NamedTuple):
    """T steps of n environments. Each array is (T, n) or (T, n, size) float32; the two masks are bool.

    Attributes:
        observations: normalised observations before the step.
        actions: drawn actions, before they were clipped to the action space.
        log_probs: logarithm of the density of the actions when they were drawn.
        values: values that the critic gives `observations`.
        rewards: rewards of the step.
        next_values: values that the critic gives the observations after the step. If the episode was truncated, this is
            its last observation. If it terminated, the value is not used.
        terminated: whether the episode terminated in the step.
        ended: whether the episode terminated or was truncated in the step.
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
    """A rollout, with the data that statistics and the learning curve need.

    Attributes:
        rollout: the rollout, with rewards as the environment gave them.
        observed: moments of the observations before the steps, not normalised.
        discounted: moments of the discounted sums of the rewards of each episode so far.
        returns: undiscounted return of each episode that ended, in the order of their ends.
        lengths: number of steps of each of these episodes.
    """

    rollout: Rollout
    observed: Moments
    discounted: Moments
    returns: list[float]
    lengths: list[int]


class Collector:
    """Collects rollouts in a vector environment. A rollout goes on where the last one stopped.

    Args:
        vector: vector environment in autoreset mode SAME_STEP.
        functions: compiled functions of the network.
        gamma: discount factor of the discounted sums.
    """

    def __init__(self, vector: VectorEnv, functions: Functions, gamma: float):
        self.vector, self.functions, self.gamma = vector, functions, gamma
        self._observations = np.zeros((0, 0))

    def restart(self, seed: int) -> None:
        """Start new episodes in all environments. The first `collect` needs a call of it before."""
        self._observations, _ = self.vector.reset(seed=seed)
        n = self.vector.num_envs
        self._returns, self._lengths, self._discounted = np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(n)

    def collect(self, params: Params, statistics: Statistics, key: jax.Array, steps: int) -> Collected:
        """Collect a rollout.

        Args:
            params: parameters of the network.
            statistics: statistics that normalise observations.
            key: key of the noise of actions.
            steps: number of steps, T.
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
        observed, sums = Moments.of(np.stack(raw), 2), Moments.of(np.stack(discounted), 2)
        return Collected(rollout, observed, sums, returns, lengths)

    def _step(self, params: Params, statistics: Statistics, key: jax.Array) -> tuple[Rollout, np.ndarray]:
        """Step once, and return the step and the indices of the environments whose episode ended.

        `next_values` is only valid for episodes that were truncated; `collect` fills in the others.
        """
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
