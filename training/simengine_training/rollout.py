"""Rollouts: steps of all worlds under the policy, as one loop inside a JAX program."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simengine_envs import PureEnv, StepResult
from simengine_training.network import Network, Params, log_density
from simengine_training.statistics import Statistics
from simengine_training.worlds import Worlds, episodes_of, to_actions


class Rollout(NamedTuple):
    """T steps of n worlds. Each array is (T, n) or (T, n, size), float32; the two masks are bool.

    Attributes:
        observations: observations before the step, not normalised.
        final_observations: observations after the step, before a new episode started.
        outputs: drawn outputs of the policy, of which -1 and 1 are the limits of an action.
        log_probs: logarithm of the density of the outputs when they were drawn.
        rewards: rewards of the step.
        discounted: discounted sums of the rewards of each episode so far.
        terminated: whether the episode terminated in the step.
        ended: whether the episode terminated or was truncated in the step.
    """

    observations: jax.Array
    final_observations: jax.Array
    outputs: jax.Array
    log_probs: jax.Array
    rewards: jax.Array
    discounted: jax.Array
    terminated: jax.Array
    ended: jax.Array


class Episodes(NamedTuple):
    """Sums over the episodes that ended in a rollout, each ().

    Attributes:
        number: number of episodes.
        returns: sum of their undiscounted returns.
        lengths: sum of their numbers of steps.
        stalled: number of steps in which a world stood still since the memory for contacts was full.
    """

    number: jax.Array
    returns: jax.Array
    lengths: jax.Array
    stalled: jax.Array


def collect(
    env: PureEnv,
    network: Network,
    params: Params,
    statistics: Statistics,
    worlds: Worlds,
    key: jax.Array,
    steps: int,
    gamma: float,
    whole: bool,
) -> tuple[Worlds, Rollout, Episodes]:
    """Collect a rollout.

    Args:
        env: the environment, with autoreset mode SAME_STEP.
        network: the network.
        params: its parameters.
        statistics: statistics that normalise observations.
        worlds: the worlds, n.
        key: key of the noise of actions.
        steps: number of steps, T.
        gamma: discount factor of `Rollout.discounted`.
        whole: whether first episodes are left out of the sums, since they were cut short (see `first_worlds`).
    """

    def step(now: Worlds, step_key: jax.Array) -> tuple[Worlds, Any]:
        means = network.means(params, statistics.normalized(now.observation))
        noise = jax.random.normal(step_key, means.shape, jnp.float32)
        outputs = means + jnp.exp(params.log_std) * noise
        state, result = env.step(now.state, to_actions(env, outputs))
        ended = result.terminated | result.truncated
        reward = result.reward.astype(jnp.float32)
        discounted = reward + gamma * now.discounted
        row = Rollout(
            now.observation,
            result.final_observation,
            outputs,
            log_density(noise, params.log_std),
            reward,
            discounted,
            result.terminated,
            ended,
        )
        counted = ended & (episodes_of(now.state) > 0) if whole else ended
        following = Worlds(state, result.observation, jnp.where(ended, 0, discounted))
        return following, (row, _sums(counted, result))

    keys = jax.vmap(partial(jax.random.fold_in, key))(jnp.arange(steps, dtype=jnp.uint32))
    worlds, (rollout, sums) = jax.lax.scan(step, worlds, keys)
    number, returns, lengths, stalled = (x.sum(dtype=x.dtype) for x in sums)
    return worlds, rollout, Episodes(number, returns, lengths, stalled)


def _sums(counted: jax.Array, result: StepResult) -> tuple[jax.Array, ...]:
    """Number, sum of returns and sum of lengths of the episodes of a mask, and number of worlds that stood still."""
    returns = jnp.where(counted, result.episode_return, 0).sum(dtype=jnp.float32)
    lengths = jnp.where(counted, result.episode_length, 0).sum(dtype=jnp.int32)
    return counted.sum(dtype=jnp.int32), returns, lengths, result.stalled.sum(dtype=jnp.int32)
