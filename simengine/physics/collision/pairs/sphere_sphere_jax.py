"""Sphere against sphere in JAX."""

from __future__ import annotations

import jax

from simengine.physics.collision.contact_jax import make_frame, spheres, z_axis


def sphere_sphere(
    pos1: jax.Array, mat1: jax.Array, size1: jax.Array, pos2: jax.Array, mat2: jax.Array, size2: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n pairs of spheres, one slot each.

    Args: positions (n, 3) [m], rotation matrices (n, 9), sizes (n, 3) [m].
    Returns: dist (n, 1) [m], pos (n, 1, 3) [m], frame (n, 1, 9).
    """
    # (1) along the line of centres, midway between the surfaces
    dist, pos, normal = spheres(pos1, size1[:, 0], z_axis(mat1), pos2, size2[:, 0], z_axis(mat2))
    return dist[:, None], pos[:, None], make_frame(normal)[:, None]
