"""The network (actor and critic, two perceptrons), its distribution over actions, and the trained policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from simengine_training.extras import nn
from simengine_training.statistics import Statistics

Params = Any  # nested dicts of JAX arrays


class Gaussian(NamedTuple):
    """A normal distribution over actions with diagonal covariance.

    Attributes:
        mean: (..., nu).
        log_std: (nu,), logarithm of the standard deviation, which does not depend on the observation.
    """

    mean: jax.Array
    log_std: jax.Array

    def log_prob(self, actions: jax.Array) -> jax.Array:
        """Logarithm of the density at actions (..., nu): an array (...,)."""
        z = (actions - self.mean) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * z**2 - self.log_std - 0.5 * math.log(2 * math.pi), axis=-1)

    def entropy(self) -> jax.Array:
        """Differential entropy [nat], ()."""
        return jnp.sum(self.log_std + 0.5 * math.log(2 * math.pi * math.e))

    def sample(self, key: jax.Array) -> jax.Array:
        """Draw actions (..., nu)."""
        noise = jax.random.normal(key, self.mean.shape, dtype=self.mean.dtype)
        return self.mean + jnp.exp(self.log_std) * noise


class ActorCritic(nn.Module):
    """Actor and critic, without shared layers.

    Attributes:
        action_size: number of entries of an action, nu.
        hidden_sizes: widths of the hidden layers, the same for actor and critic.
        initial_log_std: logarithm of the standard deviation of each entry of an action before training.
    """

    action_size: int
    hidden_sizes: tuple[int, ...] = (64, 64)
    initial_log_std: float = 0.0

    @nn.compact
    def __call__(self, observations: jax.Array) -> tuple[Gaussian, jax.Array]:
        """The distribution over actions, and the values (...,), at normalised observations (..., size)."""
        # Small weights in the last layer make the first means nearly equal, so that only the noise explores.
        mean = self._perceptron("actor", self.action_size, 0.01, observations)
        constant = nn.initializers.constant(self.initial_log_std, dtype=jnp.float32)
        log_std = self.param("log_std", constant, (self.action_size,))
        value = self._perceptron("critic", 1, 1.0, observations)
        return Gaussian(mean, log_std), value[..., 0]

    def _perceptron(self, name: str, size: int, last_scale: float, x: jax.Array) -> jax.Array:
        for i, width in enumerate(self.hidden_sizes):
            x = nn.tanh(nn.Dense(width, kernel_init=nn.initializers.orthogonal(math.sqrt(2)), name=f"{name}_{i}")(x))
        return nn.Dense(size, kernel_init=nn.initializers.orthogonal(last_scale), name=f"{name}_out")(x)


def forward(network: ActorCritic, params: Params, observations: jax.Array) -> tuple[Gaussian, jax.Array]:
    """Call the network with these parameters; see `ActorCritic.__call__`."""
    return cast("tuple[Gaussian, jax.Array]", network.apply(params, observations))


class Sampled(NamedTuple):
    """Drawn actions (n, nu), logarithms of their densities (n,), and values of the observations (n,)."""

    actions: jax.Array
    log_probs: jax.Array
    values: jax.Array


class Functions(NamedTuple):
    """Compiled functions of a network. Each takes parameters and normalised observations (n, size).

    Attributes:
        sample: draws actions; its third argument is a key.
        value: the values, (n,).
        mean: the most likely actions, (n, nu).
    """

    sample: Callable[[Params, Any, jax.Array], Sampled]
    value: Callable[[Params, Any], jax.Array]
    mean: Callable[[Params, Any], jax.Array]


def compiled(network: ActorCritic) -> Functions:
    """Compile the functions of a network."""

    def sample(params: Params, observations: jax.Array, key: jax.Array) -> Sampled:
        distribution, values = forward(network, params, observations)
        actions = distribution.sample(key)
        return Sampled(actions, distribution.log_prob(actions), values)

    def value(params: Params, observations: jax.Array) -> jax.Array:
        return forward(network, params, observations)[1]

    def mean(params: Params, observations: jax.Array) -> jax.Array:
        return forward(network, params, observations)[0].mean

    return Functions(jax.jit(sample), jax.jit(value), jax.jit(mean))


class Policy:
    """A trained policy, which maps observations to actions.

    Args:
        functions: compiled functions of the network.
        params: parameters of the network.
        statistics: statistics that normalise observations.
    """

    def __init__(self, functions: Functions, params: Params, statistics: Statistics):
        self.functions, self.params, self.statistics = functions, params, statistics

    def act(self, observations: np.ndarray, key: jax.Array | None = None) -> np.ndarray:
        """The actions for observations.

        Args:
            observations: (n, size), not normalised.
            key: draws the actions; None for the most likely actions.

        Returns:
            Actions (n, nu), where [-1, 1] stands for the limits of the action space. A drawn action may exceed them.
        """
        inputs = self.statistics.normalized(observations)
        if key is None:
            return np.asarray(self.functions.mean(self.params, inputs))
        return np.asarray(self.functions.sample(self.params, inputs, key).actions)
