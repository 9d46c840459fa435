"""Plane against mesh in JAX."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.math.contact_frame import NO_CONTACT, make_frame, z_axis
from simengine.math.vector import cross, dot, safe_sqrt

Array = np.ndarray | jax.Array
_MOVES = np.array([[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0]])


class Faces(NamedTuple):
    """Flat faces of n hulls.

    Attributes:
        corner: (n, faces, most) vertices around each face.
        sides: (n, faces) number of them, 0 where there is no face.
        normal: (n, faces, 3) outward, in the mesh's frame.
    """

    corner: Array
    sides: Array
    normal: Array


def plane_mesh(
    pos1: jax.Array, mat1: jax.Array, pos2: jax.Array, mat2: jax.Array, vert: np.ndarray, faces: Faces
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n planes and n meshes, at corners of the face that a mesh's lowest vertex shows to the plane.

    Args: positions (n, 3) [m], rotation matrices (n, 9); geom 1 the plane; vert (n, k, 3) hull vertices [m]; faces.
    Returns: dist (n, 4) [m], NO_CONTACT in an unused slot; pos (n, 4, 3) [m]; frame (n, 4, 9).
    """
    normal = z_axis(mat1)
    faces = Faces(jnp.asarray(faces.corner), jnp.asarray(faces.sides), jnp.asarray(faces.normal, pos1.dtype))
    with jax.default_matmul_precision("highest"):
        dist, pos = jax.vmap(_corners)(
            normal, pos2 - pos1, mat2.reshape(-1, 3, 3), jnp.asarray(vert, pos1.dtype), faces
        )
    return dist, pos1[:, None] + pos, jnp.broadcast_to(make_frame(normal)[:, None], (*dist.shape, 9))


def _corners(
    normal: jax.Array, offset: jax.Array, mat: jax.Array, vert: jax.Array, faces: Faces
) -> tuple[jax.Array, jax.Array]:
    """dist (4,) and pos (4, 3) of one mesh, from the plane's origin."""
    down = jax.lax.stop_gradient(-(normal @ mat))
    # (1) the lowest vertex
    low = jnp.argmax(vert @ down).astype(jnp.int32)
    # (2) the face at it that looks down most
    inside = jnp.arange(faces.corner.shape[1], dtype=jnp.int32)[None] < faces.sides[:, None]
    has_low = (faces.corner == low) & inside
    face = jnp.argmax(jnp.where(has_low.any(axis=1), faces.normal @ down, -jnp.inf))
    there = has_low.any()
    start = jnp.argmax(has_low[face]).astype(jnp.int32)
    number = jnp.where(there, faces.sides[face], 1)
    # (3) its corners, from the lowest on, or four that span it
    around = jnp.where(there, faces.corner[face], low)
    chosen = _span(vert, around, start, number)
    local = vert[around[(start + chosen) % number]]
    # (4) contacts half-way between them and the plane, of those that lie lower than the geom's centre
    points = offset[None] + local @ mat.T
    there = (jnp.arange(4, dtype=jnp.int32) < number) & (local @ down > 0)
    dist = jnp.where(there, points @ normal, NO_CONTACT)
    return dist, points - 0.5 * dist[:, None] * normal[None]


def _area(corner: jax.Array) -> jax.Array:
    """Twice the area of a quadrilateral (4, 3)."""
    normal = cross(corner[2] - corner[0], corner[3] - corner[1])
    return safe_sqrt(dot(normal, normal))


def _span(vert: jax.Array, around: jax.Array, start: jax.Array, number: jax.Array) -> jax.Array:
    """Four corners (4,) of a convex polygon that span much of it, the first among them, counted from there: the others
    move on as long as the area grows, the last one first."""
    first = jnp.arange(4, dtype=jnp.int32)

    def area_of(quad: jax.Array) -> jax.Array:
        return _area(jax.lax.stop_gradient(vert)[around[(start + quad) % number]])

    def body(carry: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        quad, area, _ = carry
        trials = quad[None] + jnp.asarray(_MOVES, jnp.int32)
        bound = jnp.stack([number, quad[3], quad[2]])
        moved = jnp.stack([trials[0, 3], trials[1, 2], trials[2, 1]])
        areas = jnp.where(moved < bound, jax.vmap(area_of)(trials), -1.0)
        pick = jnp.argmax(areas > area)
        grows = (areas > area).any()
        return jnp.where(grows, trials[pick], quad), jnp.where(grows, areas[pick], area), grows

    quad, _, _ = jax.lax.while_loop(lambda c: c[2], body, (first, area_of(first), number > 4))
    return quad
