"""Sums over the numbers of a world, in one order.

XLA adds in an order that depends on the shape of the whole array, and so on the number of worlds. These sums do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import jax
import jax.numpy as jnp

_MOST_NAMED = 128  # numbers of a sum that are operands of their own; more take long to compile

_named = ContextVar("_named", default=False)


@contextmanager
def sums_for(backend: str) -> Iterator[None]:
    """Write sums that are traced meanwhile in the form that suits a backend. The bits are those of any form.

    On a CPU, XLA makes a branch for each part of a concatenation, and then adds one number after another. Sums of named
    numbers are vectors over the worlds.
    """
    token = _named.set(backend == "host")
    try:
        yield
    finally:
        _named.reset(token)


def sum_of_last(values: jax.Array) -> jax.Array:
    """Sum over the last axis, (..., k) to (...,), in an order that depends on k only."""
    if not values.shape[-1]:
        return jnp.zeros(values.shape[:-1], values.dtype)
    if _named.get() and values.shape[-1] <= _MOST_NAMED:
        return _sum_of([values[..., i] for i in range(values.shape[-1])])
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


def sum_of_each(values: jax.Array) -> jax.Array:
    """Sum of the numbers of each world, (n, ...) to (n,), in an order that does not depend on n."""
    return sum_of_last(values.reshape(len(values), -1))


def squares_of_each(values: jax.Array) -> jax.Array:
    """Sum of the squares of the numbers of each world, (n, ...) to (n,)."""
    return sum_of_each(jnp.square(values))


def norm_of_each(values: jax.Array) -> jax.Array:
    """Euclidean norm of the numbers of each world, (n, ...) to (n,)."""
    return jnp.sqrt(squares_of_each(values))
