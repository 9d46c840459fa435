"""A model at qpos0: the Jacobians from which its inverse weights follow, and what the lengths of tendons depend on."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from simengine.model.codes import among


class AtRest(NamedTuple):
    """The model at qpos0.

    Attributes:
        M: inertia without bodies and armature, which is the part from tendons, (nv, nv).
        linear, angular: Jacobians of each body's origin and of its orientation, (nbody, 3, nv).
        xmat: axes of each body, as columns, (nbody, 3, 3).
        turned: `angular` in the principal axes of each body, (nbody, 3, nv).
        tendons: Jacobian of the tendons' lengths, (ntendon, nv).
    """

    M: np.ndarray
    linear: np.ndarray
    angular: np.ndarray
    xmat: np.ndarray
    turned: np.ndarray
    tendons: np.ndarray


def at_rest(mj: mujoco.MjModel) -> AtRest:
    """Inertia and Jacobians at qpos0."""
    data = mujoco.MjData(mj)
    data.qpos[:] = mj.qpos0
    mujoco.mj_fwdPosition(mj, data)
    linear, angular, centre = (np.zeros((mj.nbody, 3, mj.nv)) for _ in range(3))
    for body in range(mj.nbody):
        mujoco.mj_jacBody(mj, data, linear[body], angular[body], body)
        mujoco.mj_jacBodyCom(mj, data, centre[body], None, body)
    turned = np.einsum("bij,biv->bjv", data.ximat.reshape(-1, 3, 3), angular)
    M = np.zeros((mj.nv, mj.nv))
    mujoco.mj_fullM(mj, data, M)
    M -= np.einsum("b,biv,biw->vw", mj.body_mass, centre, centre, optimize=True)
    M -= np.einsum("bi,biv,biw->vw", mj.body_inertia, turned, turned, optimize=True)
    M -= np.diag(mj.dof_armature)
    return AtRest(M, linear, angular, data.xmat.reshape(-1, 3, 3), turned, tendon_jacobian(mj, data))


def tendon_jacobian(mj: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Jacobian of the tendons' lengths, (ntendon, nv)."""
    dense = np.zeros((mj.ntendon, mj.nv))
    for t in range(mj.ntendon):
        first, number = mj.ten_J_rowadr[t], mj.ten_J_rownnz[t]
        dense[t, mj.ten_J_colind[first : first + number]] = data.ten_J[first : first + number]
    return dense


def rests_with_joints(mj: mujoco.MjModel) -> np.ndarray:
    """(ntendon,) bool: whether the rest length of the tendon's spring follows from the rest positions of joints."""
    data = mujoco.MjData(mj)
    data.qpos[:] = mj.qpos_spring
    for compute in (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_tendon):
        compute(mj, data)
    return (mj.tendon_stiffness > 0) & (abs(mj.tendon_lengthspring - data.ten_length[:, None]) < 1e-10).all(axis=1)


def follows_from_geoms(mj: mujoco.MjModel) -> np.ndarray:
    """(ntendon,) bool: whether the tendon wraps geoms and has rows (limit, friction, equality) or a spring as above."""
    on_geom = among(mj.wrap_type, mujoco.mjtWrap.mjWRAP_SPHERE, mujoco.mjtWrap.mjWRAP_CYLINDER)
    ends = zip(mj.tendon_adr, mj.tendon_adr + mj.tendon_num, strict=True)
    wraps = np.array([on_geom[first:end].any() for first, end in ends], bool)
    equalities = mj.eq_type == int(mujoco.mjtEq.mjEQ_TENDON)
    linked = np.isin(np.arange(mj.ntendon), (mj.eq_obj1id[equalities], mj.eq_obj2id[equalities]))
    rows = (mj.tendon_limited != 0) | (mj.tendon_frictionloss > 0) | linked
    return wraps & (rows | rests_with_joints(mj))


def lengths_by_qpos(mj: mujoco.MjModel) -> np.ndarray:
    """(ntendon, nq): derivatives of the lengths of fixed tendons by the coordinates; zero for other tendons."""
    rows = np.zeros((mj.ntendon, mj.nq))
    for t in range(mj.ntendon):
        for w in range(mj.tendon_adr[t], mj.tendon_adr[t] + mj.tendon_num[t]):
            if mj.wrap_type[w] == mujoco.mjtWrap.mjWRAP_JOINT:
                rows[t, mj.jnt_qposadr[mj.wrap_objid[w]]] += mj.wrap_prm[w]
    return rows
