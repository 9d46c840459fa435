"""The optimal force of one elliptic contact while all other forces stay fixed, in JAX.

Source: MuJoCo documentation, chapter "Computation", section "Constraint solver", "Algorithms", PGS. The force is first
scaled along the ray from the tip of the cone; then the friction forces are optimised at that normal force: of a contact
of dimension 4 by MuJoCo's iteration (`tangents_jax`), whose 20 steps and whose least determinant often leave it far
from the optimum, of others exactly.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from simengine.physics.math.vector_jax import MINVAL, dot, matmul
from simengine.physics.solvers.tangents_jax import best_tangents, rounding_of_cost

BY_ITERATION = 4  # the dimension of contacts whose friction has MuJoCo's iteration


def best_in_cone(
    A: jax.Array, residual: jax.Array, old: jax.Array, friction: jax.Array, dim: jax.Array, dims: frozenset[int]
) -> jax.Array:
    """Force (n,) that lowers a quadratic cost with the matrix A (n, n) in the cone of friction (n - 1,).

    Args: residual (n,): derivative of the cost at the force `old` (n,) in the cone. dim (): the first `dim` rows are
        real; the rows of A of the others are those of the identity. dims: the dimensions that may occur.
    """
    curve = dot(old, matmul(A, old))
    along = old[0] - jnp.where(curve >= MINVAL, dot(old, residual) / jnp.maximum(curve, MINVAL), 0.0) * old[0]
    alone = old[0] - residual[0] / A[0, 0]
    normal = jnp.maximum(jnp.where(old[0] < MINVAL, alone, along), 0.0)
    pressed = normal >= MINVAL
    radius, none = jnp.where(pressed, normal, 1.0), jnp.zeros_like(old)
    # the derivative of the cost with respect to the friction forces at this normal force
    slip = residual[1:] + A[1:, 0] * (normal - old[0])
    force = none
    if dims - {BY_ITERATION}:
        start = jnp.where(old[0] < MINVAL, 0.0, old[1:])
        exact = _best_in_ellipsoid(A[1:, 1:], slip - matmul(A[1:, 1:], start), friction, radius)
        force = jnp.where(pressed, jnp.concatenate([normal[None], exact]), none)
    if BY_ITERATION in dims:
        tangent = best_tangents(A[1:, 1:], slip, old[1:], friction, radius, jnp.asarray(BY_ITERATION - 1))
        iterated = jnp.where(pressed, jnp.concatenate([normal[None], tangent]), none)
        change = iterated - old
        rises = dot(change, 0.5 * matmul(A, change) + residual) > rounding_of_cost(residual, old, change)
        force = jnp.where(dim == BY_ITERATION, jnp.where(rises & pressed, old, iterated), force)
    return force


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
