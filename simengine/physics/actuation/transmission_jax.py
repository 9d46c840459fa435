"""Transmissions in JAX, for one world: lengths of the actuators and their derivatives, as after mj_transmission.

A transmission to sites exerts a force vector on each of two bodies. The moment of a dof is the dot product of its
motion axis with the force vectors on the bodies that it moves.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.actuation.actuators_jax import (
    TRN_JOINT,
    TRN_JOINTINPARENT,
    TRN_SITE,
    TRN_SLIDERCRANK,
    TRN_TENDON,
)
from simengine.physics.math import quaternion_jax as quaternion
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.spatial_jax import wrench_about
from simengine.physics.math.vector_jax import const, cross, dot, matmul, safe_sqrt


def transmission(
    m: Any,
    qpos: jax.Array,
    qvel: jax.Array,
    xquat: jax.Array,
    subtree_com: jax.Array,
    cdof: jax.Array,
    site_xpos: jax.Array,
    site_xmat: jax.Array,
    ten_length: jax.Array,
    ten_J: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Length, velocity and moments of every actuator.

    Args: qpos (nq,), qvel (nv,), xquat (nbody, 4), subtree_com (nbody, 3), cdof (nv, 6), site_xpos (nsite, 3),
        site_xmat (nsite, 9), ten_length (ntendon,), ten_J (ntendon, nv).
    Returns: actuator_length (nu,), actuator_velocity (nu,), actuator_moment (nu, nv).
    """
    kind, target = np.asarray(m.actuator_trntype), np.asarray(m.actuator_trnid)
    length, moment = jnp.zeros(m.nu, qpos.dtype), jnp.zeros((m.nu, m.nv), qpos.dtype)

    def put(u: np.ndarray, found: tuple[jax.Array, jax.Array]) -> None:
        nonlocal length, moment
        length, moment = length.at[u].set(found[0]), moment.at[u].set(found[1])

    # (1) lengths and (2) moments, one type of transmission after another
    on_joint = np.flatnonzero((kind == TRN_JOINT) | (kind == TRN_JOINTINPARENT))
    for group in _joints_by_type(m, on_joint):
        put(group, _joint(m, group, qpos))
    tendon = np.flatnonzero(kind == TRN_TENDON)
    if tendon.size:
        gear, ids = const(m.actuator_gear[tendon, 0], qpos), target[tendon, 0]
        put(tendon, (gear * ten_length[ids], gear[:, None] * ten_J[ids]))
    site = np.flatnonzero(kind == TRN_SITE)
    if site.size:
        put(site, _site(m, site, xquat, subtree_com, cdof, site_xpos, site_xmat))
    crank = np.flatnonzero(kind == TRN_SLIDERCRANK)
    if crank.size:
        put(crank, _crank(m, crank, subtree_com, cdof, site_xpos, site_xmat))

    # (3) velocities, which MuJoCo leaves at zero for an actuator that moves nothing
    velocity = matmul(moment, qvel) if m.opt_actuation else jnp.zeros_like(length)
    return length, velocity, moment


def _joints_by_type(m: Any, u: np.ndarray) -> list[np.ndarray]:
    """Actuators on joints, grouped by the type of joint: scalar, ball, free."""
    kind = np.minimum(np.asarray(m.jnt_type)[np.asarray(m.actuator_trnid)[u, 0]], tree.SLIDE)
    return [u[kind == k] for k in (tree.SLIDE, tree.BALL, tree.FREE) if (kind == k).any()]


