"""Sphere against box in JAX."""

from __future__ import annotations

import jax

from simengine.physics.collision.pairs.box_jax import sphere_against_box


def sphere_box(
    pos1: jax.Array, mat1: jax.Array, size1: jax.Array, pos2: jax.Array, mat2: jax.Array, size2: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n spheres and n boxes, one slot each.

    Args: positions (n, 3) [m], rotation matrices (n, 9), sizes (n, 3) [m]; geom 1 the sphere.
    Returns: dist (n, 1) [m], pos (n, 1, 3) [m], frame (n, 1, 9).
    """
    # (1) the nearest point, or the nearest face if the box contains the centre
    dist, pos, frame = sphere_against_box(pos1, size1[:, 0], pos2, mat2, size2)
    return dist[:, None], pos[:, None], frame[:, None]
