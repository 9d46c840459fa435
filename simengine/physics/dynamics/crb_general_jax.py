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
from simengine.physics.math.forest_jax import Forest, forest_of, subtree_sums
from simengine.physics.math.tree_matrices_jax import Matrix, TreeMatrix, plus_diagonal
from simengine.physics.math.vector_jax import const, cross, dot, matmul, tables
from simengine.physics.tendons.lengths_jax import length_rows


def crb_general(
    m: Any, xipos: jax.Array, ximat: jax.Array, xanchor: jax.Array, cinert: jax.Array, cdof: jax.Array
) -> tuple[jax.Array, Matrix]:
    """Composite inertia of every subtree, and the joint-space inertia matrix.

    Args: xipos (nbody, 3) [m], ximat (nbody, 9), xanchor (njnt, 3) [m]; cinert (nbody, 10) and cdof (nv, 6) about the
        com of the tree.
    Returns: crb (nbody, 10), zero for the world body; qM (nv, nv) symmetric [kg, kg m, kg m^2], armatures included, by
        families in a world of very many dofs.
    """
    forest = forest_of(m)
    if forest is not None:
        return _by_families(m, forest, xipos, ximat, xanchor, cinert, cdof)
    # (1) composite inertias: sums over subtrees; the world body has none, because trees have different coms
    inside = tree.subtree(m)
    inside[0] = False
    composite = matmul(const(inside, cinert), cinert)

    # (2) momenta, (3) projected
    turns, carried = const(tree.rotations(m), cdof), inside[m.dof_bodyid]
    _, held, masses = tables(carried, m.body_mass)
    dofs = (cdof, turns, xipos[m.dof_bodyid], xanchor[m.dof_jntid])
    projected = _projected(*dofs, xipos, _own(m, ximat), const(carried, cdof), const(held * masses[None], cdof))

    # which of the dofs above these are, and armatures
    lower = projected * const(tree.dof_ancestors(m), cdof)
    strict = lower * const(~np.eye(m.nv, dtype=bool), cdof)
    xp, of_dofs, of_tendons = tables(m.dof_armature, _tendon_inertia(m))
    return composite, lower + strict.T + const(xp.diag(of_dofs) + of_tendons, cdof)


def _own(m: Any, ximat: jax.Array) -> jax.Array:
    """Inertia (nbody, 9) of every body about its own centre of mass, in world axes."""
    frames = ximat.reshape(-1, 3, 3)
    own = matmul(frames * const(m.body_inertia, ximat)[:, None], frames.transpose(0, 2, 1))
    return own.reshape(-1, 9)


def _projected(
    cdof: jax.Array,
    turns: jax.Array,
    point: jax.Array,
    anchor: jax.Array,
    xipos: jax.Array,
    own: jax.Array,
    carried: jax.Array,
    mass: jax.Array,
) -> jax.Array:
    """The momentum of each of n dofs, projected on all n of them: the inertia between a dof and those above it.

    Args: cdof (n, 6); turns (n,) 1 for a rotation, else 0; point, anchor (n, 3) centre of mass of the dof's body, and
        anchor of its joint; xipos (k, 3), own (k, 9) of k bodies; carried, mass (n, k) whether a dof moves a body, and
        the body's mass where it does.
    """
    # (2) momentum of the subtree of each dof's body per unit velocity of the dof, about that body's centre of mass
    axis = cdof[:, :3]
    start = cross(axis, point - anchor) * turns[:, None] + cdof[:, 3:] * (1 - turns)[:, None]
    out = xipos[None] - point[:, None]
    momentum = mass[:, :, None] * (start[:, None] + cross(axis[:, None], out))
    spin = matmul(carried, own).reshape(-1, 3, 3)
    linear = momentum.sum(axis=1)
    angular = cross(out, momentum).sum(axis=1) + dot(spin, axis[:, None])

    # (3) its projection on the dof itself and on the dofs above
    arm = point[:, None] - anchor[None]
    about = angular[:, None] + cross(arm, linear[:, None])
    return dot(about, axis[None]) * turns[None] + matmul(linear, cdof[:, 3:].T) * (1 - turns)[None]


def _by_families(
    m: Any,
    forest: Forest,
    xipos: jax.Array,
    ximat: jax.Array,
    xanchor: jax.Array,
    cinert: jax.Array,
    cdof: jax.Array,
) -> tuple[jax.Array, Matrix]:
    """`crb_general` with a block of inertia for each family."""
    turns = const(tree.rotations(m), cdof)
    parts = [forest.of_dofs(x) for x in (cdof, turns, xipos[m.dof_bodyid], xanchor[m.dof_jntid])]
    parts += [forest.of_bodies(x) for x in (xipos, _own(m, ximat))]
    carried = const(forest.moves.transpose(0, 2, 1), cdof)
    parts += [carried, carried * forest.of_bodies(const(m.body_mass, cdof))[:, None]]
    projected = jax.vmap(_projected)(*parts)
    eye = np.eye(forest.dofs.shape[1], dtype=bool)
    lower = projected * const(forest.above, cdof)
    blocks = lower + (lower * const(~eye, cdof)[None]).transpose(0, 2, 1)
    blocks = blocks + const(eye & (forest.dofs == m.nv)[:, :, None], cdof)  # the padding
    qM = plus_diagonal(TreeMatrix(blocks, forest), const(m.dof_armature, cdof))
    return subtree_sums(forest, cinert), qM


def _tendon_inertia(m: Any) -> np.ndarray:
    """Inertia (nv, nv) that the armature of fixed tendons adds, between dofs of one branch only, as in MuJoCo."""
    J = length_rows(m)[1][m.njnt :]
    above = tree.dof_ancestors(m)
    return np.asarray(J.T @ (np.asarray(m.tendon_armature)[:, None] * J) * (above | above.T))
