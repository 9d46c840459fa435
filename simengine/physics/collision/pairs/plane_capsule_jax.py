"""Plane against capsule in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from simengine.physics.collision.contact_jax import make_frame, z_axis
from simengine.physics.math.vector_jax import dot


def plane_capsule(
    pos1: jax.Array, mat1: jax.Array, size1: jax.Array, pos2: jax.Array, mat2: jax.Array, size2: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n planes and n capsules: slot 0 the end along the capsule's axis, slot 1 the other.

    Args: positions (n, 3) [m], rotation matrices (n, 9), sizes (n, 3) radius and half length [m]; geom 1 the plane.
    Returns: dist (n, 2) [m], pos (n, 2, 3) [m], frame (n, 2, 9) with the first tangent along the capsule.
    """
    # (1) the two ends are spheres
    normal, axis = z_axis(mat1), z_axis(mat2)
    segment = axis * size2[:, 1:2]
    ends = jnp.stack([pos2 + segment, pos2 - segment], axis=1)
    radius = size2[:, 0][:, None]
    dist = dot(ends - pos1[:, None], normal[:, None]) - radius

    # (2) midway between the surfaces
    pos = ends - normal[:, None] * (radius + 0.5 * dist)[..., None]
    frame = make_frame(normal, axis)
    return dist, pos, jnp.stack([frame, frame], axis=1)
