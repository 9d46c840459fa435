"""Capsule against box in JAX, in the box's frame: a point of the segment is middle + x half with x in [-1, 1]."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.collision.contact_jax import NO_CONTACT, z_axis
from simengine.physics.collision.pairs.box_jax import sphere_against_box
from simengine.physics.math.vector_jax import MINVAL, const, dot, matmul

EDGES = [(axis, corner) for axis in range(3) for corner in range(8) if not corner >> axis & 1]
"""The twelve edges: axis, and the signs of the other coordinates as bits."""


class Nearest(NamedTuple):
    """The nearest points of segments and boxes, for ends (n, 2) or edges (n, 12), or the best of them (n,).

    Attributes:
        square: of the distance [m^2].
        x: point of the segment.
        along: point of the edge in [-1, 1].
        face: axis of the face that an end is over, 3 for an end inside the box, -1 for an edge or corner.
        edge: axis of the edge.
        corner: signs of the edge's or corner's coordinates, as bits.
        inner: whether the point is inside the edge, not at a corner.
    """

    square: jax.Array
    x: jax.Array
    along: jax.Array
    face: jax.Array
    edge: jax.Array
    corner: jax.Array
    inner: jax.Array


def capsule_box(
    pos1: jax.Array, mat1: jax.Array, size1: jax.Array, pos2: jax.Array, mat2: jax.Array, size2: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n capsules and n boxes. Slot 0 is that of the sphere at the point of the capsule's segment nearest to
    the box; slot 1 is that of another sphere, where the capsule lies along a face or an edge.

    Args: positions (n, 3) [m], rotation matrices (n, 9), sizes (n, 3) [m]; geom 1 the capsule.
    Returns: dist (n, 2) [m], NO_CONTACT in an unused slot; pos (n, 2, 3) [m]; frame (n, 2, 9).
    """
    axis, turn = z_axis(mat1), mat2.reshape(-1, 3, 3)
    middle = matmul((pos1 - pos2)[:, None], turn)[:, 0]
    half = matmul(axis[:, None], turn)[:, 0] * size1[:, 1:2]
    groups = zip(_nearest_end(middle, half, size2), _nearest_edge(middle, half, size2), strict=True)
    every = Nearest(*(jnp.concatenate(pair, axis=1) for pair in groups))
    # the first of those that are nearest up to rounding
    least = every.square.min(axis=1, keepdims=True)
    near = every.square <= least + jnp.maximum(MINVAL, 16 * jnp.finfo(least.dtype).eps * least)
    chosen = jnp.argmax(near, axis=1)[:, None]
    if jnp.finfo(least.dtype).eps > 1e-10:
        # a point inside an edge is nearer than the edge's end, which single precision may not show
        inside = near & every.inner & (jnp.abs(every.along) < 1 - 16 * jnp.finfo(least.dtype).eps)
        face, inner, corner = (jnp.take_along_axis(x, chosen, axis=1) for x in (every.face, every.inner, every.corner))
        of_edge = inside & (face < 0) & ~inner & (corner & ~(1 << every.edge) == every.corner)
        chosen = jnp.where(of_edge.any(axis=1, keepdims=True), jnp.argmax(of_edge, axis=1)[:, None], chosen)
    best = Nearest(*(jnp.take_along_axis(x, chosen, axis=1)[:, 0] for x in every))
    step, any_second = _second(best, middle, half, size2)

    # (4) the spheres
    contacts = []
    for x in (best.x, best.x + step):
        centre = pos1 + axis * (size1[:, 1] * x)[:, None]
        contacts.append(sphere_against_box(centre, size1[:, 0], pos2, mat2, size2))
    dist, pos, frame = (jnp.stack(pair, axis=1) for pair in zip(*contacts, strict=True))
    unused = jnp.stack([jnp.zeros_like(any_second), ~any_second], axis=1)
    return jnp.where(unused, NO_CONTACT, dist), pos, frame


def _nearest_end(middle: jax.Array, half: jax.Array, size: jax.Array) -> Nearest:
    """Ends of the segments over a face or inside the box."""
    # (1) an end counts if it is outside along one axis at most
    x = const(np.array([[-1.0, 1.0]]), middle)
    point = middle[:, None] + x[..., None] * half[:, None]
    beyond = point - jnp.clip(point, -size[:, None], size[:, None])
    outside = beyond != 0
    few = outside.sum(axis=-1) < 2
    square = jnp.where(few, dot(beyond, beyond), jnp.inf)
    face = jnp.where(outside.any(axis=-1), jnp.argmax(outside, axis=-1), 3)
    nothing = jnp.zeros(face.shape, face.dtype)
    x = jnp.broadcast_to(x, square.shape)
    return Nearest(square, x, jnp.zeros_like(square), face, nothing, nothing, jnp.zeros(face.shape, bool))


