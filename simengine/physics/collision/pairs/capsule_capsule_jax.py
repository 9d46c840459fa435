"""Capsule against capsule in JAX.

Points of the two segments are p1 + x1 a1 and p2 + x2 a2 with half-axes a1, a2 and x in [-1, 1]. Their squared distance
is smallest where

    [ m11 m12 ] [x1]   [u]      m11 = a1.a1   m12 = -a1.a2   m22 = a2.a2
    [ m12 m22 ] [x2] = [v]      u = a1.(p2 - p1)   v = a2.(p1 - p2)

Axes within 1e-4 rad of each other count as parallel. The contacts are then at both ends of the part of the first
segment that lies beside the second; if there is no such part, both are the same.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from simengine.physics.collision.contact_jax import NO_CONTACT, make_frame, spheres, z_axis
from simengine.physics.math.vector_jax import cross, dot

PARALLEL = 1e-8
"""Squared sine of the angle below which two axes are parallel."""
NARROW = 0.0625
"""That below which the determinant has lost digits, so that the nearest points of the axes take a second step."""


def capsule_capsule(
    pos1: jax.Array, mat1: jax.Array, size1: jax.Array, pos2: jax.Array, mat2: jax.Array, size2: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n pairs of capsules: slot 0 in general, both slots where the capsules are parallel.

    Args: positions (n, 3) [m], rotation matrices (n, 9), sizes (n, 3) radius and half length [m].
    Returns: dist (n, 2) [m], NO_CONTACT in an unused slot; pos (n, 2, 3) [m]; frame (n, 2, 9).
    """
    # (1) half-axes and the normal equations of the nearest points
    axis1, axis2 = z_axis(mat1), z_axis(mat2)
    a1, a2 = axis1 * size1[:, 1:2], axis2 * size2[:, 1:2]
    m11, m12, m22 = dot(a1, a1), -dot(a1, a2), dot(a2, a2)
    u, v = dot(a1, pos2 - pos1), dot(a2, pos1 - pos2)
    across = cross(axis1, axis2)
    sine2 = dot(across, across)
    parallel = sine2 < PARALLEL
    # the determinant of the matrix itself, so that rounding errors cancel in the solution; bounded below to be positive
    det = jnp.maximum(m11 * m22 - m12 * m12, jnp.finfo(u.dtype).eps * m11 * m22)

    # (2) nearest points of the segments, or the ends of the overlap, and the points of segment 2 beside them
    x1, x2 = (m22 * u - m12 * v) / det, (m11 * v - m12 * u) / det
    between = pos2 - pos1 - x1[:, None] * a1 + x2[:, None] * a2
    left1, left2, narrow = dot(a1, between), -dot(a2, between), sine2 < NARROW
    x1 = jnp.where(narrow, x1 + (m22 * left1 - m12 * left2) / det, x1)
    x2 = jnp.where(narrow, x2 + (m11 * left2 - m12 * left1) / det, x2)
    x1, x2 = _on_segments(m11, m12, m22, u, v, x1, x2)
    reach = jnp.abs(m12)
    low, high = _unit_clip((u - reach) / m11), _unit_clip((u + reach) / m11)
    on1 = jnp.stack([jnp.where(parallel, low, x1), high], axis=1)
    beside = _unit_clip((v[:, None] - m12[:, None] * on1) / m22[:, None])
    on2 = jnp.where(parallel[:, None], beside, x2[:, None])

    # (3) sphere against sphere at each
    dist, pos, direction = spheres(
        pos1[:, None] + on1[..., None] * a1[:, None],
        size1[:, :1],
        axis1[:, None],
        pos2[:, None] + on2[..., None] * a2[:, None],
        size2[:, :1],
        axis2[:, None],
        (jnp.abs(x1) < 1.0)[:, None] & ~parallel[:, None],
        (jnp.abs(x2) < 1.0)[:, None] & ~parallel[:, None],
    )
    second = jnp.where(parallel, dist[:, 1], NO_CONTACT)
    return jnp.stack([dist[:, 0], second], axis=1), pos, make_frame(direction)


def _unit_clip(x: jax.Array) -> jax.Array:
    return jnp.clip(x, -1.0, 1.0)


def _on_segments(
    m11: jax.Array, m12: jax.Array, m22: jax.Array, u: jax.Array, v: jax.Array, x1: jax.Array, x2: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Parameters (n,), (n,) of the nearest points of two segments that are not parallel, from those of their lines."""
    # clamp x1 and find the best x2 for it, then clamp x2 and find the best x1 for it
    inside1 = (x1 >= -1.0) & (x1 <= 1.0)
    x1 = _unit_clip(x1)
    x2 = jnp.where(inside1, x2, (v - m12 * x1) / m22)
    inside2 = (x2 >= -1.0) & (x2 <= 1.0)
    x2 = _unit_clip(x2)
    return jnp.where(inside2, x1, _unit_clip((u - m12 * x2) / m11)), x2
