"""Sums over the numbers of a world, in one order.

XLA adds in an order that depends on the shape of the whole array, and so on the number of worlds. These sums do not. On
a CPU, XLA makes a branch for each part of a concatenation, and adds one number after another there. So short sums have
no concatenation on a CPU, and long ones are custom calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import jax
import jax.numpy as jnp

from simengine.xla import host_calls
from simengine_envs.written import for_chain, for_processor

_MOST_NAMED = 32  # numbers of a sum that are operands of their own; the code of more is large, and seldom in a cache


def sum_of_last(values: jax.Array) -> jax.Array:
    """Sum over the last axis, (..., k) to (...,), in an order that depends on k only."""
    if not values.shape[-1]:
        return jnp.zeros(values.shape[:-1], values.dtype)
    if for_processor():
        if values.shape[-1] <= _MOST_NAMED or for_chain():
            return _sum_of([values[..., i] for i in range(values.shape[-1])])
        if values.dtype in (jnp.float32, jnp.float64) and host_calls.calls_exist():
            return host_calls.sum_of_last(values)
    while (count := values.shape[-1]) > 1:
        half = count // 2
        pairs = values[..., :half] + values[..., half : 2 * half]
        values = jnp.concatenate([pairs, values[..., 2 * half :]], axis=-1) if count % 2 else pairs
    return values[..., 0]


def _sum_of(parts: list[jax.Array]) -> jax.Array:
    """The sum of arrays of one shape, in the order of `sum_of_last`."""
    while len(parts) > 1:
        half = len(parts) // 2
        pairs = [one + other for one, other in zip(parts[:half], parts[half : 2 * half], strict=True)]
        parts = [*pairs, *parts[2 * half :]]
    return parts[0]


def sum_of_arrays(arrays: Sequence[jax.Array]) -> jax.Array:
    """The sum of arrays of one shape and type, each added to those before it.

    On a CPU it is a call where it can be one. XLA would compute the arrays once more inside the kernel of their sum.
    """
    called = for_processor() and host_calls.calls_exist() and not for_chain()
    if called and len(arrays) > 1 and arrays[0].dtype in (jnp.float32, jnp.float64):
        return host_calls.sum_of_arrays(arrays)
    return reduce(add, arrays)


def sum_of_each(values: jax.Array) -> jax.Array:
    """Sum of the numbers of each world, (n, ...) to (n,), in an order that does not depend on n."""
    return sum_of_last(values.reshape(len(values), -1))


def squares_of_each(values: jax.Array) -> jax.Array:
    """Sum of the squares of the numbers of each world, (n, ...) to (n,)."""
    return sum_of_each(jnp.square(values))


def norm_of_each(values: jax.Array) -> jax.Array:
    """Euclidean norm of the numbers of each world, (n, ...) to (n,)."""
    return jnp.sqrt(squares_of_each(values))
