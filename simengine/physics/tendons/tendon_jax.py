"""Tendons in JAX, for one world: lengths and Jacobians. Quantities as after mj_tendon.

A spatial tendon is a sequence of pieces, each from one site to the next, some past a geom. The gradient of a piece's
length is a force vector on each of two or three bodies. The derivative of the length with respect to a dof is the dot
product of the dof's motion axis with the force vectors on the bodies that the dof moves.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.kinematics.sites_jax import sites
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.spatial_jax import wrench_about
from simengine.physics.math.vector_jax import const, matmul, normalize
from simengine.physics.tendons.lengths_jax import length_rows
from simengine.physics.tendons.wrap_jax import wrap

_CYLINDER = 5  # mjGEOM_CYLINDER


def tendon(
    m: Any,
    qpos: jax.Array,
    xpos: jax.Array,
    xquat: jax.Array,
    subtree_com: jax.Array,
    cdof: jax.Array,
    geom_xpos: jax.Array,
    geom_xmat: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Length of every tendon and its Jacobian.

    Args: qpos (nq,) [m, rad], xpos (nbody, 3), xquat (nbody, 4), subtree_com (nbody, 3), cdof (nv, 6),
        geom_xpos (ngeom, 3), geom_xmat (ngeom, 9).
    Returns: ten_length (ntendon,), ten_J (ntendon, nv).
    """
    if not m.ntendon:
        return jnp.zeros(0, qpos.dtype), jnp.zeros((0, m.nv), qpos.dtype)
    by_qpos, by_qvel = (rows[m.njnt :] for rows in length_rows(m))
    length, slope = matmul(const(by_qpos, qpos), qpos), const(by_qvel, qpos)
    if not m.npath:
        return length, slope
    # (1) pieces of spatial tendons
    piece_length, pulls, bodies = pieces(m, xpos, xquat, subtree_com, geom_xpos, geom_xmat)
    spread = np.zeros((m.ntendon, m.npath))
    spread[m.path_tenid, np.arange(m.npath)] = m.path_scale
    # (2) lengths: weighted sums of joint coordinates, or of pieces
    length = length + matmul(const(spread, length), piece_length)
    # (3) Jacobians: derivatives with respect to the velocities
    moves = tree.body_dofs(m)[bodies]
    mixed = moves.any(axis=0) & ~moves.all(axis=0)  # others move none of a piece's bodies, or all
    piece_slope = (matmul(pulls, cdof.T) * const(mixed & moves, cdof)).sum(axis=0)
    return length, slope + matmul(const(spread, slope), piece_slope)


def pieces(
    m: Any,
    xpos: jax.Array,
    xquat: jax.Array,
    subtree_com: jax.Array,
    geom_xpos: jax.Array,
    geom_xmat: jax.Array,
) -> tuple[jax.Array, jax.Array, np.ndarray]:
    """Pieces of spatial tendons: lengths (npath,), force vectors (3, npath, 6) and the bodies (3, npath) they act on.

    The bodies are those of the first site, the second, and the geom; where there is none, the force on it is zero.
    """
    site_xpos, _ = sites(m, xpos, xquat)
    site1, site2 = np.asarray(m.path_site).T
    geom, side = np.asarray(m.path_geom), np.asarray(m.path_side)
    x1, x2 = site_xpos[site1], site_xpos[site2]
    bodies = np.stack([m.site_bodyid[site1], m.site_bodyid[site2], m.site_bodyid[site1]])
    enter, leave, on_geom = x2, x1, jnp.zeros(m.npath, x1.dtype)
    wraps: Any = np.zeros(m.npath, bool)
    past = np.flatnonzero(geom >= 0)
    if past.size:
        g = geom[past]
        bodies[2, past] = m.geom_bodyid[g]
        cylinder, radius = np.asarray(m.geom_type)[g] == _CYLINDER, m.geom_size[g, 0]
        ends = (x1[past], x2[past], side[past] >= 0, site_xpos[side[past]])
        found = wrap(cylinder, geom_xpos[g], geom_xmat[g], radius, *ends)
        met = found.wraps[:, None]
        wraps = jnp.zeros(m.npath, bool).at[past].set(found.wraps)
        on_geom = on_geom.at[past].set(jnp.where(found.wraps, found.length, 0.0))
        enter = enter.at[past].set(jnp.where(met, found.enter, x2[past]))
        leave = leave.at[past].set(jnp.where(met, found.leave, x1[past]))

    # a straight piece counts as one segment from the first site to the second; its segment after the geom is not used
    x_axis = jnp.broadcast_to(jnp.asarray([1.0, 0.0, 0.0], x1.dtype), x1.shape)
    first, before = normalize(enter - x1, x_axis)
    last, after = normalize(x2 - leave, x_axis)
    length = jnp.where(wraps, before + on_geom + after, before)

    def pull(body: np.ndarray, direction: jax.Array, point: jax.Array) -> jax.Array:
        return wrench_about(subtree_com[np.asarray(m.body_rootid)[body]], point, direction)

    on_first = pull(bodies[0], -first, x1)
    on_second = pull(bodies[1], last, x2)
    on_third = pull(bodies[2], first, enter) - pull(bodies[2], last, leave)
    on_third = jnp.where(jnp.asarray(wraps)[:, None], on_third, 0.0)
    return length, jnp.stack([on_first, on_second, on_third]), bodies
