"""Box against box in JAX.

There are 15 axes that may separate the boxes: the normals of the faces of both, and the cross products of their edges
(Gottschalk, Lin and Manocha, OBBTree, 1996). The axis with the least overlap decides how the boxes touch. An edge axis
that is almost the normal of the best face must have an overlap smaller by a twentieth; otherwise flat contacts would
alternate between both kinds. A negative overlap is a gap.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.collision.contact_jax import NO_CONTACT, make_frame
from simengine.physics.math.vector_jax import const, dot, matmul, normalize

FLAT, TWENTIETH = 0.99, 0.05
"""Cosine of the angle within which an edge axis counts as the normal of a face, and the fraction of the face's overlap
by which it must then be better."""

ONE_CORNER = 1e-7
"""Corners closer than this fraction of the deciding face's half diagonal count as one, and the first is used."""

SLOTS = 8
"""Most corners of a quadrangle clipped against four sides."""


class Boxes(NamedTuple):
    """Both boxes in the frame of the first: orientation of the second (n, 3, 3), its centre (n, 3), the centre of the
    first in the frame of the second (n, 3), and half lengths (n, 3) [m]."""

    turn: jax.Array
    offset1: jax.Array
    offset2: jax.Array
    size1: jax.Array
    size2: jax.Array


class Axis(NamedTuple):
    """The best of several axes: its overlap (n,) [m], its direction (n, 3) in the frame of the first box, from the
    first to the second, and its number (n,)."""

    overlap: jax.Array
    normal: jax.Array
    number: jax.Array


def box_box(
    pos1: jax.Array, mat1: jax.Array, size1: jax.Array, pos2: jax.Array, mat2: jax.Array, size2: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n pairs of boxes: a polygon where a face of one touches a face of the other, one contact where two
    edges cross.

    Args: positions (n, 3) [m], rotation matrices (n, 9), sizes (n, 3) half lengths [m].
    Returns: dist (n, 8) [m], NO_CONTACT in an unused slot; pos (n, 8, 3) [m]; frame (n, 8, 9).
    """
    turn1, turn2 = mat1.reshape(-1, 3, 3), mat2.reshape(-1, 3, 3)
    turn = matmul(turn1.swapaxes(1, 2), turn2)
    between = pos2 - pos1
    boxes = Boxes(turn, _into(turn1, between), -_into(turn2, between), size1, size2)
    face, edges = _best_face(boxes), _best_edges(boxes)
    lead = face.overlap - edges.overlap
    alike = jnp.abs(dot(face.normal, edges.normal)) > FLAT
    flat = (lead <= 0) | (alike & (lead < TWENTIETH * jnp.abs(face.overlap)))
    dist, at = _face_contacts(boxes, face)
    edge_dist, edge_at = _edge_contact(boxes, edges)
    dist = jnp.where(flat[:, None], dist, edge_dist)
    at = jnp.where(flat[:, None, None], at, edge_at)
    normal = matmul(turn1, jnp.where(flat[:, None], face.normal, edges.normal)[..., None])[..., 0]
    pos = pos1[:, None] + matmul(at, turn1.swapaxes(1, 2))
    return dist, pos, jnp.broadcast_to(make_frame(normal)[:, None], (*dist.shape, 9))


def _into(turn: jax.Array, vector: jax.Array) -> jax.Array:
    """World vectors (n, 3) in the frames (n, 3, 3)."""
    return matmul(vector[:, None], turn)[:, 0]


def _pick(values: jax.Array, index: jax.Array) -> jax.Array:
    """The entry of values (n, k, ...) at each row's index (n,)."""
    return jnp.take_along_axis(values, index.reshape(-1, *(1,) * (values.ndim - 1)), axis=1)[:, 0]


def _best_face(b: Boxes) -> Axis:
    """The face with the least overlap: 0, 1, 2 of the first box, 3, 4, 5 of the second."""
    # (1) overlaps along the normals
    size = jnp.abs(b.turn)
    of1 = b.size1 - jnp.abs(b.offset1) + matmul(size, b.size2[..., None])[..., 0]
    of2 = b.size2 - jnp.abs(b.offset2) + matmul(b.size1[:, None], size)[:, 0]
    overlap = jnp.concatenate([of1, of2], axis=1)
    sign1, sign2 = jnp.where(b.offset1 >= 0, 1.0, -1.0), jnp.where(b.offset2 <= 0, 1.0, -1.0)
    normals = jnp.concatenate(
        [const(np.eye(3), of1)[None] * sign1[..., None], b.turn.swapaxes(1, 2) * sign2[..., None]], axis=1
    )
    index = jnp.argmin(overlap, axis=1)
    return Axis(_pick(overlap, index), _pick(normals, index), index)


def _best_edges(b: Boxes) -> Axis:
    """The pair of edges with the least overlap: three times the edge of the first box, plus that of the second."""
    # (2) overlaps along the cross products; parallel edges have none
    i, j = np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)
    unit = const(np.eye(3)[i], b.turn)[None]
    edge = b.turn.swapaxes(1, 2)[:, j]
    across = jnp.cross(jnp.broadcast_to(unit, edge.shape), edge)
    square = dot(across, across)
    eps = float(jnp.finfo(square.dtype).eps)
    crossed = square >= max(1e-16, 64 * float(eps) ** 2)
    across, _ = normalize(across, jnp.broadcast_to(unit, across.shape))
    along = dot(across, b.offset1[:, None])
    reach1 = matmul(jnp.abs(across), b.size1[..., None])[..., 0]
    # the components along the edges themselves are products of rounding errors
    others = const(1 - np.eye(3)[j], b.turn)[None]
    reach2 = matmul(jnp.abs(matmul(across, b.turn)) * others, b.size2[..., None])[..., 0]
    overlap = jnp.where(crossed, reach1 + reach2 - jnp.abs(along), jnp.inf)
    index = jnp.argmin(overlap, axis=1)
    normal = across * jnp.where(along >= 0, 1.0, -1.0)[..., None]
    return Axis(_pick(overlap, index), _pick(normal, index), index)


