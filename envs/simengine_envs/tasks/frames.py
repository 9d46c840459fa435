"""Vectors in frames of bodies, by quaternions (w, x, y, z)."""

from __future__ import annotations

import jax.numpy as jnp

from simengine_envs.task import Array


def into_frame(quat: Array, vector: Array) -> Array:
    """Vectors of the world frame in the frame of bodies.

    Args:
        quat: orientations of the bodies, (n, 4), unit.
        vector: (n, 3), or (3,) for the same in all worlds.

    Returns:
        (n, 3).
    """
    w, axis = quat[:, :1], -quat[:, 1:]
    vector = jnp.broadcast_to(vector, axis.shape)
    twice = 2 * _cross(axis, vector)
    return vector + w * twice + _cross(axis, twice)


def _cross(one: Array, other: Array) -> Array:
    """Cross products of vectors (n, 3), whose numbers stay beside those of their world."""
    (a, b, c), (x, y, z) = ([vectors[:, k] for k in range(3)] for vectors in (one, other))
    return jnp.stack([b * z - c * y, c * x - a * z, a * y - b * x], axis=1)


def up_in_frame(quat: Array) -> Array:
    """The world's upward direction in the frame of bodies, (n, 3), for orientations (n, 4)."""
    w, x, y, z = (quat[:, k] for k in range(4))
    return jnp.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=1)


def turned_quat(yaw: Array) -> Array:
    """Orientations (n, 4) that are turned by angles (n,) [rad] about the vertical axis."""
    zero = jnp.zeros_like(yaw)
    return jnp.stack([jnp.cos(yaw / 2), zero, zero, jnp.sin(yaw / 2)], axis=1)
