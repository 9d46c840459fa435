"""Constant masks of a model's kinematic trees, as NumPy arrays: who is whose ancestor.

Sums along a branch or over a subtree are then one matrix product with a constant, which keeps the graph of a step
small however deep the tree is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

FREE, BALL, SLIDE, HINGE = 0, 1, 2, 3
"""jnt_type of MuJoCo."""


def subtree(m: Any) -> np.ndarray:
    """(nbody, nbody) bool: [i, j] is true where body j lies in the subtree of body i, i itself included."""
    inside = np.eye(m.nbody, dtype=bool)
    for j in range(1, m.nbody):
        inside[:, j] |= inside[:, m.body_parentid[j]]
    return inside


def body_dofs(m: Any) -> np.ndarray:
    """(nbody, nv) bool: [b, j] is true where dof j moves body b."""
    return subtree(m)[np.asarray(m.dof_bodyid)].T.reshape(m.nbody, m.nv)


def dof_ancestors(m: Any) -> np.ndarray:
    """(nv, nv) bool: [i, j] is true where dof j is i or an ancestor of i along dof_parentid."""
    above = np.eye(m.nv, dtype=bool)
    for i in range(m.nv):
        parent = m.dof_parentid[i]
        if parent >= 0:
            above[i] |= above[parent]
    return above


def dofs_before(m: Any) -> np.ndarray:
    """(nv, nv) bool: [i, j] is true where dof j moves the frame in which the axis of dof i is fixed.

    These are i's strict ancestors; for the three rotations of a free joint, whose axes are those of the body and turn
    together, only the ancestors of the first of them.
    """
    before = dof_ancestors(m) & ~np.eye(m.nv, dtype=bool)
    for j in range(m.njnt):
        if m.jnt_type[j] == FREE:
            first = m.jnt_dofadr[j] + 3
            before[first : first + 3] = before[first]
    return before


def free_dofs(m: Any) -> tuple[np.ndarray, np.ndarray]:
    """Addresses (nfree,) in qpos and in qvel of the free joints."""
    free = np.flatnonzero(np.asarray(m.jnt_type) == FREE)
    return np.asarray(m.jnt_qposadr)[free], np.asarray(m.jnt_dofadr)[free]


def scalar_joints(m: Any) -> tuple[np.ndarray, np.ndarray]:
    """Addresses in qpos and in qvel of the hinge and slide joints."""
    scalar = np.flatnonzero(np.asarray(m.jnt_type) >= SLIDE)
    return np.asarray(m.jnt_qposadr)[scalar], np.asarray(m.jnt_dofadr)[scalar]
