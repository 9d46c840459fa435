"""Sphere against cylinder in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from simengine.physics.collision.contact_jax import make_frame, spheres, z_axis
from simengine.physics.math.vector_jax import dot, normalize


def sphere_cylinder(
    pos1: jax.Array, mat1: jax.Array, size1: jax.Array, pos2: jax.Array, mat2: jax.Array, size2: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n spheres and n cylinders, one slot each: with the side, a cap or a rim.

    Args: positions (n, 3) [m], rotation matrices (n, 9), sizes (n, 3) radius and half length [m]; geom 1 the sphere.
    Returns: dist (n, 1) [m], pos (n, 1, 3) [m], frame (n, 1, 9).
    """
    # (1) the components of the sphere's centre along the axis and perpendicular to it
    axis, radius, half = z_axis(mat2), size2[:, 0], size2[:, 1]
    along = dot(axis, pos1 - pos2)
    outward, away = normalize(pos1 - pos2 - axis * along[:, None], mat2[:, 0::3])
    height = jnp.abs(along)
    up = jnp.where(along > 0, 1.0, -1.0)[:, None] * axis
    inside = (height < half) & (away < radius)
    side = jnp.where(inside, half - height >= radius - away, height < half)
    cap = jnp.where(inside, ~side, away < radius)

    # (2) the side: contact with the sphere of the cylinder's radius at that height; a rim: with its nearest point
    level = pos2 + axis * along[:, None]
    rim = pos2 + up * half[:, None] + outward * radius[:, None]
    nearest = jnp.where(side[:, None], level, rim)
    of_rim = spheres(pos1, size1[:, 0], z_axis(mat1), nearest, jnp.where(side, radius, 0.0), axis, inner2=side)

    # (3) a cap: contact with its plane
    dist = height - half - size1[:, 0]
    of_cap = dist, pos1 - up * (size1[:, 0] + 0.5 * dist)[:, None], -up
    dist = jnp.where(cap, of_cap[0], of_rim[0])
    pos, normal = (jnp.where(cap[:, None], a, b) for a, b in zip(of_cap[1:], of_rim[1:], strict=True))
    return dist[:, None], pos[:, None], make_frame(normal)[:, None]
