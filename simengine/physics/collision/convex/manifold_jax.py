"""Several contacts of flat features, for one pair; see `manifold.cuh` for the rules."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from simengine.physics.collision.contact_jax import make_frame
from simengine.physics.collision.convex.polygon_jax import clip, half_planes, span, without_copies
from simengine.physics.collision.convex.shape_jax import Pair
from simengine.physics.collision.convex.solid_jax import Features, Solid, corners
from simengine.physics.math.vector_jax import dot, safe_sqrt

SLOTS = 4
FACES, EDGE = 0.996, 0.0888
_THERE_AND_BACK = 8  # most corners of a clipped edge: each end twice, and more through rounding
_still = jax.lax.stop_gradient


class Lying(NamedTuple):
    """Contacts of two shapes that lie flat on each other.

    Attributes:
        dist: (SLOTS,) [m].
        pos: (SLOTS, 3) from the first shape's centre [m].
        normal: (3,) from the first to the second.
        number: () of contacts, 0 if nothing lies flat.
    """

    dist: jax.Array
    pos: jax.Array
    normal: jax.Array
    number: jax.Array


class _Plane(NamedTuple):
    origin: jax.Array
    frame: jax.Array  # rows x, y, normal

    def above(self, points: jax.Array) -> jax.Array:
        """Coordinates in the plane, and heights above it, (n, 3) of points (n, 3)."""
        return (points - self.origin[None]) @ self.frame.T


def _plane(around: jax.Array, sides: jax.Array, normal: jax.Array) -> _Plane:
    frame = make_frame(normal).reshape(3, 3)
    return _Plane(around[sides - 1], jnp.concatenate([frame[1:], frame[:1]]))


def _along_side(p: Pair) -> jax.Array:
    """() by how far a point beyond a side of a face lies along it, up to rounding [m]."""
    return 8.0 * jnp.finfo(p.scale.dtype).eps * _still(p.scale)


def lying_contacts(p: Pair, solids: tuple[Solid, Solid], found: tuple[Features, Features], margin: jax.Array) -> Lying:
    """Contacts of a pair, given the features of each shape that may lie flat."""
    (a, b), (first, second) = solids, found
    cosine = -_still(first.normal) @ _still(second.normal).T
    cosine = jnp.where(first.is_face[:, None] & second.is_face[None], cosine, -1.0)
    most = jnp.argmax(cosine)
    faces = jnp.unravel_index(most, cosine.shape)
    flat = cosine.ravel()[most] > FACES
    on_face = _face_contacts(p, a, b, (first.face[faces[0]], second.face[faces[1]]), margin)
    slack = _along_side(p)
    on_second, tried = _edge_contacts(first, second, b, p.mat_b, p.offset, -1.0, margin, slack)
    on_first, others = _edge_contacts(second, first, a, p.mat_a, jnp.zeros_like(p.offset), 1.0, margin, slack)
    turned = others & (~tried | (~first.line & (first.touches > second.touches)))
    on_edge = jax.tree.map(lambda x, y: jnp.where(turned, x, y), on_first, on_second)
    return jax.tree.map(lambda x, y: jnp.where(flat, x, y), on_face, on_edge)


def _face_contacts(p: Pair, a: Solid, b: Solid, faces: tuple[jax.Array, jax.Array], margin: jax.Array) -> Lying:
    """Contacts of two faces, numbered within their solids."""
    number, other = a.sides[faces[0]], b.sides[faces[1]]
    normal = p.mat_b @ b.normal[faces[1]]
    around = corners(a, p.mat_a, jnp.zeros_like(p.offset), faces[0])
    plane = _plane(around, number, p.mat_a @ a.normal[faces[0]])
    spots = plane.above(corners(b, p.mat_b, p.offset, faces[1]))
    back = (other - 1 - jnp.arange(len(spots), dtype=jnp.int32)) % other
    # (1) the part of the second face over the first
    room = jnp.zeros((len(around), 3), spots.dtype)
    planes = half_planes(plane.above(around), number, _along_side(p))
    polygon, left = clip(jnp.concatenate([spots[back], room]), other, planes, number)
    # (2) four of the corners within the margin
    near = (jnp.arange(len(polygon), dtype=jnp.int32) < left) & (polygon[:, 2] <= margin)
    polygon, left = polygon[jnp.argsort(~near, stable=True)], near.sum().astype(jnp.int32)
    polygon, left = without_copies(polygon, left, _still(p.scale) * (1e-5 if spots.dtype == jnp.float32 else 1e-9))
    chosen = polygon[span(_still(polygon[:, :2]), left)]
    # (3) contacts midway between the faces
    dist = -chosen[:, 2] * dot(plane.frame[2], normal)
    pos = plane.origin[None] + chosen[:, :2] @ plane.frame[:2] - 0.5 * dist[:, None] * normal[None]
    return Lying(dist, pos, -normal, jnp.minimum(left, SLOTS))


def _edge_contacts(
    edges: Features,
    faces: Features,
    solid: Solid,
    mat: jax.Array,
    pos: jax.Array,
    sign: float,
    margin: jax.Array,
    slack: jax.Array,
) -> tuple[Lying, jax.Array]:
    """Contacts of the first face on which an edge lies, with the first such edge, and whether there is one.

    `solid`, `mat` and `pos` are those of the face's shape; `sign` turns its normal into the contact's; `slack` is how
    far beyond a side of the face lies along it.
    """
    along = _still(edges.end - edges.begin)
    length = safe_sqrt(dot(along, along))
    lies = jnp.abs(_still(faces.normal) @ along.T) < EDGE * length[None]
    lies = (lies & edges.is_edge[None] & (faces.is_face & faces.looks)[:, None]).ravel()
    face, edge = jnp.unravel_index(jnp.argmax(lies), (len(faces.is_face), len(edges.is_edge)))
    sides, normal = solid.sides[faces.face[face]], faces.normal[face]
    around = corners(solid, mat, pos, faces.face[face])
    plane = _plane(around, sides, normal)
    ends = jnp.stack([edges.begin[edge], edges.end[edge]])
    spots = plane.above(ends)
    # (1) the part of the edge over the face, as parameters in [0, 1]: a polygon of two corners
    planes = half_planes(plane.above(around), sides, slack)
    beyond = planes[:, :2] @ spots[:, :2].T - planes[:, 2:3]
    outside = (beyond > planes[:, 3:]).all(axis=1) & (jnp.arange(len(planes), dtype=jnp.int32) < sides)
    zero = jnp.zeros_like(beyond[:, 0])
    across = jnp.stack([beyond[:, 1] - beyond[:, 0], zero, -beyond[:, 0], planes[:, 3]], axis=1)
    height = spots[:, 2]
    whole = jnp.stack([jnp.arange(2, dtype=height.dtype), jnp.zeros_like(height), height], axis=1)
    room = jnp.zeros((_THERE_AND_BACK - 2, 3), height.dtype)
    part, left = clip(jnp.concatenate([whole, room]), jnp.asarray(2, jnp.int32), across, sides)
    # (2) an end made by clipping occurs twice, so take the first corner and the one farthest from it
    dist = part[:, 2] + edges.thick
    near = (jnp.arange(_THERE_AND_BACK, dtype=jnp.int32) < left) & (dist <= margin)
    begin = jnp.argmax(near).astype(jnp.int32)
    far = jnp.abs(_still(part[:, 0] - part[begin, 0]))
    others = near & (jnp.arange(_THERE_AND_BACK, dtype=jnp.int32) != begin)
    last = jnp.argmax(jnp.where(others, far, -1.0)).astype(jnp.int32)
    pick = jnp.stack([begin, last] * (SLOTS // 2))
    t, dist = part[pick, 0], dist[pick]
    points = ends[0][None] + t[:, None] * (ends[1] - ends[0])[None] + (edges.thick - 0.5 * dist)[:, None] * normal[None]
    over = ~outside.any() & ~edges.astray & lies.any()
    number = jnp.minimum(near.sum(), 2).astype(jnp.int32)
    return Lying(dist, points, sign * normal, jnp.where(over, number, 0)), lies.any()
