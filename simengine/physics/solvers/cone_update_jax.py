"""The optimal force of one elliptic contact while all other forces stay fixed, in JAX.

Source: MuJoCo documentation, chapter "Computation", section "Constraint solver", "Algorithms", PGS. The force is first
scaled along the ray from the tip of the cone; then the friction forces are optimised at that normal force by MuJoCo's
iteration (`tangents_jax`). Its 20 steps and its least determinant may leave them far from the optimum, as they leave
MuJoCo's.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from simengine.physics.math.vector_jax import MINVAL, dot, matmul
from simengine.physics.solvers.tangents_jax import best_tangents, rounding_of_cost


def best_in_cone(
    A: jax.Array, residual: jax.Array, old: jax.Array, friction: jax.Array, number: jax.Array
) -> jax.Array:
    """Force (n,) that lowers a quadratic cost with the matrix A (n, n) in the cone of friction (n - 1,).

    Args: residual (n,): derivative of the cost at the force `old` (n,) in the cone. number (): how many friction forces
        there are; the rows of A of the others are those of the identity.
    """
    curve = dot(old, matmul(A, old))
    along = old[0] - jnp.where(curve >= MINVAL, dot(old, residual) / jnp.maximum(curve, MINVAL), 0.0) * old[0]
    alone = old[0] - residual[0] / A[0, 0]
    normal = jnp.maximum(jnp.where(old[0] < MINVAL, alone, along), 0.0)
    pressed = normal >= MINVAL
    # the derivative of the cost with respect to the friction forces at this normal force
    slip = residual[1:] + A[1:, 0] * (normal - old[0])
    tangent = best_tangents(A[1:, 1:], slip, old[1:], friction, jnp.where(pressed, normal, 1.0), number)
    force = jnp.where(pressed, jnp.concatenate([normal[None], tangent]), jnp.zeros_like(old))
    change = force - old
    rises = dot(change, 0.5 * matmul(A, change) + residual) > rounding_of_cost(residual, old, change)
    return jnp.where(rises & pressed, old, force)
