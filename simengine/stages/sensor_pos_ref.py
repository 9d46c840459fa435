"""Sensors of the configuration in JAX, for one world. As the position part of MuJoCo's sensordata."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.math import quaternion
from simengine.math.lengths import length_rows
from simengine.math.vector import const, dot, matmul
from simengine.stages.sensor_ref import Reading, conjugate, frames, into_frame, put_sensors


def sensor_pos(
    m: Any,
    qpos: jax.Array,
    time: jax.Array,
    xpos: jax.Array,
    xquat: jax.Array,
    xipos: jax.Array,
    subtree_com: jax.Array,
    ten_length: jax.Array,
    actuator_length: jax.Array,
) -> tuple[jax.Array]:
    """sensordata (nsensordata,) with the sensors of the configuration, zero elsewhere.

    Args: qpos (nq,) [m, rad], time () [s], xpos (nbody, 3) [m], xquat (nbody, 4), xipos (nbody, 3) [m],
        subtree_com (nbody, 3) [m], ten_length (ntendon,), actuator_length (nu,).
    """
    if not m.nsensor:
        return (jnp.zeros(0, qpos.dtype),)

    # (1) where the measured frame is, seen from the reference
    def position(ids: np.ndarray) -> jax.Array:
        (own, _), (origin, quat) = (frames(m, ids, side, xpos, xquat) for side in (0, 1))
        return into_frame(quat, own - origin)

    def orientation(ids: np.ndarray) -> jax.Array:
        return quaternion.mul(conjugate(frames(m, ids, 1, xpos, xquat)[1]), frames(m, ids, 0, xpos, xquat)[1])

    def axis(k: int) -> Reading:
        def read(ids: np.ndarray) -> jax.Array:
            turn = orientation(ids)
            return quaternion.rotate(turn, const(np.tile(np.eye(3)[k], (len(ids), 1)), turn))

        return read

    def magnetic(ids: np.ndarray) -> jax.Array:
        quat = frames(m, ids, 0, xpos, xquat)[1]
        return into_frame(quat, const(np.tile(m.opt_magnetic, (len(ids), 1)), quat))

    # (2) lengths and limits
    def limit(kind: str) -> Reading:
        return lambda ids: jnp.minimum(nearest_limit(m, kind, ids, qpos, ten_length)[0], 0.0)[:, None]

    readings = {
        "JOINTPOS": lambda ids: qpos[m.jnt_qposadr[m.sensor_objid[ids]]][:, None],
        "TENDONPOS": lambda ids: ten_length[m.sensor_objid[ids]][:, None],
        "ACTUATORPOS": lambda ids: actuator_length[m.sensor_objid[ids]][:, None],
        "JOINTLIMITPOS": limit("joint"),
        "TENDONLIMITPOS": limit("tendon"),
        "MAGNETOMETER": magnetic,
        "FRAMEPOS": position,
        "FRAMEQUAT": orientation,
        **{f"FRAME{name}AXIS": axis(k) for k, name in enumerate("XYZ")},
        "SUBTREECOM": lambda ids: subtree_com[m.sensor_objid[ids]],
        "CLOCK": lambda ids: jnp.broadcast_to(time, (len(ids), 1)),
        "E_POTENTIAL": lambda ids: jnp.broadcast_to(potential_energy(m, qpos, xipos, ten_length), (len(ids), 1)),
    }
    return (put_sensors(m, jnp.zeros(m.nsensordata, qpos.dtype), readings),)


def nearest_limit(
    m: Any, kind: str, ids: np.ndarray, qpos: jax.Array, ten_length: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Distance less margin (k,) of the limit that sensors show, and whether (k,) it is the lower one.

    The lower one has the word where both are within the margin.
    """
    measured = m.sensor_objid[ids]
    if kind == "joint":
        bounds, margin = m.jnt_range[measured], m.jnt_margin[measured]
    else:
        bounds, margin = m.tendon_range[measured], m.tendon_margin[measured]
    length = qpos[m.jnt_qposadr[measured]] if kind == "joint" else ten_length[measured]
    low, high = (const(bounds[:, side] + (1, -1)[side] * margin, qpos) for side in (0, 1))
    lower = length < low
    return jnp.where(lower, length - low, high - length), lower


def potential_energy(m: Any, qpos: jax.Array, xipos: jax.Array, ten_length: jax.Array) -> jax.Array:
    """Energy () of the weights and of the springs of joints and tendons [J]."""
    # (3) energy of the weights and of the springs of joints and tendons
    energy = -dot(const(m.body_mass, qpos), matmul(xipos, const(m.opt_gravity, qpos)))
    rows = length_rows(m)[0]
    stretch = matmul(const(rows[: m.njnt], qpos), qpos) - const(rows[: m.njnt] @ m.qpos_spring, qpos)
    energy = energy + 0.5 * dot(const(m.jnt_stiffness, qpos), stretch * stretch)
    if m.ntendon:
        low, high = const(m.tendon_lengthspring, qpos).T
        stretch = ten_length - jnp.clip(ten_length, low, high)
        energy = energy + 0.5 * dot(const(m.tendon_stiffness, qpos), stretch * stretch)
    return energy
