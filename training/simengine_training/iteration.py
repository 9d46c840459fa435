"""One iteration of the training as one JAX program: a rollout, its advantages, and the epochs over it.

All random numbers follow from the seed and the number of the update. A training that goes on from a `TrainState` has
therefore the bits of one that was not interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from simengine_envs import PureEnv
from simengine_training.arguments import Arguments
from simengine_training.devices import AXIS, over_devices, sum_over
from simengine_training.network import Network
from simengine_training.ppo import Learner, samples_of, updated
from simengine_training.rollout import Episodes, collect
from simengine_training.worlds import Worlds, first_worlds


class TrainState(NamedTuple):
    """All that an iteration depends on.

    Attributes:
        learner: the network, the optimiser and the statistics.
        worlds: the worlds.
    """

    learner: Learner
    worlds: Worlds


class Report(NamedTuple):
    """What an iteration tells. Every entry is ().

    Attributes:
        parts: mean of each part of the loss, by name.
        episodes: sums over the episodes that ended.
    """

    parts: dict[str, jax.Array]
    episodes: Episodes


def make_iteration(env: PureEnv, network: Network, arguments: Arguments, mesh: Mesh | None) -> Callable[..., Any]:
    """The function (TrainState) -> (TrainState, Report), to be compiled by `jax.jit`.

    Args:
        env: the environment, with autoreset mode SAME_STEP.
        network: the network.
        arguments: arguments of the training.
        mesh: devices among which the worlds are divided; None for one device.
    """
    axis = None if mesh is None else AXIS

    def iterate(learner: Learner, worlds: Worlds) -> tuple[Learner, Worlds, Report]:
        key = jax.random.fold_in(jax.random.key(arguments.seed), learner.updates)
        if axis is not None:
            key = jax.random.fold_in(key, jax.lax.axis_index(axis))
        rollout_key, update_key = jax.random.split(key)
        worlds, rollout, episodes = collect(
            env, network, learner.params, learner.observations, worlds, rollout_key,
            arguments.rollout_steps, arguments.gamma, arguments.spread_starts,
        )  # fmt: skip
        if arguments.normalize_rewards:
            learner = learner._replace(returns=learner.returns.updated(rollout.discounted, axis))
        samples = samples_of(rollout, learner, network, arguments, axis)
        learner, parts = updated(learner, samples, update_key, network, arguments, axis)
        if arguments.normalize_observations:
            # after the update, so that the ratios of its first minibatch are 1
            learner = learner._replace(observations=learner.observations.updated(rollout.observations, axis))
        return learner, worlds, Report(parts, sum_over(episodes, axis))

    parallel = over_devices(iterate, mesh, (False, True), (False, True, False))

    def whole(state: TrainState) -> tuple[TrainState, Report]:
        learner, worlds, report = parallel(state.learner, state.worlds)
        return TrainState(learner, worlds), report

    return whole


def make_first_worlds(env: PureEnv, arguments: Arguments, mesh: Mesh | None) -> Callable[[jax.Array], Worlds]:
    """The function seeds (n,) -> worlds at the start of their first episodes, to be compiled by `jax.jit`."""

    def first(seeds: jax.Array) -> tuple[Worlds]:
        return (first_worlds(env, seeds, arguments.spread_starts),)

    parallel = over_devices(first, mesh, (True,), (True,))
    return lambda seeds: parallel(jnp.asarray(seeds, jnp.uint32))[0]
