"""The optimal friction forces of an elliptic contact for a quadratic cost, by MuJoCo's iteration, in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from simengine.physics.math.vector_jax import dot, matmul

ITERATIONS = 20
LEAST_PIVOT = 1e-10

_Before = tuple[jax.Array, jax.Array]
"""Slip and previous force (n,), scaled by friction."""


def best_tangents(
    A: jax.Array, slip: jax.Array, old: jax.Array, friction: jax.Array, radius: jax.Array, number: jax.Array
) -> jax.Array:
    """Force x (n,) that minimises 1/2 (x - old)' A (x - old) + (x - old)' slip over a cone of radius > 0.

    The cone is sum (x_i / friction_i)^2 <= radius^2. With x_i = friction_i y_i and A, slip and old scaled to match,
    (A + lambda) (y - old) = -slip - lambda old, where lambda >= 0 is the root of |y| = radius. As in MuJoCo, Newton's
    method on |y|^2 has 20 iterations, which are too few where a friction coefficient is small. A matrix whose pivots
    are small or mere rounding gives no force. Pivot i is v' A v, where v_i = 1 and the others make A v zero above i. So
    it is mere rounding below the rounding of that product. Differentiable where 20 iterations suffice.

    Args: A (n, n), slip, old, friction (n,). The first `number` () rows are real; the others are padding, whose rows of
        A are those of the identity.
    """
    scale = jnp.where(_real(slip.size, number), friction, 1.0)
    known = scale > 0
    A, b = (
        A * scale[:, None] * scale[None, :],
        (slip * scale, jnp.where(known, old / jnp.where(known, scale, 1.0), 0.0)),
    )
    fixed = jax.lax.stop_gradient
    shift, singular = _multiplier(fixed(A), fixed(b), fixed(radius), number)
    shift = jnp.where(singular, 1.0, shift)  # any value that makes everything finite
    touches = shift > 0
    # one Newton step at the root leaves the value unchanged and gives it the derivatives
    factor, y = _shifted(A, b, shift)
    excess = dot(y, y) - radius * radius
    moved = (excess - fixed(excess)) / jnp.where(touches, 2.0 * _curve(fixed(factor), fixed(y)), 1.0)
    y = _shifted(A, b, shift + jnp.where(touches, moved, 0.0))[1]
    length = jnp.sqrt(jnp.where(touches, dot(fixed(y), fixed(y)), 1.0))
    return jnp.where(singular, 0.0, y * jnp.where(touches, fixed(radius) / length, 1.0) * scale)


def rounding_of_cost(slope: jax.Array, old: jax.Array, change: jax.Array) -> jax.Array:
    """Rise () of the cost that rounding alone may cause, or that does not count, when forces `old` (n,) change.

    Args: slope (n,): derivative of the cost at `old`; change (n,).
    """
    moved = jnp.abs(old) + jnp.abs(old + change)
    return 1e-10 + 4.0 * float(jnp.finfo(old.dtype).eps) * dot(jnp.abs(slope), moved)


def _real(size: int, number: jax.Array) -> jax.Array:
    return jnp.arange(size, dtype=jnp.int32) < number.astype(jnp.int32)


def _shifted(A: jax.Array, b: _Before, shift: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cholesky factor of A + shift, and old - inv(A + shift) (slip + shift old)."""
    slip, old = b
    factor = jax.lax.linalg.cholesky(A + shift * jnp.eye(old.size, dtype=old.dtype), symmetrize_input=False)
    return factor, old - jax.scipy.linalg.cho_solve((factor, True), slip + shift * old)


def _curve(factor: jax.Array, y: jax.Array) -> jax.Array:
    """y' inv(A) y, where `factor` is the Cholesky factor of A."""
    w = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
    return dot(w, w)


def _multiplier(A: jax.Array, b: _Before, radius: jax.Array, number: jax.Array) -> tuple[jax.Array, jax.Array]:
    """lambda () after the iterations, and whether a matrix counted as singular."""
    eps = float(jnp.finfo(A.dtype).eps)
    slack = jnp.maximum(1e-10, eps * radius * radius)
    real, noise, one = _real(b[0].size, number), 32.0 * eps, jnp.eye(b[0].size, dtype=A.dtype)

    def iterate(_: jax.Array, carry: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        shift, further, singular = carry
        shift = shift + further
        factor, y = _shifted(A, b, shift)
        pivots = jnp.where(real, jnp.diagonal(factor) ** 2, 1.0)
        small = jnp.where(number > 3, pivots.min(), pivots.prod()) < LEAST_PIVOT
        v = jnp.diagonal(factor)[:, None] * jax.scipy.linalg.solve_triangular(factor, one, lower=True)
        extent = matmul(jnp.abs(v), jnp.sqrt(jnp.where(real, jnp.diagonal(A) + shift, 0.0)))
        rounding = pivots <= noise * extent * extent
        singular = singular | small | rounding.any() | ~jnp.isfinite(pivots).all()
        excess = dot(y, y) - radius * radius
        step = excess / (2.0 * _curve(factor, y))
        stop = singular | (excess < slack) | (step < 1e-10)
        return shift, jnp.where(stop, 0.0, step), singular

    zero = jnp.zeros((), A.dtype)
    shift, _, singular = jax.lax.fori_loop(0, ITERATIONS, iterate, (zero, zero, jnp.zeros((), bool)))
    return shift, singular
