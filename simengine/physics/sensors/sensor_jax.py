"""Functions shared by the sensors in JAX: their frames, the motion of these, and how readings become sensordata."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math import quaternion_jax as quaternion
from simengine.physics.math.vector_jax import const, cross

REAL, POSITIVE = 0, 1
"""The values of MuJoCo's sensor_datatype to which a cutoff applies."""

Reading = Callable[[np.ndarray], jax.Array]
"""Readings (k, dim) of sensors of one type, given their numbers (k,)."""


def frames(m: Any, ids: np.ndarray, side: int, xpos: jax.Array, xquat: jax.Array) -> tuple[jax.Array, jax.Array]:
    """World positions (k, 3) [m] and orientations (k, 4) of sensors' frames; those of the world where there is none.

    Args: ids (k,); side: 0 for the frames measured, 1 for the references; xpos (nbody, 3), xquat (nbody, 4).
    """
    body = np.maximum(m.sensor_bodyid[ids, side], 0)
    turned = quaternion.rotate(xquat[body], const(m.sensor_pos[ids, side], xpos))
    return xpos[body] + turned, quaternion.mul(xquat[body], const(m.sensor_quat[ids, side], xquat))


def into_frame(quat: jax.Array, v: jax.Array) -> jax.Array:
    """Vectors (k, 3), rotated from world axes to those of frames with orientation quat (k, 4)."""
    return quaternion.rotate(conjugate(quat), v)


def conjugate(quat: jax.Array) -> jax.Array:
    """Inverse of unit quaternions (k, 4)."""
    return jnp.concatenate([quat[..., :1], -quat[..., 1:]], axis=-1)


def motion_at(
    m: Any, body: np.ndarray, motion: jax.Array, subtree_com: jax.Array, point: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Rotational and translational part (k, 3) of bodies' com-based motion vectors at points (k, 3).

    Args: body (k,) numbers, motion (nbody, 6), subtree_com (nbody, 3).
    """
    own = motion[body]
    arm = point - subtree_com[np.asarray(m.body_rootid)[body]]
    return own[:, :3], own[:, 3:] + cross(own[:, :3], arm)


def put_sensors(m: Any, sensordata: jax.Array, readings: dict[str, Reading]) -> jax.Array:
    """sensordata (nsensordata,) with the readings of the sensors of the named types, clamped to their cutoffs."""
    values, places = [], []
    for name, read in readings.items():
        ids = np.flatnonzero(m.sensor_names == name)
        if ids.size:
            value = read(ids)
            values.append(value.ravel())
            places.append((m.sensor_adr[ids][:, None] + np.arange(value.shape[1])).ravel())
    if not values:
        return sensordata
    place = np.concatenate(places)
    low, high = (bound[place] for bound in _bounds(m))
    value = jnp.concatenate(values)
    return sensordata.at[place].set(jnp.clip(value, const(low, value), const(high, value)))


def _bounds(m: Any) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of every entry of sensordata; the cutoff applies to real and positive values."""
    kind = np.repeat(m.sensor_datatype, m.sensor_dim)
    cutoff = np.repeat(m.sensor_cutoff, m.sensor_dim)
    high = np.where((cutoff > 0) & np.isin(kind, (REAL, POSITIVE)), cutoff, np.inf)
    return np.where(kind == REAL, -high, -np.inf), high
