"""Sphere against capsule in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from simengine.physics.collision.contact_jax import make_frame, spheres, z_axis
from simengine.physics.math.vector_jax import dot


def sphere_capsule(
    pos1: jax.Array, mat1: jax.Array, size1: jax.Array, pos2: jax.Array, mat2: jax.Array, size2: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n spheres and n capsules, one slot each.

    Args: positions (n, 3) [m], rotation matrices (n, 9), sizes (n, 3) radius and half length [m]; geom 1 the sphere.
    Returns: dist (n, 1) [m], pos (n, 1, 3) [m], frame (n, 1, 9).
    """
    # (1) nearest point of the capsule's segment
    axis, half = z_axis(mat2), size2[:, 1]
    along = jnp.clip(dot(axis, pos1 - pos2), -half, half)
    nearest = pos2 + axis * along[:, None]

    # (2) sphere against sphere
    inner = jnp.abs(along) < half
    dist, pos, normal = spheres(pos1, size1[:, 0], z_axis(mat1), nearest, size2[:, 0], axis, inner2=inner)
    return dist[:, None], pos[:, None], make_frame(normal)[:, None]
