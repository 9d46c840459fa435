"""Collects rollouts of simengine's own environments as one compiled program, in which no step waits for the host."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine_envs import BatchEnv, EnvState
from simengine_training.policy import ActorCritic, Params, forward
from simengine_training.rollout import Collected, Rollout
from simengine_training.statistics import LIMIT, TINY, Moments, Statistics


class Running(NamedTuple):
    """What one rollout leaves to the next: environments, their observations, and discounted sums of rewards (n,)."""

    state: EnvState
    observations: jax.Array
    discounted: jax.Array


class Seen(NamedTuple):
    """What a program reports beside the rollout: moments, and returns and lengths (T, n) of episodes so far."""

    observed: tuple[jax.Array, jax.Array]
    discounted: tuple[jax.Array, jax.Array]
    returns: jax.Array
    lengths: jax.Array


class DeviceCollector:
    """Collects rollouts of a vector environment with arrays of JAX. It does what `Collector` does.

    Args:
        vector: vector environment in autoreset mode SAME_STEP.
        network: the network.
        gamma: discount factor of the discounted sums of rewards.
    """

    def __init__(self, vector: BatchEnv, network: ActorCritic, gamma: float):
        self.vector, self._network, self._gamma = vector, network, gamma
        space = vector.single_action_space
        self._low, self._high = space.low, space.high  # type: ignore[attr-defined]
        self._program = jax.jit(self._collected, static_argnames="steps")
        self._running: Running | None = None

    def restart(self, seed: int) -> None:
        """Start new episodes in all environments. The first `collect` needs a call of it before."""
        observations, _ = self.vector.reset(seed=seed)
        assert self.vector.state is not None
        self._running = Running(self.vector.state, observations, jnp.zeros_like(observations[:, 0]))

    def collect(self, params: Params, statistics: Statistics, key: jax.Array, steps: int) -> Collected:
        """Collect a rollout; see `Collector.collect`. Its arrays stay on the device."""
        runner = self.vector.runner
        with runner.scope():
            numbers = (jnp.asarray(x, jnp.float32) for x in (statistics.mean, np.sqrt(statistics.var + TINY)))
            given = jax.device_put((params, *numbers, key), runner.device)
            self._running, rollout, seen = self._program(*given, self._running, steps=steps)
        self.vector.state = self._running.state
        ended = np.asarray(rollout.ended)
        observed, discounted = (
            Moments(ended.size, np.asarray(mean, np.float64), np.asarray(var, np.float64))
            for mean, var in (seen.observed, seen.discounted)
        )
        returns, lengths = (np.asarray(x)[ended].tolist() for x in (seen.returns, seen.lengths))
        return Collected(rollout, observed, discounted, returns, lengths)

    def _collected(
        self, params: Params, mean: jax.Array, deviation: jax.Array, key: jax.Array, running: Running, steps: int
    ) -> tuple[Running, Rollout, Seen]:
        pure = self.vector.pure
        middle, half = (self._high + self._low) / 2, (self._high - self._low) / 2

        def inputs_of(observations: jax.Array) -> jax.Array:
            return jnp.clip((observations.astype(jnp.float32) - mean) / deviation, -LIMIT, LIMIT)

        values_of = partial(_values, self._network, params)

        def step(now: Running, step_key: jax.Array) -> tuple[Running, Any]:
            inputs = inputs_of(now.observations)
            distribution, values = forward(self._network, params, inputs)
            actions = distribution.sample(step_key)
            taken = jnp.clip(middle + half * actions, self._low, self._high)
            state, result = pure.step(now.state, taken)
            ended = result.terminated | result.truncated
            discounted = result.reward + self._gamma * now.discounted
            row = Rollout(
                inputs,
                actions,
                distribution.log_prob(actions),
                values,
                result.reward.astype(jnp.float32),
                values_of(inputs_of(result.final_observation)),
                result.terminated,
                ended,
            )
            following = Running(state, result.observation, jnp.where(ended, 0, discounted))
            return following, (row, now.observations, discounted, result.episode_return, result.episode_length)

        # the keys of `Collector`: the step's number folded into the rollout's key
        keys = jax.vmap(partial(jax.random.fold_in, key))(jnp.arange(steps))
        running, (rollout, observed, discounted, returns, lengths) = jax.lax.scan(step, running, keys)
        following = jnp.concatenate([rollout.values[1:], values_of(inputs_of(running.observations))[None]])
        truncated = rollout.ended & ~rollout.terminated
        rollout = rollout._replace(next_values=jnp.where(truncated, rollout.next_values, following))
        moments = ((x.mean(axis=(0, 1)), x.var(axis=(0, 1))) for x in (observed, discounted))
        return running, rollout, Seen(next(moments), next(moments), returns, lengths)


def _values(network: ActorCritic, params: Params, inputs: jax.Array) -> jax.Array:
    return forward(network, params, inputs)[1]
