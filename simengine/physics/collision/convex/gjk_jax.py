"""Distance of two convex cores by GJK, for one pair; see `gjk.cuh` for the method. Not differentiable."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.collision.convex.shape_jax import Pair, support, unit
from simengine.physics.math.vector_jax import cross, dot

ITERATIONS = 64
POINTS_OFF = 16  # units in the last place of the scale by which support points may be off
_TRIANGLES = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
_EDGES = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])


class Simplex(NamedTuple):
    """Four support points, some of weight zero.

    Attributes:
        w: (4, 3) support points [m].
        dir: (4, 3) directions that they belong to.
        weight: (4,) weights of the point nearest to the origin.
        used: (4,) bool, which of the points have weight.
    """

    w: jax.Array
    dir: jax.Array
    weight: jax.Array
    used: jax.Array


def triangle_weights(w: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Weights (..., 3) of the corners of triangles (..., 3, 3) for their planes' points nearest to the origin.

    Also returns the squared distance (...) of these points, and whether the triangles are wide enough (...).
    """
    a, b, c = w[..., 0, :], w[..., 1, :], w[..., 2, :]
    ab, ac = b - a, c - a
    n = cross(ab, ac)
    nn = dot(n, n)
    eps = jnp.finfo(w.dtype).eps
    ok = nn > eps * eps * dot(ab, ab) * dot(ac, ac)
    safe = jnp.where(ok, nn, 1.0)
    first, second = dot(n, cross(b, c)) / safe, dot(n, cross(c, a)) / safe
    height = dot(n, a)
    return jnp.stack([first, second, 1 - first - second], axis=-1), height * height / safe, ok


def _nearest(w: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Weights (4,) of the simplex's point nearest to the origin, and the point (3,)."""
    inner, square, ok = triangle_weights(w[_TRIANGLES])
    square = jnp.where(ok & (inner >= 0).all(axis=-1), square, jnp.inf)
    by_triangle = jnp.zeros((4, 4), w.dtype).at[np.arange(4)[:, None], _TRIANGLES].set(inner)
    a, b = w[_EDGES[:, 0]], w[_EDGES[:, 1]]
    ab = b - a
    length = dot(ab, ab)
    t = jnp.where(length > 0, jnp.clip(-dot(a, ab) / jnp.where(length > 0, length, 1.0), 0, 1), 0)
    by_edge = jnp.zeros((6, 4), w.dtype).at[np.arange(6), _EDGES[:, 0]].set(1 - t)
    by_edge = by_edge.at[np.arange(6), _EDGES[:, 1]].set(t)
    point = a + t[:, None] * ab
    best = jnp.argmin(jnp.concatenate([square, dot(point, point)]))
    weight = jnp.concatenate([by_triangle, by_edge])[best]
    return weight, weight @ w


def _holds_origin(w: jax.Array) -> jax.Array:
    """Whether the tetrahedron (4, 3) contains the origin."""
    a, b, c, apex = (jnp.roll(w, -k, axis=0) for k in range(4))
    n = cross(b - a, c - a)
    inside, origin = dot(n, apex - a), -dot(n, a)
    return ((inside * origin > 0) | ((origin == 0) & (inside != 0))).all()


def _in_a_plane(w: jax.Array, scale: jax.Array) -> jax.Array:
    """Whether four support points (4, 3) are in a plane, up to rounding, which then decides what they contain."""
    ab, ac, ad = w[1:] - w[0][None]
    b2, c2, d2 = dot(ab, ab), dot(ac, ac), dot(ad, ad)
    off = POINTS_OFF * jnp.finfo(w.dtype).eps * scale * jnp.sqrt(b2 * c2 + c2 * d2 + d2 * b2)
    return ~(jnp.abs(dot(cross(ab, ac), ad)) > off)


def gjk(p: Pair, most: jax.Array) -> tuple[Simplex, jax.Array, jax.Array, jax.Array]:
    """Nearest points of two cores.

    Args: the pair; most () distance [m] beyond which the result does not matter.
    Returns: the simplex, the direction (3,) from a to b, whether they touch (), whether they are beyond `most` ().
    """
    dtype = p.offset.dtype
    tolerance, touch = (1e-6, 1e-5) if dtype == jnp.float32 else (1e-13, 1e-9)
    start = unit(p.offset)
    w = jnp.broadcast_to(support(p, start), (4, 3))
    weight, v = _nearest(w)
    simplex = Simplex(w, jnp.broadcast_to(start, (4, 3)), weight, weight > 0)
    false = jnp.zeros((), bool)

    def body(carry: tuple) -> tuple:
        simplex, v, normal, touching, apart, _, count = carry
        distance = jnp.sqrt(dot(v, v))
        touching = distance <= touch * p.scale
        # (1) the support point towards the origin
        direction = -v / jnp.where(touching, 1.0, distance)
        w = support(p, direction)
        bound = -dot(w, direction)
        apart = ~touching & (bound > most)
        normal = jnp.where(touching | apart, normal, direction)
        done = touching | apart | (distance - bound <= tolerance * distance)
        # (2) it replaces a point of weight zero
        place = jnp.argmin(simplex.weight)
        points, dirs = simplex.w.at[place].set(w), simplex.dir.at[place].set(direction)
        # in thin tetrahedra rounding may put it inside although the cores are apart
        inside = ~done & ~(bound > touch * p.scale) & _holds_origin(points) & ~_in_a_plane(points, p.scale)
        weight, nearer = _nearest(points)
        better = ~done & ~inside & (dot(nearer, nearer) < dot(v, v))
        # rounding ends the search; without a plane between the cores they may overlap
        touching = touching | (~done & ~inside & ~better & ~(bound > 0))
        following = Simplex(points, dirs, weight, weight > 0)
        simplex = jax.tree.map(lambda new, old: jnp.where(better, new, old), following, simplex)
        return simplex, jnp.where(better, nearer, v), normal, touching | inside, apart, ~better, count + 1

    def go_on(carry: tuple) -> jax.Array:
        return ~carry[5] & (carry[6] < ITERATIONS)

    carry = (simplex, v, start, false, false, false, jnp.zeros((), jnp.int32))
    simplex, _, normal, touching, apart, _, _ = jax.lax.while_loop(go_on, body, carry)
    return simplex, normal, touching, apart
