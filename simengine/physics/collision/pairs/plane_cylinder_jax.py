"""Plane against cylinder in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from simengine.physics.collision.contact_jax import make_frame, without_spin, z_axis
from simengine.physics.math.vector_jax import cross, dot, normalize


def plane_cylinder(
    pos1: jax.Array, mat1: jax.Array, size1: jax.Array, pos2: jax.Array, mat2: jax.Array, size2: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n planes and n cylinders: at the lowest point of the lower rim, at the point of the upper rim above
    it, and at two more points of the lower rim, which form an equilateral triangle with the first.

    Args: positions (n, 3) [m], rotation matrices (n, 9), sizes (n, 3) radius and half length [m]; geom 1 the plane.
    Returns: dist (n, 4) [m], pos (n, 4, 3) [m], frame (n, 4, 9).
    """
    # (1) the half-axis that points to the plane, and the radius that descends most steeply; any radius if it is upright
    normal, axis, radius = z_axis(mat1), z_axis(mat2), size2[:, :1]
    slope = dot(normal, axis)
    down = axis * slope[:, None] - normal
    # if the axis is almost upright, this vector is so short that rounding could turn it along the axis
    down = down - axis * dot(down, axis)[:, None]
    down, sine = normalize(down, mat2[:, 0::3], 8.0 * float(jnp.finfo(normal.dtype).eps))
    down = without_spin(down, sine, axis) * radius
    axis = axis * jnp.where(slope > 0, -size2[:, 1], size2[:, 1])[:, None]

    # (2) from the centre to the lowest point of the lower rim, and to the point above it
    aside, _ = normalize(cross(down, axis), mat2[:, 0::3])
    aside = aside * radius * (0.75**0.5)

    # (3) the other corners of the triangle, a third of a turn to either side
    points = jnp.stack([axis + down, down - axis, axis - 0.5 * down + aside, axis - 0.5 * down - aside], axis=1)
    dist = dot(pos2 - pos1, normal)[:, None] + dot(points, normal[:, None])
    pos = pos2[:, None] + points - normal[:, None] * (0.5 * dist)[..., None]
    return dist, pos, jnp.broadcast_to(make_frame(normal)[:, None], (*dist.shape, 9))