def _joint(m: Any, u: np.ndarray, qpos: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Length and moments of actuators on joints of one type."""
    joint = np.asarray(m.actuator_trnid)[u, 0]
    adr, dof = np.asarray(m.jnt_qposadr)[joint], np.asarray(m.jnt_dofadr)[joint]
    kind, gear = int(m.jnt_type[joint[0]]), const(m.actuator_gear[u], qpos)
    row, blank = np.arange(u.size)[:, None], jnp.zeros((u.size, m.nv), qpos.dtype)
    if kind >= tree.SLIDE:
        return gear[:, 0] * qpos[adr], blank.at[row, dof[:, None]].set(gear[:, :1])
    first = 3 if kind == tree.FREE else 0
    quat = quaternion.renormalize(qpos[adr[:, None] + first + np.arange(4)])
    turning = gear[:, first : first + 3]
    length = dot(quaternion.log(quat), turning) if kind == tree.BALL else jnp.zeros(u.size, qpos.dtype)
    in_parent = np.asarray(m.actuator_trntype)[u, None] == TRN_JOINTINPARENT
    turning = jnp.where(in_parent, quaternion.rotate(quaternion.conjugate(quat), turning), turning)
    moment = blank.at[row, dof[:, None] + first + np.arange(3)].set(turning)
    return length, moment.at[row, dof[:, None] + np.arange(first)].set(gear[:, :first])


def _moves(m: Any, site: np.ndarray) -> np.ndarray:
    """(n, nv) bool: whether the dof moves the site; no dof moves site -1, which means none."""
    return tree.body_dofs(m)[np.asarray(m.site_bodyid)[site]] & (site >= 0)[:, None]


def _wrench(
    m: Any, site: np.ndarray, force: jax.Array, torque: jax.Array, site_xpos: jax.Array, subtree_com: jax.Array
) -> jax.Array:
    """Com-based force vectors (n, 6) of forces at the sites and torques."""
    com = subtree_com[np.asarray(m.body_rootid)[np.asarray(m.site_bodyid)[site]]]
    wrench = wrench_about(com, site_xpos[site], force)
    return wrench + jnp.concatenate([torque, jnp.zeros_like(torque)], axis=-1)


def _site(
    m: Any,
    u: np.ndarray,
    xquat: jax.Array,
    subtree_com: jax.Array,
    cdof: jax.Array,
    site_xpos: jax.Array,
    site_xmat: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """The gear as a force and a torque in the frame of the site or, if there is one, the reference site."""
    site, ref = np.asarray(m.actuator_trnid)[u].T
    alone = ref < 0
    frame = site_xmat[np.where(alone, site, ref)].reshape(-1, 3, 3)
    gear = const(m.actuator_gear[u], cdof)
    force, torque = (matmul(frame, part[:, :, None])[:, :, 0] for part in (gear[:, :3], gear[:, 3:]))
    onto, back = (_wrench(m, s, force, torque, site_xpos, subtree_com) for s in (site, ref))
    # a dof that moves both sites has no moment
    moved, counter = _moves(m, site), _moves(m, ref)
    moment = matmul(onto, cdof.T) * const(moved & ~counter, cdof) - matmul(back, cdof.T) * const(counter & ~moved, cdof)
    quats = quaternion.mul(xquat[np.asarray(m.site_bodyid)], const(m.site_quat, cdof))
    turned = quaternion.difference(quats[np.where(alone, site, ref)], quats[site])
    length = dot(force, site_xpos[site] - site_xpos[ref]) + dot(gear[:, 3:], turned)
    return jnp.where(alone, 0.0, length), moment


def _crank(
    m: Any, u: np.ndarray, subtree_com: jax.Array, cdof: jax.Array, site_xpos: jax.Array, site_xmat: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Position along the slider, which a rod of fixed length joins to the crank's pin.

    A rod too short to reach the pin counts as none.
    """
    pin, slider = np.asarray(m.actuator_trnid)[u].T
    gear, rod = const(m.actuator_gear[u, 0], cdof), const(m.actuator_cranklength[u], cdof)
    axis, offset = site_xmat[slider][:, 2::3], site_xpos[pin] - site_xpos[slider]
    along = dot(offset, axis)
    square = along * along + rod * rod - dot(offset, offset)
    ok = square > 0
    reach = safe_sqrt(jnp.where(ok, square, 0.0))
    inverse = jnp.where(ok, 1.0 / jnp.where(ok, reach, 1.0), 0.0)
    share = (gear * (1.0 - along * inverse))[:, None]
    force = share * axis + (gear * inverse)[:, None] * offset
    onto = _wrench(m, pin, force, jnp.zeros_like(force), site_xpos, subtree_com)
    back = _wrench(m, slider, -force, cross(axis, share * offset), site_xpos, subtree_com)
    moment = matmul(onto, cdof.T) * const(_moves(m, pin), cdof)
    return gear * (along - reach), moment + matmul(back, cdof.T) * const(_moves(m, slider), cdof)
