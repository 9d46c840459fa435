"""Constraint rows in JAX, for one world: limits of joints and tendons, and pyramidal contacts in fixed slots.

Source: MuJoCo, chapter "Computation", sections "Constraint model" and "Contact"; quantities as after
mj_makeConstraint, mj_projectConstraint and mj_referenceConstraint.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.math import quaternion, tree
from simengine.math.lengths import length_rows
from simengine.math.soft_constraint import clamped_solimp, impedance, stiffness_damping
from simengine.math.spatial import wrench_about
from simengine.math.vector import MINVAL, const, matmul, normalize


class RowLayout(NamedTuple):
    """Which row slot holds what; limits first (joints, then tendons; lower side, upper side), then contacts by slot.

    Attributes:
        limit_id (nlimit2,), limit_sign (nlimit2,): joint, or njnt + tendon, of each limit row, and the sign of its
            Jacobian, +1 lower, -1 upper.
        contact_slot (nrow,): contact slot of each contact row.
        contact_lean (nrow, 2): how far the row leans from the contact's normal along the two tangents.
        contact_body (nrow, 2): bodies of the row's contact.
        tran_scale (nrow,): regularisation of the row per unit (1 - d) / d.
    """

    limit_id: np.ndarray
    limit_sign: np.ndarray
    contact_slot: np.ndarray
    contact_lean: np.ndarray
    contact_body: np.ndarray
    tran_scale: np.ndarray


def row_layout(m: Any) -> RowLayout:
    """Static row tables of a model."""
    slot_cand = np.asarray(m.slot_cand)
    condim = np.asarray(m.cand_condim)[slot_cand]
    count = np.where(condim == 1, 1, 4)
    slot = np.repeat(np.arange(m.nslot), count)
    edge = np.arange(slot.size) - np.repeat(np.cumsum(count) - count, count)
    cand = slot_cand[slot]
    pyramid = condim[slot] > 1
    friction = np.asarray(m.cand_friction, np.float64).reshape(-1, 5)[cand]

    # edges +t1, -t1, +t2, -t2, each leaning by its friction coefficient
    lean = np.zeros((slot.size, 2))
    rows = np.flatnonzero(pyramid)
    tangent = edge[rows] // 2
    lean[rows, tangent] = np.where(edge[rows] % 2 == 0, 1.0, -1.0) * friction[rows, tangent]

    # inverse inertia of the normal, from the bodies' at qpos0; all edges of a pyramid share that of a cone with the
    # same friction: R = 2 mu^2 (1 - d) / d A (1 + f^2), mu = f / sqrt(impratio)
    invweight = np.asarray(m.body_invweight0, np.float64)[:, 0]
    body1, body2 = np.asarray(m.geom_bodyid)[m.cand_geom1][cand], np.asarray(m.geom_bodyid)[m.cand_geom2][cand]
    normal = invweight[body1] + invweight[body2]
    f2 = friction[:, 0] ** 2
    scale = np.where(pyramid, normal * (1.0 + f2) * 2.0 * f2 / float(m.opt_impratio), normal)
    limited = np.asarray(m.limit_id)
    bodies = np.stack([body1, body2], axis=1)
    return RowLayout(np.repeat(limited, 2), np.tile([1.0, -1.0], limited.size), slot, lean, bodies, scale)


def constraint(
    m: Any,
    qpos: jax.Array,
    qvel: jax.Array,
    subtree_com: jax.Array,
    cdof: jax.Array,
    contact_dist: jax.Array,
    contact_pos: jax.Array,
    contact_frame: jax.Array,
    contact_active: jax.Array,
) -> tuple[jax.Array, ...]:
    """Jacobian, regularisation and reference acceleration of every row slot.

    Args: qpos (nq,), qvel (nv,), subtree_com (nbody, 3), cdof (nv, 6), contact_dist (nslot,) [m], contact_pos
        (nslot, 3) [m], contact_frame (nslot, 9), contact_active (nslot,) bool.
    Returns:
        efc_active (nefc_max,) bool: the row exists; all else is zero where it does not.
        efc_J (nefc_max, nv), efc_pos (nefc_max,), efc_margin (nefc_max,) [m, rad].
        efc_D (nefc_max,): inverse regularisation 1/R.
        efc_aref (nefc_max,): reference acceleration [m/s^2, rad/s^2].
    """
    layout = row_layout(m)
    # (1) limits: distance to each side and the sign of its gradient
    limit_pos, limit_J, limit_margin = _limits(m, layout, qpos)

    # (2) contacts: relative velocity of the bodies at the contact, in the contact frame, combined into edges
    contact_J = _contact_jacobian(m, layout, subtree_com, cdof, contact_pos, contact_frame)
    cand = np.asarray(m.slot_cand)[layout.contact_slot]
    margin = np.concatenate([limit_margin, np.asarray(m.cand_margin, np.float64)[cand]])
    pos = jnp.concatenate([limit_pos, per_row(layout, contact_dist)])
    listed = jnp.concatenate([jnp.ones(limit_pos.shape, bool), per_row(layout, contact_active)])

    # (3) rows that exist: closer than the margin
    active = listed & (pos < const(margin, pos))
    exists = active.astype(qpos.dtype)
    J = jnp.concatenate([limit_J, contact_J]) * exists[:, None]
    residual = jnp.where(active, pos - const(margin, pos), 0.0)

    # (4) impedance, regularisation and reference acceleration
    limit_solref, limit_solimp, limit_scale = _limit_parameters(m, layout)
    solref = np.concatenate([limit_solref, m.cand_solref[cand]])
    solimp = clamped_solimp(np.concatenate([limit_solimp, m.cand_solimp[cand]]))
    scale = np.concatenate([limit_scale, layout.tran_scale])
    k, b = stiffness_damping(solref, solimp, float(m.opt_timestep))
    d = impedance(solimp, residual)
    regularisation = jnp.maximum(const(scale, d) * (1.0 - d) / d, MINVAL)
    aref = -const(b, d) * matmul(J, qvel) - const(k, d) * d * residual
    efc_pos = jnp.where(active, pos, 0.0)
    return active, J, efc_pos, const(margin, pos) * exists, exists / regularisation, aref * exists


def _limits(m: Any, layout: RowLayout, qpos: jax.Array) -> tuple[jax.Array, jax.Array, np.ndarray]:
    """Distances (n,), Jacobian (n, nv) and margins (n,) of the limit rows."""
    limited, sign = layout.limit_id, layout.limit_sign
    side = np.where(sign > 0, 0, 1)
    bound = const(np.concatenate([m.jnt_range, m.tendon_range])[limited, side], qpos)
    by_qpos, by_qvel = (rows[limited] for rows in length_rows(m))
    pos, J = (matmul(const(by_qpos, qpos), qpos) - bound) * const(sign, qpos), const(by_qvel * sign[:, None], qpos)
    margin = np.concatenate([m.jnt_margin, m.tendon_margin])[limited]
    return *_ball_limits(m, layout, qpos, pos, J, margin), margin


def _ball_limits(
    m: Any, layout: RowLayout, qpos: jax.Array, pos: jax.Array, J: jax.Array, margin: np.ndarray
) -> tuple[jax.Array, jax.Array]:
    """Distances (n,) and Jacobian (n, nv) with those of ball joints put in: one bound, on the angle about any axis.

    Their second row never acts.
    """
    row = np.flatnonzero(np.append(m.jnt_type, np.full(m.ntendon, tree.HINGE))[layout.limit_id] == tree.BALL)[::2]
    if not row.size:
        return pos, J
    joint = layout.limit_id[row]
    quats = np.asarray(m.jnt_qposadr)[joint][:, None] + np.arange(4)
    turned = quaternion.log(quaternion.renormalize(qpos[quats]))
    x_axis = jnp.broadcast_to(const(np.array([1.0, 0.0, 0.0]), qpos), turned.shape)
    axis, angle = normalize(turned, x_axis)
    pos = pos.at[row].set(const(np.asarray(m.jnt_range)[joint].max(axis=1), qpos) - angle)
    pos = pos.at[row + 1].set(const(margin[row + 1] + 1.0, qpos))
    return pos, J.at[row[:, None], np.asarray(m.jnt_dofadr)[joint][:, None] + np.arange(3)].set(-axis)


def _limit_parameters(m: Any, layout: RowLayout) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """solref (n, 2), solimp (n, 5) and approximate inverse inertia (n,) of the limit rows."""
    joint_invweight = np.asarray(m.dof_invweight0)[np.asarray(m.jnt_dofadr)]
    of_joints = (m.jnt_solref, m.jnt_solimp, joint_invweight)
    of_tendons = (m.tendon_solref_lim, m.tendon_solimp_lim, m.tendon_invweight0)
    solref, solimp, invweight = (
        np.concatenate(pair)[layout.limit_id] for pair in zip(of_joints, of_tendons, strict=True)
    )
    return solref, solimp, invweight


def _contact_jacobian(
    m: Any, layout: RowLayout, subtree_com: jax.Array, cdof: jax.Array, pos: jax.Array, frame: jax.Array
) -> jax.Array:
    """Jacobian (nrow, nv) of the contact rows: the generalised force of a unit force along each row's direction.

    The force acts on the second body and, reversed, on the first. A dof shared by both feels nothing, so bodies of one
    tree, and a first body that cannot move, need one product only.
    """
    if not m.nslot:
        return jnp.zeros((0, m.nv), cdof.dtype)
    moves = tree.body_dofs(m)
    body1, body2 = layout.contact_body.T
    root1, root2 = (np.asarray(m.body_rootid)[b] for b in (body1, body2))
    direction, at = row_directions(layout, frame), per_row(layout, pos)

    def felt(root: np.ndarray, sign: np.ndarray) -> jax.Array:
        wrench = wrench_about(subtree_com[root], at, direction)
        return matmul(wrench, cdof.T) * const(sign, cdof)

    if ((root1 == root2) | ~moves[body1].any(axis=1)).all():
        return felt(root2, moves[body2].astype(np.int64) - moves[body1])
    return felt(root2, moves[body2]) - felt(root1, moves[body1])


def per_row(layout: RowLayout, values: jax.Array) -> jax.Array:
    """Values (nslot, ...) of the contact slots repeated for each of their rows: (nrow, ...)."""
    nslot, nrow = values.shape[0], layout.contact_slot.size
    if nrow == 4 * nslot:
        # the same as the gather below, which compilers for the CPU fuse badly
        repeated = jnp.broadcast_to(values[:, None], (nslot, 4, *values.shape[1:]))
        return repeated.reshape(nrow, *values.shape[1:])
    return values[layout.contact_slot]


def row_directions(layout: RowLayout, contact_frame: jax.Array) -> jax.Array:
    """Direction (nrow, 3) in the world of the force of each contact row per unit of efc_force."""
    frame = per_row(layout, contact_frame)
    lean = const(layout.contact_lean, frame)
    return frame[:, :3] + lean[:, :1] * frame[:, 3:6] + lean[:, 1:] * frame[:, 6:]
