"""MuJoCo's soft-constraint law: impedance and reference acceleration of a row.

Source: MuJoCo documentation, chapter "Modeling", section "Solver parameters", and chapter "Computation", section
"Constraint solver", "Parameters".
Symbols: r = pos - margin, d(r) impedance, (k, b) stiffness and damping, so that aref = -b v - k d r and the
regularisation of a row with approximate inverse inertia A is R = (1 - d) / d A.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math.vector_jax import MINVAL, const

MINIMP, MAXIMP = 1e-4, 0.9999
"""Bounds of the impedance (MuJoCo's mjMINIMP, mjMAXIMP)."""


def clamped_solimp(solimp: Any) -> np.ndarray:
    """(n, 5) d0, dwidth, width, midpoint and power, clamped to the ranges in which the law is defined."""
    d0, dwidth, width, midpoint, power = np.asarray(solimp, np.float64).reshape(-1, 5).T
    columns = [
        np.clip(d0, MINIMP, MAXIMP),
        np.clip(dwidth, MINIMP, MAXIMP),
        np.maximum(width, 0.0),
        np.clip(midpoint, MINIMP, MAXIMP),
        np.maximum(power, 1.0),
    ]
    return np.stack(columns, axis=-1)


def stiffness_damping(solref: Any, solimp: Any, leastref: float) -> tuple[np.ndarray, np.ndarray]:
    """k [1/s^2] and b [1/s], each (n,), of reference parameters (n, 2) and clamped impedances (n, 5).

    A positive first parameter is a time constant [s], clamped to at least `leastref`, and the second a damping ratio.
    Otherwise the parameters are minus the stiffness and minus the damping. MuJoCo takes its default where only one of
    them is positive.
    """
    first, second = np.asarray(solref, np.float64).reshape(-1, 2).T
    mixed = (first > 0) != (second > 0)
    first, second = np.where(mixed, 0.02, first), np.where(mixed, 1.0, second)
    dmax = solimp[:, 1]
    timeconst = np.maximum(first, leastref)
    k = np.where(first > 0, 1.0 / np.maximum(MINVAL, (dmax * timeconst * second) ** 2), -first / dmax**2)
    b = np.where(second > 0, 2.0 / np.maximum(MINVAL, dmax * timeconst), -second / dmax)
    return k, b


def impedance(solimp: np.ndarray, residual: jax.Array) -> jax.Array:
    """d (n,) at pos - margin (n,): from d0 to dwidth over the width, by two power curves that meet smoothly.

    Args: solimp (n, 5), clamped.
    """
    d0, dwidth, width, midpoint, power = solimp.T
    flat = (d0 == dwidth) | (width <= MINVAL)
    x = jnp.abs(residual) / const(np.where(flat, 1.0, width), residual)
    y = _sigmoid(jnp.minimum(x, jnp.ones_like(x)), midpoint, power)
    level = np.where(flat, 0.5 * (d0 + dwidth), d0)
    rise = np.where(flat, 0.0, dwidth - d0)
    return const(level, residual) + y * const(rise, residual)


def _sigmoid(x: jax.Array, midpoint: np.ndarray, power: np.ndarray) -> jax.Array:
    """Curve from (0, 0) to (1, 1): a x^p up to the midpoint, 1 - b (1 - x)^p beyond it."""
    low = x <= const(midpoint, x)
    # the base is the distance from the nearer end; where it is zero, a safe value makes the derivative finite
    base = jnp.where(low, x, 1.0 - x)
    a = const(1.0 / midpoint ** (power - 1.0), x)
    b = const(1.0 / (1.0 - midpoint) ** (power - 1.0), x)
    scaled = jnp.where(low, a, b) * _power(base, power)
    return jnp.where(low, scaled, 1.0 - scaled)


def _power(base: jax.Array, power: np.ndarray) -> jax.Array:
    """base^power for base in [0, 1]; products for the powers 1 and 2."""
    if (power == 1.0).all():
        return base
    if (power == 2.0).all():
        return base * base
    positive = base > 0
    return jnp.where(positive, jnp.where(positive, base, jnp.ones_like(base)) ** const(power, base), 0.0 * base)
