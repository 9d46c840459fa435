"""Whole episodes under the most likely actions, inside a JAX program: what chooses the best policy of a training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simengine_envs import PureEnv
from simengine_training.network import Network, Params
from simengine_training.statistics import Statistics
from simengine_training.worlds import States, to_actions

MAX_STEPS = 100_000  # of an episode; a longer one is taken to have no end
_BLOCK = 25  # steps after which the loop looks whether an episode still runs, for which a GPU waits


class Trial(NamedTuple):
    """Episodes of n worlds, one of each.

    Attributes:
        returns: (n,) float32, undiscounted returns.
        lengths: (n,) int32, numbers of steps.
        running: (n,) bool, whether the episode has not ended after `MAX_STEPS` steps.
        stalled: (n,) bool, whether the world stood still in a step since the memory for contacts was full.
    """

    returns: jax.Array
    lengths: jax.Array
    running: jax.Array
    stalled: jax.Array


class _Now(NamedTuple):
    state: States
    observation: jax.Array
    trial: Trial
    steps: jax.Array


def make_trial(env: PureEnv, network: Network) -> Callable[[Params, Statistics, jax.Array], Trial]:
    """The function (params, statistics, seeds (n,)) -> `Trial`, to be compiled by `jax.jit`.

    Args:
        env: the environment, with autoreset mode DISABLED.
        network: the network.
    """

    def run(params: Params, statistics: Statistics, seeds: jax.Array) -> Trial:
        def step(now: _Now, _: Any) -> tuple[_Now, None]:
            outputs = network.means(params, statistics.normalized(now.observation))
            state, result = env.step(now.state, to_actions(env, outputs))
            running = now.trial.running
            returns = now.trial.returns + jnp.where(running, result.reward, 0).astype(jnp.float32)
            lengths = now.trial.lengths + running.astype(jnp.int32)
            running, stalled = running & ~(result.terminated | result.truncated), now.trial.stalled | result.stalled
            trial = Trial(returns, lengths, running, stalled)
            return _Now(state, result.observation, trial, now.steps + 1), None

        def unfinished(now: _Now) -> jax.Array:
            return now.trial.running.any() & (now.steps < MAX_STEPS)

        state, observation = env.reset(jnp.asarray(seeds, jnp.uint32))
        count = len(seeds)
        none = Trial(
            jnp.zeros(count, jnp.float32), jnp.zeros(count, jnp.int32), jnp.ones(count, bool), jnp.zeros(count, bool)
        )
        first = _Now(state, observation, none, jnp.zeros((), jnp.int32))
        return jax.lax.while_loop(unfinished, lambda now: jax.lax.scan(step, now, None, _BLOCK)[0], first).trial

    return run
