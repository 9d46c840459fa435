"""Sums over the numbers of a world, in one order.

XLA adds in an order that depends on the shape of the whole array, and so on the number of worlds. These sums do not.
What remains is that XLA may join a multiplication and an addition into one rounding in one program and not in another.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def sum_of_each(values: jax.Array) -> jax.Array:
    """Sum of the numbers of each world, (n, ...) to (n,), in an order that does not depend on n."""
    left = values.reshape(len(values), -1)
    while left.shape[1] > 1:
        half = left.shape[1] // 2
        pairs = left[:, :half] + left[:, half : 2 * half]
        left = jnp.concatenate([pairs, left[:, 2 * half :]], axis=1)
    return left[:, 0]


def squares_of_each(values: jax.Array) -> jax.Array:
    """Sum of the squares of the numbers of each world, (n, ...) to (n,)."""
    return sum_of_each(jnp.square(values))


def norm_of_each(values: jax.Array) -> jax.Array:
    """Euclidean norm of the numbers of each world, (n, ...) to (n,)."""
    return jnp.sqrt(squares_of_each(values))