def _face_contacts(b: Boxes, face: Axis) -> tuple[jax.Array, jax.Array]:
    """dist (n, 8) and pos (n, 8, 3) in the frame of the first box, for boxes that touch with faces."""
    first = face.number < 3
    up = face.number % 3
    x, y = (up + 1) % 3, (up + 2) % 3
    offset = jnp.where(first[:, None], b.offset1, b.offset2)
    size = jnp.where(first[:, None], b.size1, b.size2)
    other = jnp.where(first[:, None], b.size2, b.size1)
    turn = jnp.where(first[:, None, None], b.turn, b.turn.swapaxes(1, 2))
    sign = jnp.where(_pick(offset, up) >= 0, 1.0, -1.0)
    # (3) the face of the other box whose normal is most opposite, clipped against this face's four sides
    facing = jnp.argmax(jnp.abs(_pick(turn, up)), axis=1)
    s, t = (facing + 1) % 3, (facing + 2) % 3
    axis, along_s, along_t = (_pick(turn.swapaxes(1, 2), k) for k in (facing, s, t))
    toward = jnp.where((_pick(axis, up) > 0) == (sign > 0), -1.0, 1.0) * _pick(other, facing)
    u = const(np.array([[1, -1, -1, 1]]), size) * _pick(other, s)[:, None]
    v = const(np.array([[1, 1, -1, -1]]), size) * _pick(other, t)[:, None]
    corner = (
        (offset + axis * toward[:, None])[:, None] + u[..., None] * along_s[:, None] + v[..., None] * along_t[:, None]
    )
    height = sign[:, None] * corner[jnp.arange(len(up)), :, up] - _pick(size, up)[:, None]
    polygon = jnp.stack([corner[jnp.arange(len(up)), :, x], corner[jnp.arange(len(up)), :, y], height], axis=-1)
    number = jnp.full(up.shape, 4)
    for k, side in ((0, 1.0), (0, -1.0), (1, 1.0), (1, -1.0)):
        polygon, number = _clip(polygon, number, k, side, _pick(size, (x, y)[k]))
    # contacts midway between its corners and the face
    counts = jnp.arange(SLOTS)[None] < number[:, None]
    apart2 = ((polygon[:, :, None, :2] - polygon[:, None, :, :2]) ** 2).sum(axis=-1)
    near2 = ONE_CORNER**2 * (_pick(size, x) ** 2 + _pick(size, y) ** 2)
    before = np.tri(SLOTS, k=-1, dtype=bool)[None]
    repeated = ((apart2 <= near2[:, None, None]) & before).any(axis=2)
    dist = jnp.where(counts & ~repeated, polygon[..., 2], NO_CONTACT)
    middle = sign[:, None] * (0.5 * polygon[..., 2] + _pick(size, up)[:, None])
    coordinate = jnp.stack([middle, polygon[..., 0], polygon[..., 1]], axis=-1)
    order = (jnp.arange(3)[None] - up[:, None]) % 3
    at = jnp.take_along_axis(coordinate, jnp.broadcast_to(order[:, None], coordinate.shape), axis=2)
    in_first = b.offset1[:, None] + matmul(at, b.turn.swapaxes(1, 2))
    return dist, jnp.where(first[:, None, None], at, in_first)


