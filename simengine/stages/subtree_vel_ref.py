"""Momenta of subtrees in JAX, for one world. Quantities as after mj_subtreeVel."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.math import spatial, tree
from simengine.math.vector import MINVAL, const, cross, matmul


def subtree_vel(m: Any, subtree_com: jax.Array, cinert: jax.Array, cvel: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Velocity of the centre of mass of every subtree, and angular momentum about it.

    Args: subtree_com (nbody, 3) [m], cinert (nbody, 10), cvel (nbody, 6).
    Returns: subtree_linvel (nbody, 3) [m/s], subtree_angmom (nbody, 3) [kg m^2/s].
    """
    # (1) momentum of each body about the com of its tree
    momentum = spatial.inertia_mul(cinert, cvel)

    # (2) sums over subtrees, moved to their own com; the world's holds trees with several coms
    spin, linear = momentum[:, :3], momentum[:, 3:]
    about_world = spin + cross(subtree_com[m.body_rootid] - subtree_com[:1], linear)
    inside = tree.subtree(m).astype(float)
    inside[:, 0] = 0.0
    sums = matmul(const(inside, cvel), jnp.concatenate([about_world, linear], axis=1))
    angmom = sums[:, :3] + cross(subtree_com[:1] - subtree_com, sums[:, 3:])
    mass = np.asarray(m.body_subtreemass)
    share = np.where(mass < MINVAL, 0.0, 1.0 / np.maximum(mass, MINVAL))
    return sums[:, 3:] * const(share, cvel)[:, None], angmom
