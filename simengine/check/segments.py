"""Readings of sensors of geoms' nearest points that rounding decides: where several points are as near as each other.

Sides that lie parallel to each other are such a case: how far they are apart is decided, but not between which points.
"""

from __future__ import annotations

import mujoco
import numpy as np

_MOTION = 1e-6  # [m or rad] by which every dof is moved
_MOVES = 1e-3  # change of a normal, or of a point [m], by which it is not decided


def undecided_segments(mj: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Numbers in `sensordata` of the normals and points that a tiny motion changes by much.

    Args:
        mj: the model.
        data: evaluated up to the positions.
    """
    kinds = mujoco.mjtSensor.mjSENS_GEOMNORMAL, mujoco.mjtSensor.mjSENS_GEOMFROMTO
    entries = np.repeat(np.isin(mj.sensor_type, kinds), mj.sensor_dim)
    if not entries.any():
        return np.zeros(0, dtype=int)
    moved, change = mujoco.MjData(mj), np.zeros(mj.nsensordata)
    for direction in np.random.default_rng(0).choice((-1.0, 1.0), size=(3, mj.nv)):
        moved.qpos[:], moved.mocap_pos[:], moved.mocap_quat[:] = data.qpos, data.mocap_pos, data.mocap_quat
        mujoco.mj_integratePos(mj, moved.qpos, direction, _MOTION)
        mujoco.mj_fwdPosition(mj, moved)
        mujoco.mj_sensorPos(mj, moved)
        change = np.maximum(change, np.abs(moved.sensordata - data.sensordata))
    return np.flatnonzero(entries & (change > _MOVES))
