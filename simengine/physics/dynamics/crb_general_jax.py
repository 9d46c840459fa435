"""Composite inertias and the joint-space inertia matrix, with moments about nearby points, in JAX, for one world.

Source: R. Featherstone, Rigid Body Dynamics Algorithms (2008), section 6.2. The momentum of each subtree is taken about
the centre of mass of its root body. About that of the whole tree, the moments of a small distant body would be
differences of large numbers.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from simengine.physics.math import tree_jax as tree
from simengine.physics.math.vector_jax import const, cross, dot, matmul, tables
from simengine.physics.tendons.lengths_jax import length_rows


def crb_general(
    m: Any, xipos: jax.Array, ximat: jax.Array, xanchor: jax.Array, cinert: jax.Array, cdof: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Composite inertia of every subtree, and the joint-space inertia matrix.

    Args: xipos (nbody, 3) [m], ximat (nbody, 9), xanchor (njnt, 3) [m]; cinert (nbody, 10) and cdof (nv, 6) about the
        com of the tree.
    Returns: crb (nbody, 10), zero for the world body; qM (nv, nv) symmetric [kg, kg m, kg m^2], armatures included.
    """
    # (1) composite inertias: sums over subtrees; the world body has none, because trees have different coms
    inside = tree.subtree(m)
    inside[0] = False
    composite = matmul(const(inside, cinert), cinert)

    # (2) momentum of the subtree of each dof's body per unit velocity of the dof, about that body's centre of mass
    axis, turns = cdof[:, :3], const(tree.rotations(m), cdof)
    point, anchor = xipos[m.dof_bodyid], xanchor[m.dof_jntid]
    start = cross(axis, point - anchor) * turns[:, None] + cdof[:, 3:] * (1 - turns)[:, None]
    out = xipos[None] - point[:, None]
    _, carried, masses = tables(inside[m.dof_bodyid], m.body_mass)
    mass = const(carried * masses[None], cdof)[:, :, None]
    momentum = mass * (start[:, None] + cross(axis[:, None], out))
    frames = ximat.reshape(-1, 3, 3)
    own = matmul(frames * const(m.body_inertia, cdof)[:, None], frames.transpose(0, 2, 1))
    spin = matmul(const(inside[m.dof_bodyid], cdof), own.reshape(-1, 9)).reshape(-1, 3, 3)
    linear = momentum.sum(axis=1)
    angular = cross(out, momentum).sum(axis=1) + dot(spin, axis[:, None])

    # (3) its projection on the dof itself and on the dofs above
    arm = point[:, None] - anchor[None]
    about = angular[:, None] + cross(arm, linear[:, None])
    projected = dot(about, axis[None]) * turns[None] + matmul(linear, cdof[:, 3:].T) * (1 - turns)[None]
    lower = projected * const(tree.dof_ancestors(m), cdof)
    strict = lower * const(~np.eye(m.nv, dtype=bool), cdof)
    xp, of_dofs, of_tendons = tables(m.dof_armature, _tendon_inertia(m))
    return composite, lower + strict.T + const(xp.diag(of_dofs) + of_tendons, cdof)


def _tendon_inertia(m: Any) -> np.ndarray:
    """Inertia (nv, nv) that the armature of fixed tendons adds, between dofs of one branch only, as in MuJoCo."""
    J = length_rows(m)[1][m.njnt :]
    above = tree.dof_ancestors(m)
    return np.asarray(J.T @ (np.asarray(m.tendon_armature)[:, None] * J) * (above | above.T))
