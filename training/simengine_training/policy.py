"""Actor and critic: two perceptrons, a Gaussian over actions, and the policy that is kept and evaluated."""

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
    """A diagonal normal distribution over actions.

    Attributes:
        mean: (..., nu).
        log_std: (nu,), the same in every state.
    """

    mean: jax.Array
    log_std: jax.Array

    def log_prob(self, actions: jax.Array) -> jax.Array:
        """Logarithm of the density at actions (..., nu), (...,)."""
        z = (actions - self.mean) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * z**2 - self.log_std - 0.5 * math.log(2 * math.pi), axis=-1)

    def entropy(self) -> jax.Array:
        """Differential entropy, ()."""
        return jnp.sum(self.log_std + 0.5 * math.log(2 * math.pi * math.e))

    def sample(self, key: jax.Array) -> jax.Array:
        """Actions (..., nu)."""
        noise = jax.random.normal(key, self.mean.shape, dtype=self.mean.dtype)
        return self.mean + jnp.exp(self.log_std) * noise


class ActorCritic(nn.Module):
    """Policy and value, without shared layers.

    Attributes:
        action_size: nu.
        hidden_sizes: widths of the hidden layers of each.
        initial_log_std: of every action at the start.
    """

    action_size: int
    hidden_sizes: tuple[int, ...] = (64, 64)
    initial_log_std: float = 0.0

    @nn.compact
    def __call__(self, observations: jax.Array) -> tuple[Gaussian, jax.Array]:
        """Distribution over actions and values (...,) at normalised observations (..., size)."""
        # A small last layer makes all first actions alike, so that exploration comes from the noise alone.
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
    """`ActorCritic.__call__` under these parameters."""
    return cast("tuple[Gaussian, jax.Array]", network.apply(params, observations))


class Sampled(NamedTuple):
    """What the policy did: actions (n, nu), log_probs (n,), values (n,)."""

    actions: jax.Array
    log_probs: jax.Array
    values: jax.Array


class Functions(NamedTuple):
    """The network's functions, compiled: each takes parameters and normalised observations (n, size)."""

    sample: Callable[[Params, Any, jax.Array], Sampled]  # and a key
    value: Callable[[Params, Any], jax.Array]  # (n,)
    mean: Callable[[Params, Any], jax.Array]  # (n, nu)


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
    """What a training leaves behind: observations in, actions out.

    Args:
        functions: of the network, compiled.
        params: the network's parameters.
        statistics: by which observations are normalised.
    """

    def __init__(self, functions: Functions, params: Params, statistics: Statistics):
        self.functions, self.params, self.statistics = functions, params, statistics

    def act(self, observations: np.ndarray, key: jax.Array | None = None) -> np.ndarray:
        """Actions (n, nu) for raw observations (n, size): the most likely, or drawn with `key`.

        [-1, 1] spans the environment's action space; an action drawn may leave it.
        """
        inputs = self.statistics.normalized(observations)
        if key is None:
            return np.asarray(self.functions.mean(self.params, inputs))
        return np.asarray(self.functions.sample(self.params, inputs, key).actions)
