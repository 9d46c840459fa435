"""The loss against numbers worked out by hand, and the Gaussian against its textbook formula."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simengine_training import Arguments
from simengine_training.network import ACTIVATIONS, Layer, Network, Params, entropy, log_density
from simengine_training.numpy_policy import ACTIVATIONS as ACTIVATIONS_OF_NUMPY
from simengine_training.ppo import Samples, clipped_objective, loss


@pytest.mark.parametrize(
    ("ratio", "advantage", "gain", "slope"),
    [
        (1.0, 2.0, 2.0, 2.0),
        (1.1, 2.0, 2.2, 2.2),
        (1.5, 2.0, 1.2 * 2.0, 0.0),  # gained enough: cut
        (0.5, 2.0, 0.5 * 2.0, 1.0),  # lost: not cut
        (1.5, -2.0, 1.5 * -2.0, -3.0),
        (0.5, -2.0, 0.8 * -2.0, 0.0),
    ],
)
def test_clipped_objective_of_one_sample(ratio: float, advantage: float, gain: float, slope: float) -> None:
    def objective(log_prob: jax.Array) -> jax.Array:
        return clipped_objective(log_prob, jnp.array([-0.7]), jnp.array([advantage]), 0.2)[0]

    log_prob = jnp.array([-0.7 + math.log(ratio)])
    assert float(objective(log_prob)) == pytest.approx(-gain)
    assert float(jax.grad(objective)(log_prob)[0]) == pytest.approx(-slope, abs=1e-9)


def test_how_far_the_policy_moved() -> None:
    ratios = np.array([1.0, 1.1, 1.5, 0.5])
    value, moved = clipped_objective(jnp.log(ratios), jnp.zeros(4), jnp.array([1.0, 1.0, 1.0, -1.0]), 0.2)
    assert float(value) == pytest.approx(-(1 + 1.1 + 1.2 - 0.8) / 4)
    assert float(moved["clip_fraction"]) == 0.5
    assert float(moved["approx_kl"]) == pytest.approx(np.mean(ratios - 1 - np.log(ratios)))


def test_whole_loss_adds_its_parts() -> None:
    arguments = Arguments(value_coef=0.25, entropy_coef=0.125, clip=0.2)
    network = Network(1, 1, ())
    # Without hidden layers: mean 2 x, value 3 x + 1.
    layers = [Layer(jnp.array([[weight]]), jnp.array([bias])) for weight, bias in ((2.0, 0.0), (3.0, 1.0))]
    params = Params((layers[0],), (layers[1],), jnp.array([math.log(0.5)]))
    # At the means the density of a Gaussian of deviation 0.5 is 2 / sqrt(2 pi); the old ones give ratios 1 and 1.5.
    density = math.log(2 / math.sqrt(2 * math.pi))
    samples = Samples(
        inputs=jnp.array([[1.0], [-1.0]]),
        outputs=jnp.array([[2.0], [-2.0]]),
        log_probs=jnp.array([density, density - math.log(1.5)]),
        advantages=jnp.array([-1.0, 1.0]),
        targets=jnp.array([3.0, 0.0]),  # values are 4 and -2
    )
    total, parts = loss(params, network, samples, arguments)
    policy_loss, value_loss = -(-1 + 1.2) / 2, 0.5 * (1 + 4) / 2
    spread = math.log(0.5 * math.sqrt(2 * math.pi * math.e))
    assert float(parts["policy_loss"]) == pytest.approx(policy_loss, rel=1e-5)
    assert float(parts["value_loss"]) == pytest.approx(value_loss)
    assert float(parts["entropy"]) == pytest.approx(spread)
    assert float(total) == pytest.approx(policy_loss + 0.25 * value_loss - 0.125 * spread, rel=1e-5)


def test_density_and_entropy_of_a_gaussian() -> None:
    mean, std = np.array([0.5, -1.0]), np.array([0.3, 2.0])
    at = np.array([0.1, 1.5])
    density = np.prod(np.exp(-0.5 * ((at - mean) / std) ** 2) / (std * np.sqrt(2 * np.pi)))
    log_std = jnp.log(jnp.array(std))
    assert float(log_density(jnp.array((at - mean) / std), log_std)) == pytest.approx(math.log(density))
    noise = jax.random.normal(jax.random.key(0), (20000, 2))
    assert float(entropy(log_std)) == pytest.approx(-float(log_density(noise, log_std).mean()), abs=0.03)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_network_shapes_and_precision(activation: str) -> None:
    network = Network(5, 3, (8, 4), activation)
    params = network.init(0, initial_log_std=-1.0)
    means, values = (f(params, jnp.ones((7, 5), jnp.float32)) for f in (network.means, network.values))
    assert (means.shape, params.log_std.shape, values.shape) == ((7, 3), (3,), (7,))
    assert {leaf.dtype for leaf in jax.tree.leaves((params, means, values))} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(params.log_std, np.full(3, -1, dtype=np.float32))
    assert np.abs(means).max() < 0.1


def test_first_weights_are_orthogonal_and_follow_from_the_seed() -> None:
    network = Network(6, 2, (4,))
    one, again, other = (network.init(seed) for seed in (0, 0, 1))
    weights = np.asarray(one.actor[0].weights)
    np.testing.assert_allclose(weights.T @ weights, 2 * np.eye(4), atol=1e-6)
    np.testing.assert_allclose(one.actor[1].weights.T @ one.actor[1].weights, 1e-4 * np.eye(2), atol=1e-9)
    np.testing.assert_array_equal(again.critic[0].weights, one.critic[0].weights)
    assert np.abs(other.actor[0].weights - weights).max() > 0.1


def test_activations_are_those_of_the_policy_in_numpy() -> None:
    assert set(ACTIVATIONS) == set(ACTIVATIONS_OF_NUMPY)
    x = np.linspace(-30, 30, 601, dtype=np.float32)
    for name, function in ACTIVATIONS.items():
        np.testing.assert_allclose(ACTIVATIONS_OF_NUMPY[name](x), function(x), rtol=1e-5, atol=1e-6)
