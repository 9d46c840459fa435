"""Spheres against boxes: shared by the pair functions of spheres and of capsules."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.collision.contact_jax import make_frame
from simengine.physics.math.vector_jax import const, matmul, normalize

FACES = np.array([[-sign if axis == i else 0 for i in range(3)] for axis in range(3) for sign in (-1, 1)])
"""Inward normals (6, 3) of a box's faces: x before y before z, the lower of two first."""


def sphere_against_box(
    centre: jax.Array, radius: jax.Array, pos: jax.Array, mat: jax.Array, size: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n spheres and n boxes. The normal points from sphere to box or, if the box contains the centre, out
    of the nearest face.

    Args: centre (n, 3) and radius (n,) [m] of the sphere; pos (n, 3), mat (n, 9), size (n, 3) [m] of the box.
    Returns: dist (n,) [m], position (n, 3) [m], frame (n, 9).
    """
    turn = mat.reshape(-1, 3, 3)
    local = matmul((centre - pos)[:, None], turn)[:, 0]
    faces = const(FACES, pos)
    way = jnp.stack([local + size, size - local], axis=-1).reshape(-1, 6)
    face = jnp.argmin(jnp.abs(way), axis=1)
    inside = (jnp.abs(local) <= size).all(axis=1)
    nearest = jnp.clip(local, -size, size)
    normal, away = normalize(nearest - local, faces[face])
    normal = jnp.where(inside[:, None], faces[face], normal)
    depth = jnp.take_along_axis(way, face[:, None], axis=1)
    nearest = jnp.where(inside[:, None], local - depth * normal, nearest)
    dist = jnp.where(inside, -depth[:, 0], away) - radius
    # midway between the surfaces
    middle = 0.5 * (nearest + local + normal * radius[:, None])
    position = pos + matmul(turn, middle[..., None])[..., 0]
    return dist, position, make_frame(matmul(turn, normal[..., None])[..., 0])
