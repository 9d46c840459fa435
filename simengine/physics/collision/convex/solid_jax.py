"""Flat features of a shape that touches another, for one shape of one pair; see `solid.cuh`."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from simengine.physics.collision.convex.gjk_jax import Simplex
from simengine.physics.collision.convex.polish_jax import Kinks, touching
from simengine.physics.collision.convex.shape_jax import Shape, flat_code, flat_point
from simengine.physics.math.vector_jax import cross, dot, safe_sqrt

CAP_SIDES = 16
ON_LINE = 1e-3
_still = jax.lax.stop_gradient


class Solid(NamedTuple):
    """The part of a shape's hull that can lie flat, or of several shapes along a leading axis.

    Attributes:
        vert: (..., V, 3) corners in the shape's frame [m].
        corner: (..., F, C) corners around each face.
        sides: (..., F) number of corners of each face.
        normal: (..., F, 3) outward, in the shape's frame.
        ring: (..., V, D) faces around each corner, padded with -1.
        spoke: (..., V, D) other ends of the edges at each corner.
    """

    vert: jax.Array
    corner: jax.Array
    sides: jax.Array
    normal: jax.Array
    ring: jax.Array
    spoke: jax.Array


class Features(NamedTuple):
    """Faces and edges at the touching corners, in the frame of the pair.

    Attributes:
        face: (D,) numbers of faces.
        is_face: (D,) which of these exist.
        normal: (D, 3) outward.
        looks: (D,) whether the normals point towards the other shape.
        begin, end: (D, 3) ends of edges [m].
        is_edge: (D,) which of these exist.
        touches: () number of touching corners.
        line: () bool, whether the edge is the line of a capsule or a cylinder.
        astray: () bool, whether the position of that line is not known.
        thick: () by how much the line is too far out [m].
    """

    face: jax.Array
    is_face: jax.Array
    normal: jax.Array
    looks: jax.Array
    begin: jax.Array
    end: jax.Array
    is_edge: jax.Array
    touches: jax.Array
    line: jax.Array
    astray: jax.Array
    thick: jax.Array


def corners(solid: Solid, mat: jax.Array, pos: jax.Array, face: jax.Array) -> jax.Array:
    """(C, 3) corners around a face in the frame of the pair."""
    return pos[None] + solid.vert[solid.corner[face]] @ mat.T


def features(
    solid: Solid,
    shape: Shape,
    mat: jax.Array,
    pos: jax.Array,
    simplex: Simplex,
    kinks: Kinks,
    body: int,
    normal: jax.Array,
    on_side: jax.Array,
    margin: jax.Array,
    scale: jax.Array,
) -> Features:
    """The features of a shape that may lie flat.

    Args: its solid, shape, orientation (3, 3) and position (3,); the simplex and the active kinks; body 0 for the
        pair's first shape, 1 for the second; the contact's normal (3,); on_side () whether the contact is a line along
        a cylinder's side; margin, scale () [m].
    """
    outward = -normal if body else normal
    touch = _touching(shape, mat, simplex, kinks, body, _still(outward), scale)
    low, number = touch[0], _distinct(touch)
    face = solid.ring[low]
    held = (solid.corner[face][:, :, None] == touch[None, None]).any(axis=1).all(axis=1)
    # three touching corners have one face in common, and two have two; where faces of a hull overlap, which happens in
    # MuJoCo's hulls, they have more, and the first ones count
    held &= (number == 1) | (jnp.cumsum(held & (face >= 0)) + jnp.minimum(number, 3) <= 4)
    on_side = on_side | (shape.disc & (jnp.abs(dot(outward, mat[:, 2])) <= _upright(outward)))
    is_face = (face >= 0) & (held | shape.disc) & ~on_side & ~shape.line
    begin, end, line, astray, thick = _line(shape, mat, pos, outward, margin)
    other = touch[jnp.argmax(touch != low)]
    # of two touching corners, rounding decides which is the first, so the order is fixed by their numbers
    hub = jnp.where(number == 2, jnp.minimum(low, other), low)
    spoke = jnp.where(number == 2, jnp.maximum(low, other), solid.spoke[low])
    face_normal = solid.normal[face] @ mat.T
    first = jnp.arange(face.shape[0], dtype=jnp.int32) == 0
    at_corner = jnp.where(number == 1, face >= 0, first & (number == 2))
    place = pos[None] + solid.vert[jnp.append(spoke, hub)] @ mat.T
    return Features(
        face=face,
        is_face=is_face,
        normal=face_normal,
        looks=_still(face_normal @ outward) > 0,
        begin=jnp.where(line, begin[None], place[-1:]),
        end=jnp.where(line, end[None], place[:-1]),
        is_edge=jnp.where(line, first, at_corner),
        touches=number,
        line=line,
        astray=astray,
        thick=thick,
    )


def _touching(
    shape: Shape, mat: jax.Array, simplex: Simplex, kinks: Kinks, body: int, outward: jax.Array, scale: jax.Array
) -> jax.Array:
    """Touching corners (3,): the farthest along the normal, then those of the simplex that are as far; padded with the
    first. For a cylinder, the first corner of a cap.

    If the simplex gives less than three, the ends of edges whose kinks are active are added: the simplex may contain
    another edge of the shape, parallel to the one that touches, or two corners of a face only.
    """
    slack = (3e-7 if outward.dtype == jnp.float32 else 1e-7) * scale
    tilt = touching(outward) * _still(kinks.edge)
    ends = outward[None] + jnp.concatenate([tilt, -tilt])
    directions = jnp.concatenate([outward[None], -simplex.dir if body else simplex.dir, ends]) @ mat
    own = (jnp.arange(2) < kinks.number) & (kinks.body == body)
    codes = jax.vmap(lambda d: flat_code(shape, d))(directions)
    point = jax.vmap(lambda code: flat_point(shape, code))(codes)
    height = point @ directions[0]
    shown = jnp.concatenate([jnp.ones(1, bool), simplex.used, own, own]) & (height >= height[0] - slack)
    signs, vertex = codes
    of_box = signs.astype(jnp.int32) @ jnp.asarray([1, 2, 4], jnp.int32)
    is_box = (shape.box > 0).all()
    index = jnp.where(is_box, of_box, vertex.astype(jnp.int32))
    index = jnp.where(shape.disc, jnp.where(directions[0, 2] > 0, 0, CAP_SIDES), index)
    index = jnp.where(shape.line, 0, index)
    touch = jnp.where(shown, index, index[0])
    return _three(touch, _still(point))


def _three(corner: jax.Array, point: jax.Array) -> jax.Array:
    """The first three distinct corners (3,), padded with the first; of three on a line, which are an edge and not a
    face, the two at the ends.

    Args: numbers of corners (n,), and their points (n, 3) [m]; of copies of the first, any points.
    """
    point = jnp.where((corner == corner[0])[:, None], point[:1], point)

    def add(
        carry: tuple[jax.Array, jax.Array, jax.Array], new: tuple[jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array, jax.Array], None]:
        (held, place, count), (number, at) = carry, new
        ab, ac = place[1] - place[0], at - place[0]
        across, square, along = cross(ab, ac), dot(ab, ab), dot(ab, ac)
        line = (count == 2) & (dot(across, across) <= ON_LINE * ON_LINE * square * dot(ac, ac))
        takes = ~(held == number).any() & (count < 3)
        between = jnp.where(along < 0, 0, jnp.where(along > square, 1, 3))
        put = (jnp.arange(3, dtype=jnp.int32) == jnp.where(line, between, count)) & takes
        held, place = jnp.where(put, number, held), jnp.where(put[:, None], at[None], place)
        return (held, place, count + (takes & ~line).astype(jnp.int32)), None

    start = jnp.full((3,), corner[0]), jnp.broadcast_to(point[0], (3, 3)), jnp.ones((), jnp.int32)
    (held, _, count), _ = jax.lax.scan(add, start, (corner[1:], point[1:]))
    return jnp.where(jnp.arange(3, dtype=jnp.int32) < count, held, held[0])


def _upright(like: jax.Array) -> float:
    """Sine of the angle to the axis, or to a cap, below which a normal does not belong to the side, or to a cap."""
    return 1e-4 if like.dtype == jnp.float32 else 1e-7


def _distinct(touch: jax.Array) -> jax.Array:
    """() the number of distinct entries."""
    before = jnp.tril(touch[:, None] == touch[None], -1).any(axis=1)
    return (~before).sum().astype(jnp.int32)


def _line(
    shape: Shape, mat: jax.Array, pos: jax.Array, outward: jax.Array, margin: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """Ends (3,) of the touching line: of a capsule, half the margin outside; of a cylinder's side, from the end that
    touches. Also whether there is a line, whether its position is not known, and by how much it is too far out [m]."""
    axis = mat[:, 2]
    aside = outward - dot(outward, axis) * axis
    sine = safe_sqrt(dot(aside, aside))
    upright = sine <= _upright(outward)
    thick = jnp.where(shape.line, 0.5 * margin, 0.0)
    reach = jnp.where(shape.disc, shape.round[0] / jnp.where(upright, 1.0, sine), shape.radius + thick)
    half = jnp.where(shape.disc & (dot(outward, axis) > touching(outward)), -1.0, 1.0) * shape.box[2] * axis
    middle = pos + reach * aside
    return middle - half, middle + half, shape.disc | shape.line, shape.disc & upright, thick
