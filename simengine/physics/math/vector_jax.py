"""Three-vectors and tables for the JAX stages.

Vectors lie on the last axis. `const` puts a model's NumPy table into a graph in the dtype of the data it meets, so that
strict dtype promotion never sees a float64 table next to float32 data. A table that holds per-world parameters is a
traced JAX array instead. `own`, `present`, `tables` and `joined` let the same lines compute with either; a model's
table is computed in NumPy and float64.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

MINVAL = 1e-15
"""Smallest denominator; below it a vector counts as zero (MuJoCo's mjMINVAL)."""


def const(table: Any, like: jax.Array) -> jax.Array:
    """A table in the dtype of `like`: a model's table as a constant, a per-world table as it is."""
    if own(table):
        return jnp.asarray(table, like.dtype)
    with np.errstate(over="ignore"):  # of ranges, which are none if the dtype cannot hold them
        return jnp.asarray(np.asarray(table, dtype=np.float64), dtype=like.dtype)


def own(table: Any) -> bool:
    """Whether a table holds per-world parameters."""
    return isinstance(table, jax.Array)


def present(table: Any) -> np.ndarray:
    """Which entries of a table may differ from zero; all of them in a per-world table."""
    return np.ones(table.shape, bool) if own(table) else np.asarray(table) != 0


def tables(*values: Any) -> tuple[Any, ...]:
    """The module to compute with, then the tables.

    The module is NumPy and the tables are in float64, unless a table is per-world. Then the module is jax.numpy, and
    the tables have the widest dtype of the per-world ones.
    """
    types = [value.dtype for value in values if own(value)]
    if not types:
        return np, *(np.asarray(value, np.float64) for value in values)
    widest = max(types, key=lambda dtype: dtype.itemsize)
    return jnp, *(jnp.asarray(value, widest) for value in values)


def joined(*parts: Any) -> Any:
    """Concatenated tables."""
    xp, *arrays = tables(*parts)
    return xp.concatenate(arrays)


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
    """sqrt(x), with derivative 0 at x = 0, where the true one is infinite and a chain rule would make it NaN."""
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
