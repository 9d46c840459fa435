"""Centres of mass, com-based inertias and motion axes in JAX, for one world.

Source: MuJoCo, chapter "Computation"; quantities as after mj_comPos.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math import spatial_jax as spatial
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.forest_jax import Forest, forest_of, subtree_sums
from simengine.physics.math.vector_jax import MINVAL, const, cross, matmul, tables


def com_pos(
    m: Any, xmat: jax.Array, xipos: jax.Array, ximat: jax.Array, xanchor: jax.Array, xaxis: jax.Array
) -> tuple[jax.Array, ...]:
    """Centre of mass of every subtree; inertias and dof axes about the com of their tree.

    Args: xmat (nbody, 9), xipos (nbody, 3) [m], ximat (nbody, 9), xanchor (njnt, 3) [m], xaxis (njnt, 3).
    Returns:
        subtree_com (nbody, 3) [m].
        cinert (nbody, 10): spatial inertia of each body about its tree's com.
        cdof (nv, 6): motion of the bodies per unit velocity of each dof, about its tree's com.
    """
    # (1) subtree centres of mass; the weights do not depend on the state
    forest = forest_of(m)
    subtree_com = matmul(const(_com_weights(m), xipos), xipos) if forest is None else _coms(m, forest, xipos)

    # (2) inertias about the com of the tree
    root_com = subtree_com[m.body_rootid]
    moments, mass = const(m.body_inertia, xipos), const(m.body_mass, xipos)
    cinert = spatial.inertia(mass, moments, ximat, xipos - root_com)

    # (3) dof axes: (a, a x (com - anchor)) of a rotation, (0, a) of a translation
    axis_row, turns = _dof_axes(m)
    columns = xmat.reshape(m.nbody, 3, 3).transpose(0, 2, 1).reshape(3 * m.nbody, 3)
    axis = jnp.concatenate([xaxis, jnp.eye(3, dtype=xaxis.dtype), columns])[axis_row]
    lever = root_com[m.dof_bodyid] - xanchor[m.dof_jntid]
    turning = const(turns, xipos)[:, None]
    cdof = jnp.concatenate([axis * turning, cross(axis, lever) * turning + axis * (1.0 - turning)], axis=-1)
    return subtree_com, cinert, cdof


def _com_weights(m: Any) -> Any:
    """(nbody, nbody): subtree_com = weights @ xipos; a subtree without mass takes its root body's centre."""
    xp, inside, mass, one = tables(tree.subtree(m), m.body_mass, np.eye(m.nbody))
    weights = inside * mass[None]
    total = weights.sum(axis=1, keepdims=True)
    return xp.where(total < MINVAL, one, weights / xp.maximum(total, MINVAL))


def _coms(m: Any, forest: Forest, xipos: jax.Array) -> jax.Array:
    """subtree_com (nbody, 3) by families; measured from each family's first body, so that a lone body's is exact."""
    mass, total = const(m.body_mass, xipos)[:, None], const(m.body_subtreemass, xipos)[:, None]
    first = xipos[m.body_rootid]
    mean = first + subtree_sums(forest, mass * (xipos - first)) / jnp.maximum(total, MINVAL)
    mean = mean.at[0].set((mass * xipos).sum(axis=0) / jnp.maximum(total[0], MINVAL))
    return jnp.where(total < MINVAL, xipos, mean)


def _dof_axes(m: Any) -> tuple[np.ndarray, np.ndarray]:
    """Row (nv,) of each dof's axis in the stack [xaxis; world axes; body axes], and whether (nv,) it is a rotation."""
    row, turns = np.zeros(m.nv, int), np.zeros(m.nv, bool)
    for j in range(m.njnt):
        adr = m.jnt_dofadr[j]
        if m.jnt_type[j] == tree.FREE:
            row[adr : adr + 3] = m.njnt + np.arange(3)
            row[adr + 3 : adr + 6] = m.njnt + 3 + 3 * m.jnt_bodyid[j] + np.arange(3)
            turns[adr + 3 : adr + 6] = True
        elif m.jnt_type[j] == tree.BALL:
            row[adr : adr + 3] = m.njnt + 3 + 3 * m.jnt_bodyid[j] + np.arange(3)
            turns[adr : adr + 3] = True
        else:
            row[adr] = j
            turns[adr] = m.jnt_type[j] == tree.HINGE
    return row, turns
