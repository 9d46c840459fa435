"""Constraint rows in JAX, for one world, in fixed slots: equalities, friction losses, limits and contacts.

Source: MuJoCo documentation, chapter "Computation", section "Constraint model"; quantities as after mj_makeConstraint,
mj_projectConstraint and mj_referenceConstraint. This is the JAX form of `constraint_general`, and of `constraint` for
the rows that it makes.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.constraints.equality_jax import Motion, equality_rows
from simengine.physics.constraints.row_layout_jax import (
    ELLIPTIC,
    PYRAMIDAL,
    RowLayout,
    per_row,
    row_directions,
    row_layout,
)
from simengine.physics.constraints.rows_jax import LEAST_SHARE, Rows, empty, solver_rows, translation_weights
from simengine.physics.constraints.tree_rows_jax import contact_rows, dof_rows, limit_rows, with_axes
from simengine.physics.math import quaternion_jax as quaternion
from simengine.physics.math import tree_jax as tree
from simengine.physics.math.forest_jax import forest_of
from simengine.physics.math.spatial_jax import wrench_about
from simengine.physics.math.tree_matrices_jax import RowMatrix, TreeRows, scaled
from simengine.physics.math.vector_jax import const, joined, matmul, normalize, tables
from simengine.physics.tendons.lengths_jax import lengths


def constraint(
    m: Any,
    qpos: jax.Array,
    qvel: jax.Array,
    xpos: jax.Array,
    xquat: jax.Array,
    xmat: jax.Array,
    subtree_com: jax.Array,
    cdof: jax.Array,
    cvel: jax.Array,
    cdof_dot: jax.Array,
    ten_length: jax.Array,
    ten_J: jax.Array,
    eq_active: jax.Array,
    contact_dist: jax.Array,
    contact_pos: jax.Array,
    contact_frame: jax.Array,
    contact_active: jax.Array,
) -> tuple[jax.Array, ...]:
    """Jacobian, regularisation and reference acceleration of every row slot.

    Args: qpos (nq,), qvel (nv,), xpos (nbody, 3), xquat (nbody, 4), xmat (nbody, 9), subtree_com (nbody, 3), cdof
        (nv, 6), cvel (nbody, 6), cdof_dot (nv, 6), ten_length (ntendon,), ten_J (ntendon, nv), eq_active (neq,),
        contact_dist (nslot,) [m], contact_pos (nslot, 3) [m], contact_frame (nslot, 9), contact_active (nslot,) bool.
    Returns:
        efc_active (nefc_max,) bool: whether the row exists; all other values are zero where it does not.
        efc_J (nefc_max, nv), by families in a world of very many dofs.
        efc_pos (nefc_max,), efc_margin (nefc_max,) [m, rad].
        efc_D (nefc_max,): inverse regularisation 1/R.
        efc_aref (nefc_max,): reference acceleration [m/s^2, rad/s^2].
    """
    layout = row_layout(m)
    # (1) equalities, friction losses and limits
    motion = Motion(xpos, xquat, xmat, subtree_com, cdof, cvel, cdof_dot)
    lengthened = (eq_active, ten_length, ten_J)
    equalities = equality_rows(m, qpos, qvel, motion, *lengthened) if m.neq else _no_rows(m, qvel)
    frictions, limits = _frictions(m, layout, ten_J), _limits(m, layout, qpos, ten_length, ten_J)

    # (2) contacts: relative velocity of the bodies in the contact frame, combined into the edges of pyramids
    contacts = _contacts(m, layout, subtree_com, cdof, contact_dist, contact_pos, contact_frame, contact_active)

    # (3) rows that exist, (4) their impedance, regularisation and reference acceleration
    return solver_rows([equalities, frictions, limits, contacts], qvel, float(m.opt_leastref))


def _frictions(m: Any, layout: RowLayout, ten_J: jax.Array) -> Rows:
    """Friction losses of dofs, then of tendons; their position is zero."""
    ids = layout.friction_id
    if not ids.size:
        return _no_rows(m, ten_J)
    forest = forest_of(m)
    if forest is None:
        J: RowMatrix = jnp.concatenate([const(np.eye(m.nv), ten_J), ten_J])[ids]
    else:
        J = dof_rows(forest, ids[:, None], jnp.ones((ids.size, 1), ten_J.dtype))
    solref, solimp, scale = (
        joined(of_dofs, of_tendons)[ids]
        for of_dofs, of_tendons in (
            (m.dof_solref, m.tendon_solref_fri),
            (m.dof_solimp, m.tendon_solimp_fri),
            (m.dof_invweight0, m.tendon_invweight0),
        )
    )
    zero, on = jnp.zeros(ids.size, ten_J.dtype), jnp.ones(ids.size, bool)
    return Rows(on, True, J, zero, np.zeros(ids.size), zero, zero, solref, solimp, scale)


def _limits(m: Any, layout: RowLayout, qpos: jax.Array, ten_length: jax.Array, ten_J: jax.Array) -> Rows:
    """Limits: the distance to each bound, and the Jacobian with the sign of that side."""
    limited, sign = layout.limit_id, layout.limit_sign
    side = np.where(sign > 0, 0, 1)
    bound = const(joined(m.jnt_range, m.tendon_range)[limited, side], qpos)
    length, slope = _limited_lengths(m, layout, qpos, ten_length, ten_J)
    pos, J = (length - bound) * const(sign, qpos), scaled(slope, const(sign, qpos))
    margin = np.concatenate([m.jnt_margin, m.tendon_margin])[limited]
    pos, J = _ball_limits(m, layout, qpos, pos, J, margin)
    joint_invweight = m.dof_invweight0[np.asarray(m.jnt_dofadr)]
    of_joints = (m.jnt_solref, m.jnt_solimp, joint_invweight)
    of_tendons = (m.tendon_solref_lim, m.tendon_solimp_lim, m.tendon_invweight0)
    solref, solimp, scale = (joined(*pair)[limited] for pair in zip(of_joints, of_tendons, strict=True))
    on = jnp.ones(pos.shape, bool)
    return Rows(on, False, J, pos, margin, pos - const(margin, pos), jnp.zeros_like(pos), solref, solimp, scale)


def _limited_lengths(
    m: Any, layout: RowLayout, qpos: jax.Array, ten_length: jax.Array, ten_J: jax.Array
) -> tuple[jax.Array, RowMatrix]:
    """The length (n,) on which each limit row acts, and its derivative by the velocities."""
    forest = forest_of(m)
    if forest is not None:
        return limit_rows(m, forest, layout, qpos)
    length, slope = lengths(m, qpos, ten_length, ten_J)
    return length[layout.limit_id], slope[layout.limit_id]


def _no_rows(m: Any, like: jax.Array) -> Rows:
    none, forest = empty(m.nv, like), forest_of(m)
    return none if forest is None else none._replace(J=dof_rows(forest, np.zeros((0, 1), int), like[:0].reshape(0, 1)))


def _ball_limits(
    m: Any, layout: RowLayout, qpos: jax.Array, pos: jax.Array, J: RowMatrix, margin: np.ndarray
) -> tuple[jax.Array, RowMatrix]:
    """Distances (n,) and Jacobian (n, nv) with the entries of ball joints filled in.

    A ball joint has one bound, on its angle about any axis, so its second row is never active.
    """
    row = np.flatnonzero(np.append(m.jnt_type, np.full(m.ntendon, tree.HINGE))[layout.limit_id] == tree.BALL)[::2]
    if not row.size:
        return pos, J
    joint = layout.limit_id[row]
    quats = np.asarray(m.jnt_qposadr)[joint][:, None] + np.arange(4)
    turned = quaternion.log(quaternion.renormalize(qpos[quats]))
    x_axis = jnp.broadcast_to(const(np.array([1.0, 0.0, 0.0]), qpos), turned.shape)
    axis, angle = normalize(turned, x_axis)
    pos = pos.at[row].set(const(m.jnt_range[joint].max(axis=1), qpos) - angle)
    pos = pos.at[row + 1].set(const(margin[row + 1] + 1.0, qpos))
    dof = np.asarray(m.jnt_dofadr)[joint]
    if isinstance(J, TreeRows):
        return pos, with_axes(J, row, dof, -axis)
    return pos, J.at[row[:, None], dof[:, None] + np.arange(3)].set(-axis)


def _contacts(
    m: Any,
    layout: RowLayout,
    subtree_com: jax.Array,
    cdof: jax.Array,
    dist: jax.Array,
    pos: jax.Array,
    frame: jax.Array,
    listed: jax.Array,
) -> Rows:
    """Rows of the contact slots. The tangents of a cone have position zero and the impedance of the normal."""
    if not m.nslot:
        return _no_rows(m, cdof)
    forest, acting = forest_of(m), (layout, subtree_com, cdof, pos, frame)
    J = _contact_jacobian(m, *acting) if forest is None else contact_rows(m, forest, *acting)
    cand = np.asarray(m.slot_cand)[layout.contact_slot]
    kind, sub = layout.type[layout.first_contact :], layout.sub[layout.first_contact :]
    tangent = (kind == ELLIPTIC) & (sub > 0)
    margin = np.asarray(m.cand_margin, np.float64)[cand]
    own = per_row(layout, dist)
    distance = own - const(margin, own)
    position = own * const(~tangent, own) if tangent.any() else own
    custom = np.asarray(m.cand_solreffriction)[cand]
    given = custom.any(axis=1) & ((custom[:, 0] > 0) == (custom[:, 1] > 0))
    solref = np.where((tangent & given)[:, None], custom, np.asarray(m.cand_solref)[cand])
    solimp, (scale, share) = np.asarray(m.cand_solimp)[cand], _contact_scale(m, layout, cand, own.dtype)
    zero = jnp.zeros_like(own)
    on = per_row(layout, listed)
    return Rows(on, False, J, position, np.where(tangent, 0.0, margin), distance, zero, solref, solimp, scale, share)


def _contact_scale(m: Any, layout: RowLayout, cand: np.ndarray, dtype: np.dtype) -> tuple[Any, Any]:
    """Regularisation of each contact row (nrow,) per unit (1 - d) / d, and its ratio to that of the normal.

    `cand` (nrow,) are the candidate pairs of the rows. The lower bound on the regularisation applies to the normal's.
    Let A be the inverse inertia along the normal, from the bodies' at qpos0, and f1 the first friction coefficient. All
    edges of a pyramid share that of the cone with the same friction: 2 mu^2 A (1 + f1^2) with mu = f1 / sqrt(impratio),
    where 2 mu^2 has a least value in float32.
    Tangent k of a cone has A / impratio f1^2 / fk^2.
    """
    kind, sub = layout.type[layout.first_contact :], layout.sub[layout.first_contact :]
    xp, invweight, friction = tables(translation_weights(m, dtype), m.cand_friction.reshape(-1, 5)[cand])
    normal = invweight[layout.contact_body].sum(axis=1)
    first2 = friction[:, 0] ** 2
    own2 = friction[np.arange(cand.size), np.maximum(sub - 1, 0) % 5] ** 2
    impratio = float(m.opt_impratio)
    least = LEAST_SHARE if np.dtype(dtype) == np.float32 else 0.0
    kinds = [kind == PYRAMIDAL, (kind == ELLIPTIC) & (sub > 0)]
    shares = [xp.maximum(2.0 * first2 / impratio, least), first2 / own2 / impratio]
    share = xp.select(kinds, shares, xp.ones_like(normal))
    return normal * xp.where(kinds[0], 1.0 + first2, 1.0) * share, share


def _contact_jacobian(
    m: Any, layout: RowLayout, subtree_com: jax.Array, cdof: jax.Array, pos: jax.Array, frame: jax.Array
) -> jax.Array:
    """Jacobian (nrow, nv) of the contact rows: the generalised force of a unit force along each row's direction.

    The force acts on the second body, and its reaction on the first. A dof that moves both bodies has no generalised
    force, so bodies of one tree, and a first body that cannot move, need one product only.
    """
    moves = tree.body_dofs(m)
    body1, body2 = layout.contact_body.T
    root1, root2 = (np.asarray(m.body_rootid)[b] for b in (body1, body2))
    direction, torque = row_directions(layout, frame)
    at = per_row(layout, pos)

    def felt(root: np.ndarray, sign: np.ndarray) -> jax.Array:
        wrench = wrench_about(subtree_com[root], at, direction, torque)
        return matmul(wrench, cdof.T) * const(sign, cdof)

    if ((root1 == root2) | ~moves[body1].any(axis=1)).all():
        return felt(root2, moves[body2].astype(np.int64) - moves[body1])
    return felt(root2, moves[body2]) - felt(root1, moves[body1])
