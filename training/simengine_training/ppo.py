"""Proximal policy optimisation: advantages, the loss of a minibatch, and the update by a rollout.

Sources: Schulman et al., "Proximal Policy Optimization Algorithms" (2017), equations 7 and 9; Schulman et al.,
"High-Dimensional Continuous Control Using Generalized Advantage Estimation" (2016), equation 16.

With `target_kl` the learning rate follows the divergence by the rule that section 4 of the first paper gives for a
penalty, with a factor of 1.5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine_training.arguments import Arguments
from simengine_training.devices import mean_over
from simengine_training.extras import optax
from simengine_training.network import Network, Params, entropy, log_density
from simengine_training.rollout import Rollout
from simengine_training.statistics import Statistics

_RATE_LIMITS = 1e-5, 1e-2  # of a learning rate that follows the divergence
_RATE_FACTOR = 1.5

Parts = dict[str, jax.Array]


class Learner(NamedTuple):
    """What an update changes. It is the same on each device.

    Attributes:
        params: parameters of the network.
        opt_state: state of the optimiser.
        rate: (), learning rate of the latest minibatch.
        observations: statistics of the observations.
        returns: statistics of the discounted sums of rewards.
        updates: (), int32, number of updates done.
    """

    params: Params
    opt_state: Any
    rate: jax.Array
    observations: Statistics
    returns: Statistics
    updates: jax.Array


class Samples(NamedTuple):
    """Samples of a rollout without its time axis, with advantages and target values. Arrays are (n,) or (n, size)."""

    inputs: jax.Array
    outputs: jax.Array
    log_probs: jax.Array
    advantages: jax.Array
    targets: jax.Array


def gae(
    rewards: jax.Array,
    values: jax.Array,
    next_values: jax.Array,
    terminated: jax.Array,
    ended: jax.Array,
    gamma: float,
    gae_lambda: float,
) -> tuple[jax.Array, jax.Array]:
    """Generalised advantage estimates, and target values of the critic. All arrays are (T, n).

    A truncated episode has not terminated: the value of its last observation estimates the rewards that are missing.

    Args:
        rewards: rewards of the steps.
        values: values of the observations before the steps.
        next_values: values of the observations after the steps, before new episodes started.
        terminated: whether the episode terminated in the step.
        ended: whether the episode terminated or was truncated in the step.
        gamma: discount factor.
        gae_lambda: lambda of the estimate.
    """
    deltas = rewards + gamma * jnp.where(terminated, 0.0, next_values) - values
    decay = jnp.where(ended, 0.0, gamma * gae_lambda).astype(deltas.dtype)

    def backwards(following: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        delta, factor = now
        advantage = delta + factor * following
        return advantage, advantage

    _, advantages = jax.lax.scan(backwards, jnp.zeros_like(deltas[0]), (deltas, decay), reverse=True)
    return advantages, advantages + values


def clipped_objective(
    log_probs: jax.Array, old_log_probs: jax.Array, advantages: jax.Array, clip: float
) -> tuple[jax.Array, Parts]:
    """PPO's loss of the policy, (), with the approximate KL divergence and the fraction of clipped ratios.

    Arrays are (n,). `old_log_probs` belong to the policy that drew the actions.
    """
    log_ratio = log_probs - old_log_probs
    ratio = jnp.exp(log_ratio)
    gain = jnp.minimum(ratio * advantages, jnp.clip(ratio, 1 - clip, 1 + clip) * advantages)
    moved = {
        "approx_kl": jnp.mean(ratio - 1 - log_ratio),
        "clip_fraction": jnp.mean((jnp.abs(ratio - 1) > clip).astype(ratio.dtype)),
    }
    return -jnp.mean(gain), moved


def loss(params: Params, network: Network, samples: Samples, arguments: Arguments) -> tuple[jax.Array, Parts]:
    """The loss of a minibatch, (), and its parts."""
    noise = (samples.outputs - network.means(params, samples.inputs)) * jnp.exp(-params.log_std)
    log_probs = log_density(noise, params.log_std)
    policy_loss, moved = clipped_objective(log_probs, samples.log_probs, samples.advantages, arguments.clip)
    value_loss = 0.5 * jnp.mean((network.values(params, samples.inputs) - samples.targets) ** 2)
    spread = entropy(params.log_std)
    total = policy_loss + arguments.value_coef * value_loss - arguments.entropy_coef * spread
    return total, {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": spread, **moved}


def optimizer() -> optax.GradientTransformation:
    """Adam without a rate, which `update` multiplies by."""
    return optax.scale_by_adam(eps=1e-5)


def first_learner(arguments: Arguments, network: Network) -> Learner:
    """The learner before the first update, as arrays of NumPy."""
    params = network.init(arguments.seed, arguments.initial_log_std)
    # Adam starts from zeros
    opt_state = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), jax.eval_shape(optimizer().init, params))
    return Learner(
        params,
        opt_state,
        np.asarray(arguments.learning_rate, np.float32),  # type: ignore[arg-type]
        Statistics.empty((network.observation_size,)),
        Statistics.empty(),
        np.zeros((), np.int32),  # type: ignore[arg-type]
    )


def samples_of(rollout: Rollout, learner: Learner, network: Network, arguments: Arguments, axis: str | None) -> Samples:
    """The samples of a rollout, whose rewards are scaled by the learner's statistics.

    Values are those of the parameters that drew the actions. Advantages have mean 0 and deviation 1.
    """
    inputs, finals = map(learner.observations.normalized, (rollout.observations, rollout.final_observations))
    values, next_values = (network.values(learner.params, x) for x in (inputs, finals))
    rewards = learner.returns.scaled(rollout.rewards) if arguments.normalize_rewards else rollout.rewards
    advantages, targets = gae(
        rewards, values, next_values, rollout.terminated, rollout.ended, arguments.gamma, arguments.gae_lambda
    )
    centred = advantages - mean_over(advantages.mean(), axis)
    advantages = centred / (jnp.sqrt(mean_over((centred**2).mean(), axis)) + 1e-8)
    whole = Samples(inputs, rollout.outputs, rollout.log_probs, advantages, targets)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), whole)


def updated(
    learner: Learner, samples: Samples, key: jax.Array, network: Network, arguments: Arguments, axis: str | None
) -> tuple[Learner, Parts]:
    """The learner after all epochs over samples, and the mean of each part of the loss.

    Args:
        learner: the learner.
        samples: (n,) samples, on each device its own.
        key: key of the order of the samples.
        network: the network.
        arguments: arguments of the training.
        axis: name of the axis of devices, over which gradients are averaged; None for one device.
    """
    count = len(samples.advantages)
    adam = optimizer()
    share = 1 - learner.updates.astype(jnp.float32) / arguments.num_updates if arguments.anneal else jnp.float32(1)

    def minibatch(carry: Any, chosen: jax.Array) -> tuple[Any, Parts]:
        params, opt_state, rate = carry
        own = jax.tree.map(lambda x: x[chosen], samples)
        gradients, parts = jax.grad(loss, has_aux=True)(params, network, own, arguments)
        gradients, parts = mean_over((gradients, parts), axis)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradients)))
        shrunk = jax.tree.map(lambda g: g * jnp.minimum(1, arguments.max_grad_norm / (norm + 1e-8)), gradients)
        changes, opt_state = adam.update(shrunk, opt_state)
        rate = _next_rate(rate, parts["approx_kl"], arguments.target_kl)
        params = jax.tree.map(lambda p, change: p - rate * share * change, params, changes)
        return (params, opt_state, rate), parts

    def epoch(carry: Any, epoch_key: jax.Array) -> tuple[Any, Parts]:
        order = jax.random.permutation(epoch_key, jnp.arange(count, dtype=jnp.int32))
        return jax.lax.scan(minibatch, carry, order.reshape(arguments.minibatches, -1))

    start = learner.params, learner.opt_state, learner.rate
    (params, opt_state, rate), parts = jax.lax.scan(epoch, start, jax.random.split(key, arguments.epochs))
    after = learner._replace(params=params, opt_state=opt_state, rate=rate, updates=learner.updates + 1)
    return after, {name: part.mean() for name, part in parts.items()}


def _next_rate(rate: jax.Array, divergence: jax.Array, target: float) -> jax.Array:
    """The rate after a minibatch: lower where the policy moved twice as far as the target, higher below half of it."""
    if not target:
        return rate
    low, high = (jnp.clip(rate * factor, *_RATE_LIMITS) for factor in (1 / _RATE_FACTOR, _RATE_FACTOR))
    # exactly zero is the first minibatch of an update, which says nothing
    slow = (divergence < target / 2) & (divergence > 0)
    return jnp.where(divergence > 2 * target, low, jnp.where(slow, high, rate))
