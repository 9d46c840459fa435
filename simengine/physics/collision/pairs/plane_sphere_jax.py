"""Plane against sphere in JAX."""

from __future__ import annotations

import jax

from simengine.physics.collision.contact_jax import make_frame, z_axis
from simengine.physics.math.vector_jax import dot


def plane_sphere(
    pos1: jax.Array, mat1: jax.Array, size1: jax.Array, pos2: jax.Array, mat2: jax.Array, size2: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n planes and n spheres, one slot each.

    Args: positions (n, 3) [m], rotation matrices (n, 9), sizes (n, 3) [m]; geom 1 the plane.
    Returns: dist (n, 1) [m], pos (n, 1, 3) [m], frame (n, 1, 9).
    """
    # (1) distance of the sphere along the plane's normal
    normal = z_axis(mat1)
    radius = size2[:, 0]
    dist = dot(pos2 - pos1, normal) - radius

    # (2) midway between the surfaces
    pos = pos2 - normal * (radius + 0.5 * dist)[:, None]
    return dist[:, None], pos[:, None], make_frame(normal)[:, None]
