"""Momenta of subtrees in JAX, for one world. Quantities as after mj_subtreeVel."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from simengine.physics.math import tree_jax as tree
from simengine.physics.math.forest_jax import Forest, forest_of, subtree_sums
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
    forest = forest_of(m)
    if forest is not None:
        return _by_families(m, forest, linear, spin, xipos, subtree_com)
    inside = tree.subtree(m).astype(float)
    inside[:, 0] = 0.0
    xp, inside, mass, total = tables(inside, m.body_mass, m.body_subtreemass)
    share = xp.where(total < MINVAL, 0.0, 1.0 / xp.maximum(total, MINVAL))
    velocity = matmul(const(inside * mass[None] * share[:, None], cvel), linear)
    relative = const(inside * mass[None], cvel)[:, :, None] * (linear[None] - velocity[:, None])
    turn = cross(xipos[None] - subtree_com[:, None], relative)
    return velocity, matmul(const(inside, cvel), spin) + turn.sum(axis=1)


def _by_families(
    m: Any, forest: Forest, linear: jax.Array, spin: jax.Array, xipos: jax.Array, subtree_com: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The sums from the bodies' velocities and angular momenta (nbody, 3)."""
    mass, total = const(m.body_mass, linear)[:, None], const(m.body_subtreemass, linear)[:, None]
    velocity = subtree_sums(forest, mass * linear) / jnp.maximum(total, MINVAL)
    whole = (mass * linear).sum(axis=0) / jnp.maximum(total[0], MINVAL)

    # of each subtree of a family (i), about its own centre, over its bodies (j)
    of = (forest.of_bodies(x) for x in (mass, linear, velocity, xipos, subtree_com))
    weights, speeds, means, places, centres = of
    inside = const(forest.inside, linear)[..., None]
    relative = inside * weights[:, None] * (speeds[:, None] - means[:, :, None])
    turn = cross(places[:, None] - centres[:, :, None], relative).sum(axis=2)
    angmom = subtree_sums(forest, spin) + forest.to_bodies(turn)
    around = spin + cross(xipos - subtree_com[:1], mass * (linear - whole[None]))
    return velocity.at[0].set(whole), angmom.at[0].set(around[1:].sum(axis=0))
