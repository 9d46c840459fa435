"""Plane against box in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.collision.contact_jax import NO_CONTACT, make_frame, z_axis
from simengine.physics.math.vector_jax import const, dot, matmul

CORNERS = np.array([[1 if corner >> i & 1 else -1 for i in range(3)] for corner in range(8)])
"""Signs (8, 3) of the corners' coordinates; x changes fastest."""


def plane_box(
    pos1: jax.Array, mat1: jax.Array, size1: jax.Array, pos2: jax.Array, mat2: jax.Array, size2: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n planes and n boxes: the four lowest corners, in the order of their numbers.

    MuJoCo takes the first four corners that are below the box's centre and within the margin. The result differs only
    if a diagonal of a face is exactly level and the centre itself is within the margin.

    Args: positions (n, 3) [m], rotation matrices (n, 9), sizes (n, 3) half lengths [m]; geom 1 the plane.
    Returns: dist (n, 4) [m], NO_CONTACT in an unused slot; pos (n, 4, 3) [m]; frame (n, 4, 9).
    """
    # (1) height of the centre
    normal = z_axis(mat1)
    height = dot(pos2 - pos1, normal)

    # (2) corners relative to the centre, and how far below it they are
    local = const(CORNERS, pos1)[None] * size2[:, None]
    corners = matmul(local, mat2.reshape(-1, 3, 3).swapaxes(1, 2))
    below = dot(corners, normal[:, None])
    lowest = jnp.sort(jnp.argsort(below, axis=1)[:, :4], axis=1)
    below = jnp.take_along_axis(below, lowest, axis=1)
    corners = jnp.take_along_axis(corners, lowest[..., None], axis=1)

    # (3) midway between the corners and the plane
    dist = height[:, None] + below
    pos = pos2[:, None] + corners - normal[:, None] * (0.5 * dist)[..., None]
    frame = jnp.broadcast_to(make_frame(normal)[:, None], (*dist.shape, 9))
    return jnp.where(below <= 0, dist, NO_CONTACT), pos, frame
