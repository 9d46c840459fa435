"""Which constraint each row slot holds: static tables of a model's fixed row slots, in MuJoCo's order.

The order is: equality constraints, friction losses (dofs, then tendons), limits (joints, then tendons; lower side, then
upper side), and contacts, slot by slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math.vector_jax import const, joined, tables

EQUALITY, FRICTION_DOF, FRICTION_TENDON, LIMIT_JOINT, LIMIT_TENDON = range(5)
FRICTIONLESS, PYRAMIDAL, ELLIPTIC = range(5, 8)
"""efc_type of MuJoCo (mjtConstraint)."""

CONE_ELLIPTIC = 1
"""opt_cone of MuJoCo."""


class RowLayout(NamedTuple):
    """Static row tables: NumPy arrays, but frictionloss and contact_lean may be JAX arrays of per-world parameters.

    Attributes:
        type (nefc_max,): efc_type.
        id (nefc_max,): efc_id: the equality, dof, joint, tendon or contact slot of the row.
        sub (nefc_max,): number of the row within its equality constraint or contact; side of a limit, 1 for the upper.
        frictionloss (nefc_max,): efc_frictionloss.
        friction_id (nfriction,): dof, or nv + tendon, of each friction row.
        limit_id, limit_sign (nlimit2,): joint, or njnt + tendon, of each limit row, and the sign of its Jacobian: +1
            for the lower side, -1 for the upper.
        contact_slot (nrow,): contact slot of each contact row.
        contact_lean (nrow, 6): the row's direction in the contact frame: along the normal and the tangents, then about
            them.
        contact_turns: whether any row has a direction about an axis.
        contact_body (nrow, 2): bodies of the row's contact.
    """

    type: np.ndarray
    id: np.ndarray
    sub: np.ndarray
    frictionloss: Any
    friction_id: np.ndarray
    limit_id: np.ndarray
    limit_sign: np.ndarray
    contact_slot: np.ndarray
    contact_lean: Any
    contact_turns: bool
    contact_body: np.ndarray

    @property
    def first_contact(self) -> int:
        """The first contact row."""
        return self.type.size - self.contact_slot.size

    def first_of_slot(self, nslot: int) -> np.ndarray:
        """First row of each contact slot, (nslot,)."""
        return self.first_contact + np.searchsorted(self.contact_slot, np.arange(nslot))


def row_layout(m: Any) -> RowLayout:
    """Static row tables of a model."""
    eq_rows = np.asarray(m.eq_rows)
    equality, equality_sub = _numbered(eq_rows)
    friction, limit = np.asarray(m.friction_id), np.repeat(np.asarray(m.limit_id), 2)
    slot_cand = np.asarray(m.slot_cand)
    slot, sub = _numbered(np.asarray(m.cand_rows)[slot_cand])
    cand = slot_cand[slot]
    dof, joint = friction < m.nv, limit < m.njnt
    cone = ELLIPTIC if m.opt_cone == CONE_ELLIPTIC else PYRAMIDAL
    kinds = (
        np.full(equality.size, EQUALITY),
        np.where(dof, FRICTION_DOF, FRICTION_TENDON),
        np.where(joint, LIMIT_JOINT, LIMIT_TENDON),
        np.where(np.asarray(m.cand_condim)[cand] == 1, FRICTIONLESS, cone),
    )
    ids = (equality, friction - np.where(dof, 0, m.nv), limit - np.where(joint, 0, m.njnt), slot)
    side = np.arange(limit.size) % 2
    subs = (equality_sub, np.zeros(friction.size, int), side, sub)
    losses = joined(m.dof_frictionloss, m.tendon_frictionloss)[friction]
    loss = joined(np.zeros(equality.size), losses, np.zeros(limit.size + slot.size))
    geoms = np.stack([np.asarray(m.cand_geom1)[cand], np.asarray(m.cand_geom2)[cand]], axis=1)
    unit = _directions(sub, kinds[-1])
    lean = _leaning(unit, m.cand_friction.reshape(-1, 5)[cand], sub, kinds[-1])
    kind, number, within = (np.concatenate(parts).astype(int) for parts in (kinds, ids, subs))
    sign = np.where(side, -1.0, 1.0)
    bodies = np.asarray(m.geom_bodyid)[geoms]
    turns = bool(unit[:, 3:].any())
    return RowLayout(kind, number, within, loss, friction, limit, sign, slot, lean, turns, bodies)


def _numbered(count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For items that have `count` rows each: item of each row, and the row's number within it."""
    item = np.repeat(np.arange(count.size), count)
    return item, np.arange(item.size) - np.repeat(np.cumsum(count) - count, count)


def _directions(sub: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """contact_lean for a friction of one: for cones each axis, for pyramids the normal plus and minus each axis."""
    lean = np.zeros((sub.size, 6))
    lean[:, 0] = (kind != ELLIPTIC) | (sub == 0)
    elliptic, pyramid = np.flatnonzero(kind == ELLIPTIC), np.flatnonzero(kind == PYRAMIDAL)
    lean[elliptic, sub[elliptic]] = 1.0
    axis = sub[pyramid] // 2
    lean[pyramid, 1 + axis] = np.where(sub[pyramid] % 2 == 0, 1.0, -1.0)
    return lean


def _leaning(unit: np.ndarray, friction: Any, sub: np.ndarray, kind: np.ndarray) -> Any:
    """contact_lean from that for a friction of one: a pyramid's axes are multiplied by their friction (nrow, 5)."""
    xp, unit, friction = tables(unit, friction)
    pyramid = kind == PYRAMIDAL
    factor = xp.where(pyramid, friction[np.arange(sub.size), np.where(pyramid, sub // 2, 0)], 1.0)
    return xp.concatenate([unit[:, :1], unit[:, 1:] * factor[:, None]], axis=1)


def per_row(layout: RowLayout, values: jax.Array) -> jax.Array:
    """Values (nslot, ...) of the contact slots repeated for each of their rows: (nrow, ...)."""
    nslot, nrow = values.shape[0], layout.contact_slot.size
    rows = np.bincount(layout.contact_slot, minlength=nslot)
    if nslot and (rows == rows[0]).all():
        # the same as the gather below, which XLA fuses badly on the CPU
        repeated = jnp.broadcast_to(values[:, None], (nslot, rows[0], *values.shape[1:]))
        return repeated.reshape(nrow, *values.shape[1:])
    return values[layout.contact_slot]


def row_directions(layout: RowLayout, contact_frame: jax.Array) -> tuple[jax.Array, jax.Array | None]:
    """World-frame force and torque (nrow, 3) of each contact row per unit of efc_force; None if no row has a torque."""
    frame = per_row(layout, contact_frame)

    def combined(lean: Any) -> jax.Array:
        weight = const(lean, frame)
        return weight[:, :1] * frame[:, :3] + weight[:, 1:2] * frame[:, 3:6] + weight[:, 2:] * frame[:, 6:]

    lean = layout.contact_lean
    return combined(lean[:, :3]), combined(lean[:, 3:]) if layout.contact_turns else None
