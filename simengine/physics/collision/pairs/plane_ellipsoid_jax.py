"""Plane against ellipsoid in JAX."""

from __future__ import annotations

import jax

from simengine.physics.collision.contact_jax import make_frame, z_axis
from simengine.physics.math.vector_jax import dot, matmul, norm


def plane_ellipsoid(
    pos1: jax.Array, mat1: jax.Array, size1: jax.Array, pos2: jax.Array, mat2: jax.Array, size2: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n planes and n ellipsoids, one slot each.

    Args: positions (n, 3) [m], rotation matrices (n, 9), sizes (n, 3) radii [m]; geom 1 the plane.
    Returns: dist (n, 1) [m], pos (n, 1, 3) [m], frame (n, 1, 9).
    """
    # (1) in the ellipsoid's frame the normal scaled by the radii points away from the lowest point of the unit sphere
    normal, mat = z_axis(mat1), mat2.reshape(-1, 3, 3)
    scaled = size2 * matmul(normal[:, None], mat)[:, 0]
    reach = norm(scaled)
    lowest = pos2 - matmul(mat, (size2 * scaled / reach[:, None])[..., None])[..., 0]

    # (2) midway between that point and the plane
    dist = dot(pos2 - pos1, normal) - reach
    pos = lowest - normal * (0.5 * dist)[:, None]
    return dist[:, None], pos[:, None], make_frame(normal)[:, None]
