"""Accuracy of an inertia matrix whose moments are about one point per kinematic tree."""

from __future__ import annotations

import mujoco
import numpy as np

_MOST = 100.0
"""Largest ratio of a subtree's moment of inertia about the tree's centre of mass to that about its own joint. The
relative error of the joint's inertia is this many times the rounding unit: 1e-5 in float32."""


def at_rest(mj: mujoco.MjModel) -> mujoco.MjData:
    """The frames of bodies, the tendons and the inertia at qpos0."""
    data = mujoco.MjData(mj)
    for compute in (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_tendon, mujoco.mj_makeM):
        compute(mj, data)
    return data


def has_small_far_bodies(mj: mujoco.MjModel, data: mujoco.MjData) -> bool:
    """Whether some joint rotates a subtree that is small compared with its distance from the tree's centre of mass.

    Args:
        mj: the model.
        data: as `at_rest` returns it.
    """
    if not mj.nv:
        return False
    diagonal = data.M[mj.M_rowadr + mj.M_rownnz - 1]  # rows are those of the lower triangle
    body = mj.dof_bodyid
    away = data.subtree_com[body] - data.subtree_com[mj.body_rootid[body]]
    far = mj.body_subtreemass[body] * (away**2).sum(axis=1)
    return bool((far > _MOST * diagonal)[_turns(mj)].any())


def _turns(mj: mujoco.MjModel) -> np.ndarray:
    """(nv,) bool: whether the dof is a rotation."""
    kind = mj.jnt_type[mj.dof_jntid]
    number = np.arange(mj.nv) - mj.jnt_dofadr[mj.dof_jntid]
    shifts = (kind == mujoco.mjtJoint.mjJNT_SLIDE) | ((kind == mujoco.mjtJoint.mjJNT_FREE) & (number < 3))
    return np.asarray(~shifts)
