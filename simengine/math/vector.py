"""Three-vectors and constants for the JAX stages.

Vectors lie on the last axis. `const` brings a model's NumPy table into a graph in the dtype of the data beside it, so
that strict dtype promotion never sees a float64 table next to float32 data.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

MINVAL = 1e-15
"""Smallest denominator; below it a vector counts as zero (MuJoCo's mjMINVAL)."""


def const(table: Any, like: jax.Array) -> jax.Array:
    """A model's table as a constant of `like`'s dtype."""
    return jnp.asarray(np.asarray(table, dtype=np.float64), dtype=like.dtype)


def matmul(a: jax.Array, b: jax.Array) -> jax.Array:
    """Matrix product in full precision on every device (accelerators round to 10 bits or fewer by default)."""
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)


def dot(a: jax.Array, b: jax.Array) -> jax.Array:
    """Scalar product over the last axis, which is dropped."""
    return jnp.sum(a * b, axis=-1)


def cross(a: jax.Array, b: jax.Array) -> jax.Array:
    """Vector product a x b, shape (..., 3)."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return jnp.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def safe_sqrt(x: jax.Array) -> jax.Array:
    """sqrt(x), with derivative 0 where x is 0 (the usual one is infinite and turns a chain rule's 0 into NaN)."""
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, jnp.ones_like(x))), jnp.zeros_like(x))


def norm(a: jax.Array) -> jax.Array:
    """Euclidean length over the last axis, which is dropped; its derivative at zero is zero."""
    return safe_sqrt(dot(a, a))


def normalize(a: jax.Array, fallback: jax.Array, least: jax.Array | float = 0.0) -> tuple[jax.Array, jax.Array]:
    """Unit vector along `a` and the length of `a`; `fallback` where the length is below MINVAL or `least`.

    Args: a (..., n); fallback (..., n), of a's rank; least (...) or a number.
    Returns: unit (..., n), length (...).
    """
    length = norm(a)
    ok = length >= jnp.maximum(least, MINVAL)
    unit = a / jnp.where(ok, length, jnp.ones_like(length))[..., None]
    return jnp.where(ok[..., None], unit, fallback), length
