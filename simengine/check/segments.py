"""Readings of sensors of geoms' nearest points that rounding decides: where several points are as near as each other.

Sides that lie parallel to each other are such a case: how far they are apart is decided, but not between which points.
So are coaxial cylinders, one in the other: every direction across the axis leads out of it on an equally short way.
And so is a geom with itself, which a geom and its own body are: two opposite ways out are equally short.
"""

from __future__ import annotations

from copy import copy

import mujoco
import numpy as np

from simengine.check.itself import common_geoms

_MOTION = 1e-6  # [m or rad] by which every dof is moved, and every geom in its body
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
    change, rng = np.zeros(mj.nsensordata), np.random.default_rng(0)
    moved = mujoco.MjData(mj)  # one for all: its arena has megabytes
    for direction in rng.choice((-1.0, 1.0), size=(3, mj.nv)):
        near = _with_moved_geoms(mj, rng)
        mujoco.mj_resetData(near, moved)
        moved.qpos[:], moved.mocap_pos[:], moved.mocap_quat[:] = data.qpos, data.mocap_pos, data.mocap_quat
        mujoco.mj_integratePos(near, moved.qpos, direction, _MOTION)
        mujoco.mj_fwdPosition(near, moved)
        mujoco.mj_sensorPos(near, moved)
        change = np.maximum(change, np.abs(moved.sensordata - data.sensordata))
    with_itself = [bool(common_geoms(mj, i)) for i in range(mj.nsensor)]
    return np.flatnonzero(entries & ((change > _MOVES) | np.repeat(with_itself, mj.sensor_dim)))


def _with_moved_geoms(mj: mujoco.MjModel, rng: np.random.Generator) -> mujoco.MjModel:
    """A copy in which each geom is moved and turned a little in its body."""
    near = copy(mj)
    near.geom_sameframe[:] = 0  # geoms that lie where their bodies do
    near.geom_pos[:] += _MOTION * rng.choice((-1.0, 1.0), near.geom_pos.shape)
    near.geom_quat[:] += _MOTION * rng.choice((-1.0, 1.0), near.geom_quat.shape)
    near.geom_quat[:] /= np.linalg.norm(near.geom_quat, axis=1, keepdims=True)
    return near
