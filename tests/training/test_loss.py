"""The loss against numbers worked out by hand, and the Gaussian against its textbook formula."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simengine_training import Arguments
from simengine_training.policy import ActorCritic, Gaussian, forward
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
    network = ActorCritic(action_size=1, hidden_sizes=(), initial_log_std=math.log(0.5))
    # Without hidden layers: mean 2 x, value 3 x + 1.
    dense = {"actor_out": ([[2.0]], [0.0]), "critic_out": ([[3.0]], [1.0])}
    layers = {name: {"kernel": jnp.array(kernel), "bias": jnp.array(bias)} for name, (kernel, bias) in dense.items()}
    params = {"params": {**layers, "log_std": jnp.array([math.log(0.5)])}}
    # At the means the density of a Gaussian of deviation 0.5 is 2 / sqrt(2 pi); the old ones give ratios 1 and 1.5.
    density = math.log(2 / math.sqrt(2 * math.pi))
    samples = Samples(
        observations=jnp.array([[1.0], [-1.0]]),
        actions=jnp.array([[2.0], [-2.0]]),
        log_probs=jnp.array([density, density - math.log(1.5)]),
        advantages=jnp.array([1.0, 5.0]),  # less their mean, over their deviation: -1 and 1
        targets=jnp.array([3.0, 0.0]),  # values are 4 and -2
    )
    total, parts = loss(params, network, samples, arguments)
    policy_loss, value_loss = -(-1 + 1.2) / 2, 0.5 * (1 + 4) / 2
    entropy = math.log(0.5 * math.sqrt(2 * math.pi * math.e))
    assert float(parts["policy_loss"]) == pytest.approx(policy_loss, rel=1e-5)
    assert float(parts["value_loss"]) == pytest.approx(value_loss)
    assert float(parts["entropy"]) == pytest.approx(entropy)
    assert float(total) == pytest.approx(policy_loss + 0.25 * value_loss - 0.125 * entropy, rel=1e-5)


def test_gaussian_density_entropy_and_samples() -> None:
    mean, std = np.array([0.5, -1.0]), np.array([0.3, 2.0])
    gaussian = Gaussian(jnp.tile(jnp.array(mean), (20000, 1)), jnp.log(std))
    at = np.array([0.1, 1.5])
    density = np.prod(np.exp(-0.5 * ((at - mean) / std) ** 2) / (std * np.sqrt(2 * np.pi)))
    assert float(gaussian.log_prob(jnp.array(at))[0]) == pytest.approx(math.log(density))
    drawn = gaussian.sample(jax.random.key(0))
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.05)
    np.testing.assert_allclose(drawn.std(axis=0), std, rtol=0.03)
    assert float(gaussian.entropy()) == pytest.approx(-float(gaussian.log_prob(drawn).mean()), abs=0.03)


def test_network_shapes_and_precision() -> None:
    network = ActorCritic(action_size=3, hidden_sizes=(8, 4), initial_log_std=-1.0)
    params = network.init(jax.random.key(0), np.zeros((1, 5), dtype=np.float32))
    distribution, values = forward(network, params, np.ones((7, 5), dtype=np.float32))
    assert (distribution.mean.shape, distribution.log_std.shape, values.shape) == ((7, 3), (3,), (7,))
    assert {leaf.dtype for leaf in jax.tree.leaves((params, distribution, values))} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(distribution.log_std, np.full(3, -1, dtype=np.float32))
    assert np.abs(distribution.mean).max() < 0.1