def _clip(
    polygon: jax.Array, number: jax.Array, axis: int, sign: float, size: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Polygons (n, k, 3), whose first `number` (n,) corners are real, cut off where sign times a coordinate exceeds
    `size` (n,): Sutherland and Hodgman, Reentrant polygon clipping, 1974. Adds at most one corner, up to eight."""
    k = polygon.shape[1]
    counts = jnp.arange(k)[None] < number[:, None]
    following = jnp.where(jnp.arange(k)[None] + 1 < number[:, None], jnp.arange(k)[None] + 1, 0)
    beyond = sign * polygon[..., axis] - size[:, None]
    inside = beyond <= 16 * jnp.finfo(size.dtype).eps * size[:, None]  # in flush boxes whole edges lie on a side
    to, beyond_to = (
        jnp.take_along_axis(polygon, following[..., None], axis=1),
        jnp.take_along_axis(beyond, following, axis=1),
    )
    crossing = counts & (inside != jnp.take_along_axis(inside, following, axis=1))
    share = jnp.clip(beyond / jnp.where(crossing, beyond - beyond_to, 1.0), 0, 1)
    cut = polygon + share[..., None] * (to - polygon)
    both = jnp.stack([polygon, cut], axis=2).reshape(-1, 2 * k, 3)
    kept = jnp.stack([counts & inside, crossing], axis=2).reshape(-1, 2 * k)
    order = jnp.argsort(~kept, axis=1, stable=True)[:, : min(k + 1, SLOTS)]
    return jnp.take_along_axis(both, order[..., None], axis=1), jnp.minimum(kept.sum(axis=1), SLOTS)


def _edge_contact(b: Boxes, edges: Axis) -> tuple[jax.Array, jax.Array]:
    """dist (n, 8) and pos (n, 8, 3) in the frame of the first box, for boxes that touch with edges."""
    # (4) contact midway between the nearest points of the two edges, each of which is on the side of the other box
    i, j = edges.number // 3, edges.number % 3
    unit, none = const(np.eye(3), b.turn)[i], const(1 - np.eye(3), b.turn)
    point1 = jnp.where(edges.normal > 0, b.size1, -b.size1) * none[i]
    facing = jnp.where(matmul(edges.normal[:, None], b.turn)[:, 0] > 0, -b.size2, b.size2) * none[j]
    point2 = b.offset1 + matmul(b.turn, facing[..., None])[..., 0]
    direction = _pick(b.turn.swapaxes(1, 2), j)
    apart = point1 - point2
    cosine, u, v = dot(direction, unit), dot(apart, unit), dot(direction, apart)
    square = dot(direction**2, none[i])
    half1, half2 = _pick(b.size1, i), _pick(b.size2, j)
    x1 = jnp.clip((cosine * v - u) / jnp.where(square > 0, square, 1.0), -half1, half1)
    x2 = cosine * x1 + v
    over = jnp.abs(x2) > half2
    x2 = jnp.clip(x2, -half2, half2)
    x1 = jnp.where(over, jnp.clip(cosine * x2 - u, -half1, half1), x1)
    at = 0.5 * (point1 + x1[:, None] * unit + point2 + x2[:, None] * direction)
    alone = jnp.arange(SLOTS)[None] == 0
    dist = jnp.where(alone, -edges.overlap[:, None], NO_CONTACT)
    return dist, jnp.broadcast_to(at[:, None], (len(i), SLOTS, 3))