def _nearest_edge(middle: jax.Array, half: jax.Array, size: jax.Array) -> Nearest:
    """The twelve edges of each box."""
    # (2) nearest points of two lines, projected along the edge, then clamped one after the other
    axis, corner = (np.array(column) for column in zip(*EDGES, strict=True))
    b, c = (axis + 1) % 3, (axis + 2) % 3
    signs = np.array([[0 if i == a else 1 if k >> i & 1 else -1 for i in range(3)] for a, k in EDGES])
    direction = const(np.eye(3)[axis], middle)[None]
    edge = size[:, axis]
    offset = const(signs, middle)[None] * size[:, None] - middle[:, None]
    squared = dot(half, half)[:, None]
    across = half[:, b] ** 2 + half[:, c] ** 2
    eps = jnp.finfo(half.dtype).eps
    usable = edge * edge * across >= jnp.maximum(MINVAL, 64 * eps * eps * edge * edge * squared)
    each = np.arange(12)
    lateral = offset[:, each, b] * half[:, b] + offset[:, each, c] * half[:, c]
    ahead = offset[:, each, axis]
    x2 = lateral / jnp.where(usable, across, 1.0)
    x1 = (x2 * half[:, axis] - ahead) / edge
    # the nearest point counts as a corner once the edge's parameter was clamped, even if its final value is inside
    end = jnp.where(jnp.abs(x1) > 1, jnp.sign(x1), jnp.zeros_like(x1))
    x2 = jnp.where(end != 0, (end * edge * half[:, axis] + dot(offset, half[:, None])) / squared, x2)
    x1 = jnp.where(end != 0, end, x1)
    again = jnp.abs(x2) > 1
    x2 = jnp.clip(x2, -1.0, 1.0)
    x1 = jnp.where(again, (x2 * half[:, axis] - ahead) / edge, x1)
    end = jnp.where(jnp.abs(x1) > 1, jnp.sign(x1), end)
    x1 = jnp.clip(x1, -1.0, 1.0)
    gap = offset - x2[..., None] * half[:, None] + (x1 * edge)[..., None] * direction
    square = jnp.where(usable, dot(gap, gap), jnp.inf)
    axes = jnp.broadcast_to(jnp.asarray(axis)[None], square.shape)
    corners = jnp.asarray(corner)[None] + jnp.where(end > 0, jnp.asarray(1 << axis)[None], 0)
    return Nearest(square, x2, x1, jnp.full(square.shape, -1, axes.dtype), axes, corners, end == 0)


def _second(best: Nearest, middle: jax.Array, half: jax.Array, size: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Distance (n,) along the segment from its nearest point to the second sphere, and whether there is one (n,).

    The distance may be zero; then MuJoCo lists the same contact twice.
    """
    # (3) one rule each for a face, an edge and a corner
    weights = jnp.asarray(np.array([[1, 2, 4]]))
    inward = ((best.corner[:, None] & weights) != 0) != (half > 0)
    slope = jnp.where(half == 0, 1e-30, jnp.abs(half))
    rules = [_beyond_face(best, middle, half, size)]
    rules += [_beyond_edge(best, inward, half, slope, size), _beyond_corner(best, inward, half, slope, size)]
    which = jnp.where(best.face >= 0, 0, jnp.where(best.inner, 1, 2))[:, None]
    step, has = (jnp.take_along_axis(jnp.stack(x, axis=1), which, axis=1)[:, 0] for x in zip(*rules, strict=True))
    return jnp.where(has, step, 0.0), has


def _beyond_face(best: Nearest, middle: jax.Array, half: jax.Array, size: jax.Array) -> tuple[jax.Array, jax.Array]:
    """From the end over the face to the point where the segment leaves the face, or to its other end."""
    start, slope = middle + best.x[:, None] * half, -best.x[:, None] * half
    slope = jnp.where(slope == 0, 1e-30, slope)
    leave = jnp.stack([(-size - start) / slope, (size - start) / slope], axis=-1)
    counts = (leave > 0) & (jnp.arange(3)[None, :, None] != best.face[:, None, None])
    step = jnp.where(counts, leave, 2.0).min(axis=(1, 2), initial=2.0)
    return -best.x * step, best.face != 3


def _pick(values: jax.Array, axis: jax.Array) -> jax.Array:
    return jnp.take_along_axis(values, axis[:, None], axis=1)[:, 0]


def _beyond_edge(
    best: Nearest, inward: jax.Array, half: jax.Array, slope: jax.Array, size: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Over the face along which the segment lies, as far as that face and the edge reach; only if the segment goes
    inward along one of the axes perpendicular to the edge and outward along the other."""
    a = best.edge
    b = (a + 1) % 3
    c = 3 - a - b
    big, other = _pick(slope, b), _pick(slope, c)
    over = jnp.where((big > other) | ((big == other) & (b > c)), b, c)
    sign = jnp.where(_pick(inward, over), 1.0, -1.0).astype(half.dtype)
    step = jnp.minimum(1 - sign * best.x, 2 * _pick(size, over) / _pick(slope, over))
    up = (_pick(half, a) > 0) == (sign > 0)
    rest = jnp.where(up, 1 - best.along, 1 + best.along)
    step = jnp.minimum(step, _pick(size, a) * rest / _pick(slope, a))
    return sign * step, _pick(inward, b) != _pick(inward, c)


def _beyond_corner(
    best: Nearest, inward: jax.Array, half: jax.Array, slope: jax.Array, size: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Along the edge of the axis along which the segment goes the other way, or over the face of the two others."""
    number = inward.sum(axis=1)
    single = number == 1
    a = jnp.argmax(inward == single[:, None], axis=1)
    b, c = (a + 1) % 3, (a + 2) % 3
    sign = jnp.where(single, 1.0, -1.0).astype(half.dtype)
    along = _pick(half, a) ** 2 > 0.5 * dot(half, half)
    edge = jnp.minimum(1 - sign * best.x, 2 * _pick(size, a) / _pick(slope, a))
    narrow = jnp.minimum(_pick(size, b) / _pick(slope, b), _pick(size, c) / _pick(slope, c))
    face = jnp.minimum(1 + sign * best.x, 2 * narrow)
    return jnp.where(along, sign * edge, -sign * face), (number == 1) | (number == 2)
