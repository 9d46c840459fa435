"""The optimal force of one elliptic contact while all other forces stay fixed, in JAX.

Source: MuJoCo documentation, chapter "Computation", section "Constraint solver", "Algorithms", PGS. The force is first
scaled along the ray from the tip of the cone; then the friction forces are optimised at that normal force.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from simengine.physics.math.vector_jax import MINVAL, dot, matmul


def best_in_cone(A: jax.Array, residual: jax.Array, old: jax.Array, friction: jax.Array) -> jax.Array:
    """Force (dim,) that minimises a quadratic cost with the matrix A (dim, dim) in the cone of friction (dim - 1,).

    Args: residual (dim,): derivative of the cost at the force `old` (dim,) in the cone.
    """
    curve = dot(old, matmul(A, old))
    along = old[0] - jnp.where(curve >= MINVAL, dot(old, residual) / jnp.maximum(curve, MINVAL), 0.0) * old[0]
    alone = old[0] - residual[0] / A[0, 0]
    normal = jnp.maximum(jnp.where(old[0] < MINVAL, alone, along), 0.0)
    start = jnp.where(old[0] < MINVAL, 0.0, old[1:])
    # the derivative of the cost with respect to the friction forces at this normal force
    linear = residual[1:] + A[1:, 0] * (normal - old[0]) - matmul(A[1:, 1:], start)
    pressed = normal >= MINVAL
    tangent = _best_in_ellipsoid(A[1:, 1:], linear, friction, jnp.where(pressed, normal, 1.0))
    return jnp.where(pressed, jnp.concatenate([normal[None], tangent]), 0.0)


def _best_in_ellipsoid(A: jax.Array, b: jax.Array, friction: jax.Array, radius: jax.Array) -> jax.Array:
    """Minimiser (n,) of 1/2 x' A x + x' b over sum (x_i / friction_i)^2 <= radius^2.

    With x_i = friction_i y_i and A and b scaled to match, it solves (A + lambda) y = -b. lambda >= 0 is the root of
    |y| = radius, which Newton's method on 1 / |y| finds from below (J. More and D. Sorensen, SIAM J. Sci. Stat. Comput.
    4 (1983)).
    """
    A, b = A * friction[:, None] * friction[None, :], b * friction
    one, eps = jnp.eye(b.size, dtype=b.dtype), float(jnp.finfo(b.dtype).eps)

    def solved(shift: jax.Array) -> tuple[jax.Array, jax.Array]:
        factor = jax.lax.linalg.cholesky(A + shift * one, symmetrize_input=False)
        return factor, -jax.scipy.linalg.cho_solve((factor, True), b)

    def outside(carry: tuple[jax.Array, jax.Array, jax.Array, jax.Array]) -> jax.Array:
        shift, _, y, iteration = carry
        slack = jnp.where(shift > 0, 1.0 + 8.0 * eps, 1.0)
        return (jnp.sqrt(dot(y, y)) > radius * slack) & (iteration < 30)

    def refine(
        carry: tuple[jax.Array, jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        shift, factor, y, iteration = carry
        w = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
        length2 = dot(y, y)
        shift = shift + (jnp.sqrt(length2) - radius) / radius * length2 / dot(w, w)
        return shift, *solved(shift), iteration + 1

    zero = jnp.zeros((), b.dtype)
    shift, _, y, _ = jax.lax.while_loop(outside, refine, (zero, *solved(zero), jnp.zeros((), jnp.int32)))
    shrink = jnp.where(shift > 0, radius / jnp.sqrt(jnp.where(shift > 0, dot(y, y), 1.0)), 1.0)
    return y * shrink * friction
