"""Plane against mesh in JAX."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.collision.contact_jax import NO_CONTACT, make_frame, z_axis

Array = np.ndarray | jax.Array
_Corners = tuple[jax.Array, jax.Array]


class Faces(NamedTuple):
    """Flat faces of n hulls.

    Attributes:
        corner: (n, faces, most) vertices around each face.
        sides: (n, faces) number of vertices of each face, 0 for padding.
        normal: (n, faces, 3) outward, in the mesh's frame.
        first: (n, faces) index of the face's first row in `span`.
        span: (all corners of all faces, 4) four vertices that span a face, starting with each of its corners.
    """

    corner: Array
    sides: Array
    normal: Array
    first: Array
    span: Array


def plane_mesh(
    pos1: jax.Array, mat1: jax.Array, pos2: jax.Array, mat2: jax.Array, vert: np.ndarray, faces: Faces
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n planes and n meshes, at corners of the face at the mesh's lowest vertex that looks down most.

    Args: positions (n, 3) [m], rotation matrices (n, 9); geom 1 the plane; vert (n, k, 3) hull vertices [m]; faces.
    Returns: dist (n, 4) [m], NO_CONTACT in an unused slot; pos (n, 4, 3) [m]; frame (n, 4, 9).
    """
    normal = z_axis(mat1)
    span = jnp.asarray(faces.span)
    own = (faces.corner, faces.sides, np.asarray(faces.normal, pos1.dtype), faces.first)

    def of_one(normal: jax.Array, offset: jax.Array, mat: jax.Array, vert: jax.Array, own: list[jax.Array]) -> _Corners:
        corner, sides, looks, first = own
        return _corners(normal, offset, mat, vert, Faces(corner, sides, looks, first, span))

    with jax.default_matmul_precision("highest"):
        poses = normal, pos2 - pos1, mat2.reshape(-1, 3, 3)
        dist, pos = jax.vmap(of_one)(*poses, jnp.asarray(vert, pos1.dtype), [jnp.asarray(x) for x in own])
    return dist, pos1[:, None] + pos, jnp.broadcast_to(make_frame(normal)[:, None], (*dist.shape, 9))


def _corners(normal: jax.Array, offset: jax.Array, mat: jax.Array, vert: jax.Array, faces: Faces) -> _Corners:
    """dist (4,) and pos (4, 3) of one mesh, relative to the plane's origin."""
    down = jax.lax.stop_gradient(-(normal @ mat))
    # (1) the lowest vertex
    low = jnp.argmax(vert @ down).astype(jnp.int32)
    # (2) the face at this vertex whose normal points down most
    inside = jnp.arange(faces.corner.shape[1], dtype=jnp.int32)[None] < faces.sides[:, None]
    has_low = (faces.corner == low) & inside
    face = jnp.argmax(jnp.where(has_low.any(axis=1), faces.normal @ down, -jnp.inf))
    there = has_low.any()
    start = jnp.argmax(has_low[face]).astype(jnp.int32)
    number = jnp.where(there, faces.sides[face], 1)
    # (3) its corners, starting with the lowest, or four that span it
    local = vert[jnp.where(there, faces.span[faces.first[face] + start], low)]
    # (4) contacts midway between the plane and those corners that are lower than the geom's centre
    points = offset[None] + local @ mat.T
    there = (jnp.arange(4, dtype=jnp.int32) < number) & (local @ down > 0)
    dist = jnp.where(there, points @ normal, NO_CONTACT)
    return dist, points - 0.5 * dist[:, None] * normal[None]
