"""Sensors of accelerations and forces in JAX, for one world. As the acceleration part of MuJoCo's sensordata."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from simengine.math.actuators import TRN_TENDON
from simengine.math.vector import const, cross, matmul
from simengine.stages.sensor_ref import Reading, frames, into_frame, motion_at, put_sensors


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
    sensordata: jax.Array,
) -> tuple[jax.Array]:
    """sensordata (nsensordata,) with the sensors of accelerations and forces filled in.

    Args: xpos (nbody, 3), xquat (nbody, 4), subtree_com (nbody, 3), cvel (nbody, 6), cacc (nbody, 6), cfrc_int
        (nbody, 6), actuator_force (nu,), qfrc_actuator (nv,), sensordata (nsensordata,).
    """
    if not m.nsensor:
        return (sensordata,)

    # (1) acceleration of a frame, its own orientation for an accelerometer and the world's for others
    def linear(ids: np.ndarray) -> jax.Array:
        pos, body = frames(m, ids, 0, xpos, xquat)[0], m.sensor_bodyid[ids, 0]
        turning, moving = motion_at(m, body, cvel, subtree_com, pos)
        # spatial acceleration is that of the point passing by, which turns with the body
        return motion_at(m, body, cacc, subtree_com, pos)[1] + cross(turning, moving)

    def proper(ids: np.ndarray) -> jax.Array:
        return into_frame(frames(m, ids, 0, xpos, xquat)[1], linear(ids))

    # (2) force or torque that the parent exerts on the frame's body, at the frame's origin and in its orientation
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

    readings = {
        "ACCELEROMETER": proper,
        "FRAMELINACC": linear,
        "FRAMEANGACC": lambda ids: cacc[m.sensor_bodyid[ids, 0], :3],
        "FORCE": wrench(True),
        "TORQUE": wrench(False),
        "ACTUATORFRC": lambda ids: actuator_force[m.sensor_objid[ids]][:, None],
        "JOINTACTFRC": lambda ids: qfrc_actuator[np.asarray(m.jnt_dofadr)[m.sensor_objid[ids]]][:, None],
        "TENDONACTFRC": on_tendon,
    }
    return (put_sensors(m, sensordata, readings),)
