"""Rows of equality constraints in JAX, for one world: connect, weld, joint and tendon.

Source: MuJoCo documentation, chapter "Computation", section "Constraint model", "Equality". The constraints are

    connect           p1 - p2 = 0 for a point of each body
    weld              that, and ts im(q2* q1) = 0 for a frame of each body, with the torque scale ts
    joint, tendon     x1 - poly(x2) = 0 for their lengths, measured from qpos0
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.constraints.rows_jax import Rows, empty, translation_weights
from simengine.physics.math import quaternion_jax as quaternion
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.vector_jax import const, cross, dot, joined, matmul, norm, own, tables
from simengine.physics.tendons.lengths_jax import length_rows, lengths

CONNECT, WELD, JOINT, TENDON = 0, 1, 2, 3
"""eq_type of MuJoCo (mjtEq)."""


class Motion(NamedTuple):
    """Fields on positions and velocities that the rows need, (nbody, ...) and (nv, 6); see `simengine.state.fields`."""

    xpos: jax.Array
    xquat: jax.Array
    xmat: jax.Array
    subtree_com: jax.Array
    cdof: jax.Array
    cvel: jax.Array
    cdof_dot: jax.Array


class Frames(NamedTuple):
    """Constrained frames of both bodies of n connects or welds, each (n, 2, ...): body, point and orientation."""

    body: np.ndarray
    point: jax.Array
    quat: jax.Array


def frames(m: Any, eq: np.ndarray, xpos: jax.Array, xquat: jax.Array, xmat: jax.Array) -> Frames:
    """The frames of constraints `eq` (n,) in the world frame."""
    body = np.asarray(m.eq_obj)[eq]
    anchor, local = const(np.asarray(m.eq_anchor)[eq], xpos), const(np.asarray(m.eq_quat)[eq], xpos)
    mat = xmat[body].reshape(*body.shape, 3, 3)
    point = xpos[body] + jnp.sum(mat * anchor[:, :, None, :], axis=-1)
    return Frames(body, point, quaternion.mul(xquat[body], local))


def wrenches(
    m: Any, xpos: jax.Array, xquat: jax.Array, xmat: jax.Array, efc_force: jax.Array
) -> tuple[Frames, jax.Array, jax.Array]:
    """Forces and torques of connects and welds on the first of their bodies; the second gets the opposite.

    Args: efc_force (nefc_max,), zero in rows that do not exist.
    Returns: the frames (n, 2, ...), force (n, 3) [N] at the frames' points, torque (n, 3) [N m], in the world.
    """
    rows = np.asarray(m.eq_rows)
    eq = np.flatnonzero((rows > 0) & (np.asarray(m.eq_type) <= WELD))
    at = frames(m, eq, xpos, xquat, xmat)
    first = (np.cumsum(rows) - rows)[eq, None]
    weld = (np.asarray(m.eq_type)[eq] == WELD)[:, None]
    # forces of the rotational rows times the transpose of the map from angular velocity to the rate of the error
    turning = efc_force[np.where(weld, first + np.arange(3, 6), 0)] * const(weld, efc_force)
    scale = const(0.5 * np.asarray(m.eq_data)[eq, 10:11], efc_force)
    pure = jnp.concatenate([jnp.zeros_like(turning[:, :1]), turning], axis=-1)
    torque = quaternion.mul(quaternion.mul(at.quat[:, 1], pure), quaternion.conjugate(at.quat[:, 0]))[:, 1:] * scale
    return at, efc_force[first + np.arange(3)], torque


class _Part(NamedTuple):
    """Rows of constraints `eq` (n,) of one type: position and drift (n, rows), J (n, rows, nv), scale (n, rows)."""

    eq: np.ndarray
    pos: jax.Array
    J: jax.Array
    drift: jax.Array
    scale: Any


def equality_rows(
    m: Any,
    qpos: jax.Array,
    qvel: jax.Array,
    motion: Motion,
    eq_active: jax.Array,
    ten_length: jax.Array,
    ten_J: jax.Array,
) -> Rows:
    """The rows of all constraints in their order; rows of inactive constraints are not listed.

    Args: qpos (nq,), qvel (nv,), eq_active (neq,), ten_length (ntendon,), ten_J (ntendon, nv).
    """
    on = np.asarray(m.eq_rows) > 0
    kind = np.asarray(m.eq_type)
    on_bodies = [(code, np.flatnonzero(on & (kind == code))) for code in (CONNECT, WELD)]
    parts = [_between_bodies(m, eq, code == WELD, qvel, motion) for code, eq in on_bodies if eq.size]
    scalar = np.flatnonzero(on & (kind >= JOINT))
    parts += [_between_lengths(m, scalar, qpos, ten_length, ten_J)] if scalar.size else []
    if not parts:
        return empty(m.nv, qvel)
    eq = np.concatenate([np.repeat(part.eq, part.pos.shape[1]) for part in parts])
    order = np.argsort(eq, kind="stable")
    distances = [jnp.broadcast_to(norm(part.pos)[:, None], part.pos.shape) for part in parts]
    pos, distance, drift = (
        jnp.concatenate([x.ravel() for x in values])[order]
        for values in ([part.pos for part in parts], distances, [part.drift for part in parts])
    )
    J = jnp.concatenate([part.J.reshape(-1, m.nv) for part in parts])[order]
    scale = joined(*(part.scale.ravel() for part in parts))[order]
    eq = eq[order]
    solref, solimp = np.asarray(m.eq_solref)[eq], np.asarray(m.eq_solimp)[eq]
    return Rows(eq_active[eq] != 0, True, J, pos, np.zeros(eq.size), distance, drift, solref, solimp, scale)


def _between_bodies(m: Any, eq: np.ndarray, weld: bool, qvel: jax.Array, motion: Motion) -> _Part:
    """Connects, or welds: the difference of the first body's point and frame from the second's."""
    body, point, q = frames(m, eq, motion.xpos, motion.xquat, motion.xmat)
    arm = point - motion.subtree_com[np.asarray(m.body_rootid)[body]]

    # columns of the Jacobian of each body: (n, 2, nv, 3)
    moves = tree.body_dofs(m)[body]
    sign = const(moves * np.array([1.0, -1.0])[:, None], qvel)[..., None]
    turning, shift = motion.cdof[None, None, :, :3], motion.cdof[None, None, :, 3:]
    moving = (cross(turning, arm[:, :, None, :]) + shift) * sign
    J, pos = jnp.sum(moving, axis=1), point[:, 0] - point[:, 1]

    # acceleration of the points at constant qvel
    speeding = matmul(const(tree.body_dofs(m), qvel), motion.cdof_dot * qvel[:, None])[body]
    omega, velocity = motion.cvel[body][..., :3], motion.cvel[body][..., 3:]
    point_velocity = velocity + cross(omega, arm)
    acceleration = cross(speeding[..., :3], arm) + speeding[..., 3:] + cross(omega, point_velocity)
    drift = acceleration[:, 0] - acceleration[:, 1]
    xp, translation, turning_weight = tables(translation_weights(m, qvel.dtype)[body], m.body_invweight0[body, 1])
    invweight = xp.stack([translation.sum(axis=1), turning_weight.sum(axis=1)], axis=1)
    if not weld:
        return _Part(eq, pos, jnp.swapaxes(J, 1, 2), drift, xp.repeat(invweight[:, :1], 3, axis=1))

    q1, back = q[:, 0], quaternion.conjugate(q[:, 1])
    torquescale = const(np.asarray(m.eq_data)[eq, 10:11], qvel)
    rotation = quaternion.mul(back, q1)[:, 1:] * torquescale

    def felt(scalar: jax.Array, vector: jax.Array) -> jax.Array:
        """Half im(q2* x q1) times the torque scale, x = (scalar, vector): the error's rate if x is angular velocity."""
        x = jnp.concatenate([scalar[..., None], vector], axis=-1)
        wide = (slice(None), *(None,) * (x.ndim - 2))
        return 0.5 * torquescale[wide] * quaternion.mul(quaternion.mul(back[wide], x), q1[wide])[..., 1:]

    turned = jnp.sum(turning * sign, axis=1)
    relative = omega[:, 0] - omega[:, 1]
    change = speeding[:, 0, :3] - speeding[:, 1, :3] + cross(omega[:, 0], omega[:, 1])
    drift = jnp.concatenate([drift, felt(-0.5 * dot(relative, relative), change)], axis=-1)
    J = jnp.concatenate([J, felt(jnp.zeros_like(turned[..., 0]), turned)], axis=-1)
    pos = jnp.concatenate([pos, rotation], axis=-1)
    return _Part(eq, pos, jnp.swapaxes(J, 1, 2), drift, xp.repeat(invweight, 3, axis=1))


