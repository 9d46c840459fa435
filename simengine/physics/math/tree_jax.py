"""Constant masks of a model's kinematic trees, as NumPy arrays: which body or dof is an ancestor of which.

With them, a sum along a branch or over a subtree is one matrix product with a constant, which keeps the graph of a step
small for trees of any depth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

FREE, BALL, SLIDE, HINGE = 0, 1, 2, 3
"""jnt_type of MuJoCo."""


def subtree(m: Any) -> np.ndarray:
    """(nbody, nbody) bool: [i, j] is true where body j is in the subtree of body i, which includes i."""
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

    These are the strict ancestors of i. The three rotations of a free or ball joint turn with the body as one, so each
    of them has the strict ancestors of the first.
    """
    before = dof_ancestors(m) & ~np.eye(m.nv, dtype=bool)
    for first in quaternions(m)[1]:
        before[first : first + 3] = before[first]
    return before


def rotations(m: Any) -> np.ndarray:
    """(nv,) bool: whether the dof is a rotation."""
    joint = np.asarray(m.dof_jntid)
    kind = np.asarray(m.jnt_type)[joint]
    shifts = (kind == SLIDE) | ((kind == FREE) & (np.arange(m.nv) - np.asarray(m.jnt_dofadr)[joint] < 3))
    return np.asarray(~shifts)


def free_dofs(m: Any) -> np.ndarray:
    """Addresses (nfree,) in qvel of the free joints."""
    return np.asarray(m.jnt_dofadr)[np.flatnonzero(np.asarray(m.jnt_type) == FREE)]


def quaternions(m: Any) -> tuple[np.ndarray, np.ndarray]:
    """Addresses (n,) of the quaternions in qpos, and of the angular velocities in qvel, of free and ball joints."""
    kind = np.asarray(m.jnt_type)
    turning = np.flatnonzero(kind <= BALL)
    skip = np.where(kind[turning] == FREE, 3, 0)
    return np.asarray(m.jnt_qposadr)[turning] + skip, np.asarray(m.jnt_dofadr)[turning] + skip


def plain_coordinates(m: Any) -> tuple[np.ndarray, np.ndarray]:
    """Addresses in qpos and in qvel of scalar coordinates: hinges, slides and the positions of free joints."""
    kind = np.asarray(m.jnt_type)
    joint = np.repeat(np.arange(m.njnt), np.select([kind == FREE, kind == BALL], [3, 0], 1))
    number = np.arange(joint.size) - np.searchsorted(joint, joint)
    return np.asarray(m.jnt_qposadr)[joint] + number, np.asarray(m.jnt_dofadr)[joint] + number
