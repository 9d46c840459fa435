"""Contact sensors in JAX, for one world. Source: MuJoCo documentation, chapter "XML Reference", "sensor/contact"."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.constraints.row_layout_jax import per_row, row_layout
from simengine.physics.math import quaternion_jax as quaternion
from simengine.physics.math.vector_jax import MINVAL, const, cross, dot, matmul, safe_sqrt
from simengine.physics.sensors import ray_jax as ray
from simengine.physics.sensors.sensor_jax import frames, motion_at

NONE, MINDIST, MAXFORCE, NETFORCE = range(4)
"""How a sensor reduces the contacts it finds: the first ones, the nearest, the strongest, or the net force of all."""

_WIDTHS = (1, 3, 3, 1, 3, 3, 3, 3, 3)
"""Entries of the data of a contact: found, force, torque, dist, pos, normal, tangent, velocity, angular velocity."""


class Contacts(NamedTuple):
    """The contact slots: which exist (nslot,), dist (nslot,), pos (nslot, 3), frame (nslot, 9), force and torque on the
    second geom, and its velocity relative to the first, both in the contact frame (nslot, 6)."""

    active: jax.Array
    dist: jax.Array
    pos: jax.Array
    frame: jax.Array
    force: jax.Array
    slip: jax.Array


def gather_contacts(
    m: Any,
    subtree_com: jax.Array,
    cvel: jax.Array,
    contact_dist: jax.Array,
    contact_pos: jax.Array,
    contact_frame: jax.Array,
    contact_active: jax.Array,
    efc_active: jax.Array,
    efc_force: jax.Array,
) -> Contacts:
    """The contact slots as contact sensors need them; arguments are those of `sensor_acc`."""
    layout = row_layout(m)
    rows = jnp.where(efc_active, efc_force, 0.0)[layout.first_contact :]
    rows = jnp.where(per_row(layout, contact_active), rows, 0.0)[:, None] * const(layout.contact_lean, efc_force)
    force = jnp.zeros((m.nslot, 6), efc_force.dtype).at[layout.contact_slot].add(rows)
    bodies = [np.asarray(m.geom_bodyid)[geoms[m.slot_cand]] for geoms in (m.cand_geom1, m.cand_geom2)]
    (turn1, move1), (turn2, move2) = (motion_at(m, body, cvel, subtree_com, contact_pos) for body in bodies)
    axes = contact_frame.reshape(-1, 3, 3)
    slip = [matmul(axes, part[:, :, None])[:, :, 0] for part in (move2 - move1, turn2 - turn1)]
    return Contacts(contact_active, contact_dist, contact_pos, contact_frame, force, jnp.concatenate(slip, axis=1))


def put_contacts(m: Any, sensordata: jax.Array, xpos: jax.Array, xquat: jax.Array, contacts: Contacts) -> jax.Array:
    """sensordata (nsensordata,) with the readings of all contact sensors, which have no cutoff."""
    ids = np.flatnonzero(m.sensor_names == "CONTACT")
    places = [np.arange(m.sensor_adr[i], m.sensor_adr[i] + m.sensor_dim[i]) for i in ids]
    values = [_read(m, int(i), xpos, xquat, contacts) for i in ids]
    return sensordata.at[np.concatenate(places)].set(jnp.concatenate(values))


def _read(m: Any, i: int, xpos: jax.Array, xquat: jax.Array, contacts: Contacts) -> jax.Array:
    """Reading (dim,) of sensor i."""
    spec, reduce, places = (int(part) for part in m.sensor_prm[i])
    side = _matched(m, i, xpos, xquat, contacts)
    found = (side != 0).sum(dtype=jnp.int32)
    count = found.astype(contacts.pos.dtype)
    if reduce == NETFORCE:
        data = _net(contacts, side, count)[None]
        live = (found > 0)[None]
    else:
        size = dot(contacts.force[:, :3], contacts.force[:, :3])
        rank = {NONE: jnp.zeros_like(size), MINDIST: contacts.dist, MAXFORCE: -size}[reduce]
        order = jnp.argsort(jnp.where(side != 0, rank, jnp.inf), stable=True)
        order = jnp.concatenate([order, jnp.zeros(max(0, places - order.size), order.dtype)])[:places]
        live = jnp.arange(places, dtype=jnp.int32) < found
        data = _each(contacts, side, count)[order]
    kept = np.repeat([spec >> field & 1 for field in range(len(_WIDTHS))], _WIDTHS) > 0
    return jnp.where(live[:, None], data[:, kept], 0.0).ravel()


def _matched(m: Any, i: int, xpos: jax.Array, xquat: jax.Array, contacts: Contacts) -> jax.Array:
    """(nslot,) 1 where the contact matches sensor i, -1 where it matches with its geoms in reverse order, else 0."""
    geoms = [np.asarray(part)[m.slot_cand] for part in (m.cand_geom1, m.cand_geom2)]

    def meets(side: int, geom: np.ndarray) -> np.ndarray:
        by_geom, low, high = m.sensor_match[i, side]
        number = geom if by_geom else np.asarray(m.geom_bodyid)[geom]
        return np.asarray((low <= number) & (number <= high))

    straight, turned = meets(0, geoms[0]) & meets(1, geoms[1]), meets(0, geoms[1]) & meets(1, geoms[0])
    side = const(np.where(straight, 1.0, np.where(turned, -1.0, 0.0)), contacts.pos)
    exists = contacts.active
    if m.sensor_site[i] >= 0:
        pos, quat = frames(m, np.array([i]), 0, xpos, xquat)
        local = quaternion.rotate(quaternion.conjugate(quat), contacts.pos - pos)
        size = const(m.sensor_size[i], local)
        exists = exists & jax.vmap(lambda point: ray.inside(int(m.sensor_site[i]), point, size))(local)
    return jnp.where(exists, side, 0.0)


def _each(contacts: Contacts, side: jax.Array, found: jax.Array) -> jax.Array:
    """All data of each contact (nslot, 23).

    With the geoms in reverse order, the normal and the first tangent are reversed. The force is then that on the other
    geom, and only its component along the second tangent changes sign.
    """
    sign = side[:, None]
    flip = jnp.concatenate([jnp.ones_like(sign), jnp.ones_like(sign), sign] * 2, axis=1)
    parts = (
        *(jnp.broadcast_to(found, sign.shape), contacts.force * flip, contacts.dist[:, None], contacts.pos),
        *(contacts.frame[:, :6] * sign, contacts.slip * flip),
    )
    return jnp.concatenate(parts, axis=1)


def _net(contacts: Contacts, side: jax.Array, found: jax.Array) -> jax.Array:
    """The net force of all contacts in the world frame, its centre of application, and the torque about it (23,)."""
    own = jnp.where((side != 0)[:, None], contacts.force, 0.0)
    size = safe_sqrt(dot(own[:, :3], own[:, :3]))
    centre = matmul(size, contacts.pos) / jnp.maximum(size.sum(), MINVAL)
    across = jnp.swapaxes(contacts.frame.reshape(-1, 3, 3), 1, 2)
    force, torque = (matmul(across, part[:, :, None])[:, :, 0] * side[:, None] for part in (own[:, :3], own[:, 3:]))
    torque = torque + cross(contacts.pos - centre[None], force)
    axes = const(np.eye(3)[:2].ravel(), force)
    parts = (found[None], force.sum(axis=0), torque.sum(axis=0), jnp.zeros(1, force.dtype), centre, axes)
    return jnp.concatenate([*parts, jnp.zeros(6, force.dtype)])