def _between_lengths(m: Any, eq: np.ndarray, qpos: jax.Array, ten_length: jax.Array, ten_J: jax.Array) -> _Part:
    """Joints or tendons: the first length minus a polynomial of the second, or minus its constant term."""
    obj = np.asarray(m.eq_obj)[eq]
    two = obj[:, 1] >= 0
    tendon = np.asarray(m.eq_type)[eq] == TENDON
    first, second = (np.where(tendon, m.njnt, 0) + np.where(two, other, obj[:, 0]) for other in (obj[:, 0], obj[:, 1]))
    rows = length_rows(m)[0][: m.njnt]
    start = matmul(const(rows, qpos), const(m.qpos0, qpos)) if own(m.qpos0) else rows @ m.qpos0
    length, by_qvel = lengths(m, qpos, ten_length, ten_J)
    length = length - const(joined(start, m.tendon_length0), qpos)
    c = const(np.asarray(m.eq_data)[eq, :5] * np.stack([np.ones(eq.size), *4 * [two]], axis=1), qpos)
    x = length[second]
    value = c[:, 0] + x * (c[:, 1] + x * (c[:, 2] + x * (c[:, 3] + x * c[:, 4])))
    slope = c[:, 1] + x * (2.0 * c[:, 2] + x * (3.0 * c[:, 3] + x * 4.0 * c[:, 4]))
    J = by_qvel[first] - slope[:, None] * by_qvel[second]
    xp, invweight = tables(joined(m.dof_invweight0[np.asarray(m.jnt_dofadr)], m.tendon_invweight0))
    scale = invweight[first] + xp.where(two, invweight[second], 0.0)
    pos = length[first] - value
    return _Part(eq, pos[:, None], J[:, None, :], jnp.zeros_like(pos)[:, None], scale[:, None])
