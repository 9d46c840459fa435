"""Islands of constraint rows for the solvers of the dual problem, in JAX, for one world.

Constraints that share a kinematic tree, directly or through others, belong to one island, with all of their rows.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.constraints.row_law_jax import RowLaw
from simengine.physics.math.vector_jax import const, matmul


def row_islands(
    law: RowLaw, tree: tuple[int, ...], qM: jax.Array, J: jax.Array, active: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Island (n,) of each row, numbered by its lowest kinematic tree, and the trace (n,) of the island's inertia."""
    member = np.asarray(tree)[:, None] == np.arange(max(tree) + 1)
    if member.shape[1] == 1:
        return jnp.zeros(active.shape, jnp.int32), jnp.broadcast_to(jnp.trace(qM), active.shape)
    touched = (matmul((J != 0).astype(J.dtype), const(member, J)) > 0) & active[:, None]
    touched = jax.ops.segment_max(touched.astype(jnp.int32), law.constraint, law.constraint.size) > 0
    # the later rows of cones are of none
    touched = touched[law.constraint] & active[:, None] & (law.dim > 0)[:, None]
    none = jnp.int32(member.shape[1])

    def lowest(names: jax.Array) -> tuple[jax.Array, jax.Array]:
        of_row = jnp.where(touched, names[None, :], none).min(axis=1)
        return of_row, jnp.minimum(names, jnp.where(touched, of_row[:, None], none).min(axis=0))

    def spread(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return carry[1], lowest(carry[1])[1]

    names = jnp.arange(member.shape[1], dtype=jnp.int32)
    names = jax.lax.while_loop(lambda c: (c[0] != c[1]).any(), spread, (names, lowest(names)[1]))[1]
    island = lowest(names)[0]
    inertia = matmul(jnp.diagonal(qM), const(member, qM))
    return island, jnp.where(names[None, :] == island[:, None], inertia[None, :], 0.0).sum(axis=1)
