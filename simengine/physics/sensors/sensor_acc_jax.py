"""Sensors of accelerations and forces in JAX, for one world; sensordata as after mj_sensorAcc."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.actuation.actuators_jax import TRN_TENDON
from simengine.physics.constraints.row_layout_jax import LIMIT_JOINT, LIMIT_TENDON, per_row, row_layout
from simengine.physics.math import quaternion_jax as quaternion
from simengine.physics.math.vector_jax import const, cross, matmul
from simengine.physics.sensors import ray_jax as ray
from simengine.physics.sensors.sensor_contact_jax import gather_contacts, put_contacts
from simengine.physics.sensors.sensor_jax import Reading, frames, into_frame, motion_at, put_sensors


def sensor_acc(
    m: Any,
    xpos: jax.Array,
    xquat: jax.Array,
    subtree_com: jax.Array,
    cvel: jax.Array,
    cacc: jax.Array,
    cfrc_int: jax.Array,
    actuator_force: jax.Array,
    qfrc_actuator: jax.Array,
    contact_dist: jax.Array,
    contact_pos: jax.Array,
    contact_frame: jax.Array,
    contact_active: jax.Array,
    efc_active: jax.Array,
    efc_force: jax.Array,
    sensordata: jax.Array,
) -> tuple[jax.Array]:
    """sensordata (nsensordata,) with the sensors of accelerations and forces filled in.

    Args: xpos (nbody, 3), xquat (nbody, 4), subtree_com (nbody, 3), cvel (nbody, 6), cacc (nbody, 6), cfrc_int
        (nbody, 6), actuator_force (nu,), qfrc_actuator (nv,), contact_dist (nslot,), contact_pos (nslot, 3),
        contact_frame (nslot, 9), contact_active (nslot,) bool, efc_active (nefc_max,) bool, efc_force (nefc_max,),
        sensordata (nsensordata,).
    """
    if not m.nsensor:
        return (sensordata,)

    # (1) acceleration of a frame: in its own axes for an accelerometer, in world axes otherwise
    def linear(ids: np.ndarray) -> jax.Array:
        pos, body = frames(m, ids, 0, xpos, xquat)[0], m.sensor_bodyid[ids, 0]
        turning, moving = motion_at(m, body, cvel, subtree_com, pos)
        # the spatial acceleration is that at a fixed point in space; w x v turns it into that of the body's point
        return motion_at(m, body, cacc, subtree_com, pos)[1] + cross(turning, moving)

    def proper(ids: np.ndarray) -> jax.Array:
        return into_frame(frames(m, ids, 0, xpos, xquat)[1], linear(ids))

    # (2) force or torque of the parent on the frame's body, at the frame's origin and in its axes
    def wrench(is_force: bool) -> Reading:
        def read(ids: np.ndarray) -> jax.Array:
            pos, quat = frames(m, ids, 0, xpos, xquat)
            body = m.sensor_bodyid[ids, 0]
            own = cfrc_int[body]
            arm = subtree_com[np.asarray(m.body_rootid)[body]] - pos
            return into_frame(quat, own[:, 3:] if is_force else own[:, :3] + cross(arm, own[:, 3:]))

        return read

    # (3) actuators
    def on_tendon(ids: np.ndarray) -> jax.Array:
        tendon = np.where(m.actuator_trntype == TRN_TENDON, m.actuator_trnid[:, 0], -1)
        acts = tendon[None, :] == m.sensor_objid[ids][:, None]
        return matmul(const(acts, actuator_force), actuator_force)[:, None]

    def touched(ids: np.ndarray) -> jax.Array:
        pos, quat = frames(m, ids, 0, xpos, xquat)
        normal = normal_force(m, contact_active, efc_active, efc_force)
        return touch(m, ids, pos, quat, contact_pos, contact_frame, normal)

    def limit(row_type: int) -> Reading:
        return lambda ids: limit_force(m, row_type, ids, efc_active, efc_force)

    readings = {
        "ACCELEROMETER": proper,
        "FRAMELINACC": linear,
        "FRAMEANGACC": lambda ids: cacc[m.sensor_bodyid[ids, 0], :3],
        "FORCE": wrench(True),
        "TORQUE": wrench(False),
        "ACTUATORFRC": lambda ids: actuator_force[m.sensor_objid[ids]][:, None],
        "JOINTACTFRC": lambda ids: qfrc_actuator[np.asarray(m.jnt_dofadr)[m.sensor_objid[ids]]][:, None],
        "TENDONACTFRC": on_tendon,
        "TOUCH": touched,
        "JOINTLIMITFRC": limit(LIMIT_JOINT),
        "TENDONLIMITFRC": limit(LIMIT_TENDON),
    }
    sensordata = put_sensors(m, sensordata, readings)
    # (6) contacts
    if m.nslot and (m.sensor_names == "CONTACT").any():
        found = (contact_dist, contact_pos, contact_frame, contact_active, efc_active, efc_force)
        sensordata = put_contacts(m, sensordata, xpos, xquat, gather_contacts(m, subtree_com, cvel, *found))
    return (sensordata,)


# (4) sum of the normal forces of those contacts of the frame's body whose normal, as a ray, hits the site
def touch(
    m: Any,
    ids: np.ndarray,
    pos: jax.Array,
    quat: jax.Array,
    contact_pos: jax.Array,
    contact_frame: jax.Array,
    normal: jax.Array,
) -> jax.Array:
    """Readings (k, 1) [N] of touch sensors.

    Args: ids (k,), pos (k, 3) and quat (k, 4) of their sites, contact_pos (nslot, 3), contact_frame (nslot, 9),
        normal (nslot,) as `normal_force` returns it.
    """
    cand = m.slot_cand
    first, second = (m.geom_bodyid[geoms[cand]] == m.sensor_bodyid[ids, :1] for geoms in (m.cand_geom1, m.cand_geom2))
    direction = contact_frame[None, :, :3] * const(np.where(second, -1.0, 1.0), quat)[:, :, None]
    rays = ray.into_geom(pos[:, None], quaternion.to_mat(quat)[:, None], contact_pos[None], direction)
    hits = [
        ray.RAYS[int(m.sensor_site[i])](rays[0][k], rays[1][k], const(m.sensor_size[i], quat)[None])
        for k, i in enumerate(ids)
    ]
    felt = (jnp.stack(hits) >= 0) & (normal > 0)[None, :] & jnp.asarray(first | second)
    return jnp.sum(jnp.where(felt, normal[None, :], 0.0), axis=1, keepdims=True)


# (5) force of the first row of a limit
def limit_force(m: Any, row_type: int, ids: np.ndarray, efc_active: jax.Array, efc_force: jax.Array) -> jax.Array:
    """Readings (k, 1) of sensors of limits, given the type of their rows."""
    layout = row_layout(m)
    rows = [np.flatnonzero((layout.type == row_type) & (layout.id == i))[:2] for i in m.sensor_objid[ids]]
    lower, upper = np.reshape(rows, (-1, 2)).T
    second = jnp.where(efc_active[upper], efc_force[upper], 0.0)
    return jnp.where(efc_active[lower], efc_force[lower], second)[:, None]


def normal_force(m: Any, contact_active: jax.Array, efc_active: jax.Array, efc_force: jax.Array) -> jax.Array:
    """Force (nslot,) [N] along the normal of every contact slot, zero for inactive ones."""
    layout = row_layout(m)
    along = jnp.where(efc_active, efc_force, 0.0)[layout.first_contact :] * const(layout.contact_lean[:, 0], efc_force)
    along = jnp.where(per_row(layout, contact_active), along, 0.0)
    return jnp.zeros(m.nslot, efc_force.dtype).at[layout.contact_slot].add(along)
