"""Momenta of subtrees in JAX, for one world. Quantities as after mj_subtreeVel."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from simengine.physics.math import tree_jax as tree
from simengine.physics.math.vector_jax import MINVAL, const, cross, matmul, tables


def subtree_vel(
    m: Any, xipos: jax.Array, ximat: jax.Array, subtree_com: jax.Array, cvel: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Velocity of the centre of mass of every subtree, and angular momentum about it.

    The sums use the bodies' own centres and leave out the common velocity, because sums about the com of the tree would
    largely cancel.

    Args: xipos (nbody, 3) [m], ximat (nbody, 9), subtree_com (nbody, 3) [m], cvel (nbody, 6).
    Returns: subtree_linvel (nbody, 3) [m/s], subtree_angmom (nbody, 3) [kg m^2/s].
    """
    # (1) motion of each body: velocity of its centre of mass, and angular momentum about it
    turning, axes = cvel[:, :3], ximat.reshape(-1, 3, 3)
    linear = cvel[:, 3:] + cross(turning, xipos - subtree_com[m.body_rootid])
    local = const(m.body_inertia, cvel) * jnp.einsum("bij,bi->bj", axes, turning)
    spin = jnp.einsum("bij,bj->bi", axes, local)

    # (2) sums over subtrees, (subtree, body); the world body does not move
    inside = tree.subtree(m).astype(float)
    inside[:, 0] = 0.0
    xp, inside, mass, total = tables(inside, m.body_mass, m.body_subtreemass)
    share = xp.where(total < MINVAL, 0.0, 1.0 / xp.maximum(total, MINVAL))
    velocity = matmul(const(inside * mass[None] * share[:, None], cvel), linear)
    relative = const(inside * mass[None], cvel)[:, :, None] * (linear[None] - velocity[:, None])
    turn = cross(xipos[None] - subtree_com[:, None], relative)
    return velocity, matmul(const(inside, cvel), spin) + turn.sum(axis=1)
