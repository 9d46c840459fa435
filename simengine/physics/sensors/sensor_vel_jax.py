"""Sensors of velocities in JAX, for one world; sensordata as after mj_sensorVel."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math.tree_matrices_jax import Matrix
from simengine.physics.math.vector_jax import const, cross, dot, normalize
from simengine.physics.sensors.energy_jax import kinetic_energy
from simengine.physics.sensors.sensor_jax import Reading, frames, into_frame, motion_at, put_sensors
from simengine.physics.sensors.sensor_pos_jax import ball_rotation, balls, nearest_limit


def sensor_vel(
    m: Any,
    qpos: jax.Array,
    qvel: jax.Array,
    xpos: jax.Array,
    xquat: jax.Array,
    subtree_com: jax.Array,
    cvel: jax.Array,
    qM: Matrix,
    subtree_linvel: jax.Array,
    subtree_angmom: jax.Array,
    ten_length: jax.Array,
    ten_velocity: jax.Array,
    actuator_velocity: jax.Array,
    sensordata: jax.Array,
) -> tuple[jax.Array]:
    """sensordata (nsensordata,) with the sensors of velocities filled in.

    Args: qpos (nq,), qvel (nv,), xpos (nbody, 3), xquat (nbody, 4), subtree_com (nbody, 3), cvel (nbody, 6), qM
        (nv, nv), subtree_linvel (nbody, 3) [m/s], subtree_angmom (nbody, 3) [kg m^2/s], ten_length,
        ten_velocity (ntendon,), actuator_velocity (nu,), sensordata (nsensordata,).
    """
    if not m.nsensor:
        return (sensordata,)

    # (1) velocity of the measured frame: in its own axes, or relative to the reference, which may move and rotate
    def local(turning: bool) -> Reading:
        def read(ids: np.ndarray) -> jax.Array:
            pos, quat = frames(m, ids, 0, xpos, xquat)
            motion = motion_at(m, m.sensor_bodyid[ids, 0], cvel, subtree_com, pos)
            return into_frame(quat, motion[0 if turning else 1])

        return read

    def seen(turning: bool) -> Reading:
        def read(ids: np.ndarray) -> jax.Array:
            (pos, _), (origin, quat) = (frames(m, ids, side, xpos, xquat) for side in (0, 1))
            own = motion_at(m, m.sensor_bodyid[ids, 0], cvel, subtree_com, pos)
            # without a reference, the world body takes its place, whose velocity is zero
            of = motion_at(m, np.maximum(m.sensor_bodyid[ids, 1], 0), cvel, subtree_com, origin)
            relative = own[0] - of[0] if turning else own[1] - of[1] - cross(of[0], pos - origin)
            return into_frame(quat, relative)

        return read

    # (2) lengths and limits
    def angular(ids: np.ndarray) -> jax.Array:
        return qvel[m.jnt_dofadr[m.sensor_objid[ids]][:, None] + np.arange(3)]

    def limit(kind: str) -> Reading:
        def read(ids: np.ndarray) -> jax.Array:
            gap, lower = nearest_limit(m, kind, ids, qpos, ten_length)
            measured = m.sensor_objid[ids]
            speed = qvel[m.jnt_dofadr[measured]] if kind == "joint" else ten_velocity[measured]
            ball = balls(m, kind, ids)
            if ball.size:
                rotation, turning = ball_rotation(m, measured[ball], qpos), angular(ids[ball])
                axis = normalize(rotation, const(np.tile([1.0, 0.0, 0.0], (ball.size, 1)), rotation))[0]
                speed = speed.at[ball].set(dot(axis, turning))
            towards = jnp.where(lower, speed, -speed)
            return jnp.where(gap < 0, towards, jnp.zeros_like(towards))[:, None]

        return read

    readings = {
        "JOINTVEL": lambda ids: qvel[m.jnt_dofadr[m.sensor_objid[ids]]][:, None],
        "BALLANGVEL": angular,
        "TENDONVEL": lambda ids: ten_velocity[m.sensor_objid[ids]][:, None],
        "ACTUATORVEL": lambda ids: actuator_velocity[m.sensor_objid[ids]][:, None],
        "JOINTLIMITVEL": limit("joint"),
        "TENDONLIMITVEL": limit("tendon"),
        "GYRO": local(True),
        "VELOCIMETER": local(False),
        "FRAMELINVEL": seen(False),
        "FRAMEANGVEL": seen(True),
        "SUBTREELINVEL": lambda ids: subtree_linvel[m.sensor_objid[ids]],
        "SUBTREEANGMOM": lambda ids: subtree_angmom[m.sensor_objid[ids]],
        # (3) energy
        "E_KINETIC": lambda ids: jnp.broadcast_to(kinetic_energy(qvel, qM), (len(ids), 1)),
    }
    return (put_sensors(m, sensordata, readings),)
