"""Sums over the numbers of a world, in one order.

XLA adds in an order that depends on the shape of the whole array, and so on the number of worlds. These sums do not.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def sum_of_last(values: jax.Array) -> jax.Array:
    """Sum over the last axis, (..., k) to (...,), in an order that depends on k only."""
    if not values.shape[-1]:
        return jnp.zeros(values.shape[:-1], values.dtype)
    while (count := values.shape[-1]) > 1:
        half = count // 2
        pairs = values[..., :half] + values[..., half : 2 * half]
        values = jnp.concatenate([pairs, values[..., 2 * half :]], axis=-1) if count % 2 else pairs
    return values[..., 0]


def sum_of_each(values: jax.Array) -> jax.Array:
    """Sum of the numbers of each world, (n, ...) to (n,), in an order that does not depend on n."""
    return sum_of_last(values.reshape(len(values), -1))


def squares_of_each(values: jax.Array) -> jax.Array:
    """Sum of the squares of the numbers of each world, (n, ...) to (n,)."""
    return sum_of_each(jnp.square(values))


def norm_of_each(values: jax.Array) -> jax.Array:
    """Euclidean norm of the numbers of each world, (n, ...) to (n,)."""
    return jnp.sqrt(squares_of_each(values))
