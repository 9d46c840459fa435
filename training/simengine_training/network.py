"""The network: an actor, whose outputs are means of a Gaussian, and a critic. Both are perceptrons."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

ACTIVATIONS = {"elu": jax.nn.elu, "relu": jax.nn.relu, "silu": jax.nn.silu, "tanh": jnp.tanh}
_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


class Layer(NamedTuple):
    """An affine map: weights (inputs, outputs) and biases (outputs,)."""

    weights: jax.Array
    biases: jax.Array


class Params(NamedTuple):
    """Parameters of the network, float32.

    Attributes:
        actor: layers from the observation to the means of the actions.
        critic: layers from the observation to the value.
        log_std: (actions,), logarithm of the actions' standard deviation, which does not depend on the observation.
    """

    actor: tuple[Layer, ...]
    critic: tuple[Layer, ...]
    log_std: jax.Array


class Network(NamedTuple):
    """The shape of the network, and its functions.

    Attributes:
        observation_size: number of entries of an observation.
        action_size: number of entries of an action.
        hidden_sizes: widths of the hidden layers, the same for actor and critic.
        activation: name of the function after each hidden layer; see `ACTIVATIONS`.
    """

    observation_size: int
    action_size: int
    hidden_sizes: tuple[int, ...] = (64, 64)
    activation: str = "tanh"

    def init(self, seed: int, initial_log_std: float = 0.0) -> Params:
        """First parameters, as arrays of NumPy. They depend on the seed and on the sizes alone.

        Weights are orthogonal (Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear
        neural networks", 2014). Those of the actor's last layer are small, so that at first only the noise explores.
        """
        actor, critic = (np.random.default_rng([seed, k]) for k in range(2))
        log_std = np.full(self.action_size, initial_log_std, np.float32)
        return Params(self._layers(actor, self.action_size, 0.01), self._layers(critic, 1, 1.0), log_std)  # type: ignore[arg-type]

    def _layers(self, draw: np.random.Generator, outputs: int, last_gain: float) -> tuple[Layer, ...]:
        sizes = (self.observation_size, *self.hidden_sizes, outputs)
        gains = [math.sqrt(2)] * len(self.hidden_sizes) + [last_gain]
        return tuple(
            Layer(_orthogonal(draw, *pair, gain), np.zeros(pair[1], np.float32))  # type: ignore[arg-type]
            for pair, gain in zip(pairwise(sizes), gains, strict=True)
        )

    def means(self, params: Params, inputs: jax.Array) -> jax.Array:
        """Means of the actions (..., actions) for normalised observations (..., observations)."""
        return self._perceptron(params.actor, inputs)

    def values(self, params: Params, inputs: jax.Array) -> jax.Array:
        """Values (...,) of normalised observations (..., observations)."""
        return self._perceptron(params.critic, inputs)[..., 0]

    def _perceptron(self, layers: tuple[Layer, ...], x: jax.Array) -> jax.Array:
        activate = ACTIVATIONS[self.activation]
        for layer in layers[:-1]:
            x = activate(x @ layer.weights + layer.biases)
        return x @ layers[-1].weights + layers[-1].biases


def _orthogonal(draw: np.random.Generator, inputs: int, outputs: int, gain: float) -> np.ndarray:
    """A random matrix whose rows or columns are orthogonal and of length `gain`."""
    q, r = np.linalg.qr(draw.normal(size=(max(inputs, outputs), min(inputs, outputs))))
    q = q * np.sign(np.diag(r))  # so that it is uniform among the orthogonal matrices
    return (gain * (q if inputs >= outputs else q.T)).astype(np.float32)


def log_density(noise: jax.Array, log_std: jax.Array) -> jax.Array:
    """Logarithm of a Gaussian's density, (...,), at its mean plus its standard deviation times `noise` (..., size)."""
    return jnp.sum(-0.5 * noise**2 - log_std - _HALF_LOG_TAU, axis=-1)


def entropy(log_std: jax.Array) -> jax.Array:
    """Differential entropy [nat] of a Gaussian, ()."""
    return jnp.sum(log_std + 0.5 + _HALF_LOG_TAU)
