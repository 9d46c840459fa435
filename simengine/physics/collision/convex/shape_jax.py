"""Convex shapes by their support functions, for one pair.

Every primitive is the Minkowski sum of a flat part (a box, or a segment as a special case), a smooth part (an
ellipsoid, or a disc) and a ball. The flat part of a mesh is the hull of its vertices. The sum without the ball is the
core, on which GJK and EPA work.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from simengine.physics.math.vector_jax import cross, dot, safe_sqrt

Code = tuple[jax.Array, jax.Array]
"""Vertex of a flat part: signs for a box (3,) bool, and the number of the mesh vertex ()."""


class Shape(NamedTuple):
    """Sizes of a convex shape in its frame, or of several along a leading axis.

    Attributes:
        box: (..., 3) half sides [m].
        round: (..., 3) half axes of the ellipsoid [m].
        radius: (...) radius of the ball [m].
        vert: (..., k, 3) vertices of a mesh [m], one at the origin for other shapes.
        disc: (...) bool, whether the ellipsoid is a disc, whose flat sides face along z.
        line: (...) bool, whether the shape is a capsule.
    """

    box: jax.Array
    round: jax.Array
    radius: jax.Array
    vert: jax.Array
    disc: Any
    line: Any


class Pair(NamedTuple):
    """Two placed shapes a and b; positions relative to a.

    Attributes:
        a, b: the shapes.
        mat_a, mat_b: (3, 3) orientations.
        offset: (3,) from a to b [m].
        scale: () the size of both cores as a length [m], for tolerances.
    """

    a: Shape
    b: Shape
    mat_a: jax.Array
    mat_b: jax.Array
    offset: jax.Array
    scale: jax.Array


def extent(s: Shape) -> jax.Array:
    """() the size of a shape as a length [m], for tolerances."""
    sizes = jnp.concatenate([s.box, s.round, s.radius[None], safe_sqrt(dot(s.vert, s.vert))])
    return jnp.max(sizes)


def flat_code(s: Shape, local: jax.Array) -> Code:
    """Vertex of the flat part farthest along `local` (3,)."""
    return local >= 0, jnp.argmax(s.vert @ local)


def flat_point(s: Shape, code: Code) -> jax.Array:
    """Position (3,) of a vertex of the flat part, in the shape's frame."""
    return jnp.where(code[0], s.box, -s.box) + s.vert[code[1]]


def round_point(s: Shape, local: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Point (3,) of the ellipsoid farthest along `local`, E^2 l / |E l|, and |E l|; zero where that vanishes."""
    scaled = s.round * local
    height = safe_sqrt(dot(scaled, scaled))
    ok = height > 1e-15
    return jnp.where(ok, s.round * scaled / jnp.where(ok, height, 1.0), 0.0), height


def support_local(s: Shape, local: jax.Array) -> jax.Array:
    """Point (3,) of the core farthest along `local`."""
    return flat_point(s, flat_code(s, local)) + round_point(s, local)[0]


def support(p: Pair, direction: jax.Array) -> jax.Array:
    """Point (3,) of the Minkowski difference a - b farthest along `direction` (3,), both in the world frame."""
    first = p.mat_a @ support_local(p.a, direction @ p.mat_a)
    second = p.mat_b @ support_local(p.b, -(direction @ p.mat_b))
    return first - second - p.offset


def reach(p: Pair, direction: jax.Array) -> jax.Array:
    """() support function of the difference along a unit vector: the penetration depth along it."""
    return dot(support(p, direction), direction)


def unit(v: jax.Array) -> jax.Array:
    """(3,) unit vector along v; the x axis if v is zero."""
    square = dot(v, v)
    ok = square > 1e-30
    length = jnp.sqrt(jnp.where(ok, square, 1.0))
    return jnp.where(ok, v / length, jnp.asarray([1.0, 0.0, 0.0], v.dtype))


def across(v: jax.Array) -> jax.Array:
    """(3,) unit vector perpendicular to v: the cross product with the coordinate axis farthest from v."""
    axis = jnp.eye(3, dtype=v.dtype)[jnp.argmin(jnp.abs(v))]
    return unit(cross(v, axis))
