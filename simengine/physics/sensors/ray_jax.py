"""Intersection of rays with geoms in JAX: the distance along a ray to the nearest surface.

Every function takes rays in the geoms' frames, `p` (..., 3) and `v` (..., 3), and sizes (..., 3). It returns distances
(...) in units of the length of v, NO_HIT where the ray misses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from simengine.physics.math.vector_jax import MINVAL, dot, safe_sqrt

NO_HIT = -1.0
PLANE, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX = 0, 2, 3, 4, 5, 6
"""geom_type of MuJoCo."""

Ray = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def nearest(hits: Sequence[jax.Array]) -> jax.Array:
    """The smallest distance (...) among those that are hits."""
    stacked = jnp.stack(hits)
    best = jnp.min(jnp.where(stacked >= 0, stacked, jnp.inf), axis=0)
    return jnp.where(jnp.isfinite(best), best, NO_HIT)


def roots(a: jax.Array, b: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Roots (...) of a x^2 + 2 b x + c in ascending order; both NO_HIT if there are none."""
    square = b * b - a * c
    real = (square >= MINVAL) & (a >= MINVAL)
    root = safe_sqrt(jnp.where(real, square, 1.0))
    # one root without cancellation, and the other from the product of both
    q = jnp.where(b > 0, -b - root, -b + root)
    q = jnp.where(real, q, 1.0)
    first, second = q / jnp.where(real, a, 1.0), c / q
    low, high = jnp.minimum(first, second), jnp.maximum(first, second)
    return jnp.where(real, low, NO_HIT), jnp.where(real, high, NO_HIT)


def only(x: jax.Array, good: jax.Array) -> jax.Array:
    """Distances x (...) where they are hits and `good` (...) holds, else NO_HIT."""
    return jnp.where((x >= 0) & good, x, NO_HIT)


def crossing(p: jax.Array, v: jax.Array, at: jax.Array) -> jax.Array:
    """Distance (...) at which the coordinate p (...) with speed v (...) has the value `at`; NO_HIT where v is zero."""
    moves = jnp.abs(v) > MINVAL
    return jnp.where(moves, (at - p) / jnp.where(moves, v, 1.0), NO_HIT)


def plane(p: jax.Array, v: jax.Array, size: jax.Array) -> jax.Array:
    """A plane, from the front only; infinite along an axis whose size is zero."""
    x = crossing(p[..., 2], v[..., 2], jnp.zeros_like(p[..., 2]))
    at = jnp.abs(p + x[..., None] * v)
    within = ((size <= 0) | (at <= size))[..., :2].all(axis=-1)
    return only(x, within & (v[..., 2] < 0))


def sphere(p: jax.Array, v: jax.Array, size: jax.Array) -> jax.Array:
    """A sphere."""
    return nearest(roots(dot(v, v), dot(v, p), dot(p, p) - size[..., 0] ** 2))


def wall(p: jax.Array, v: jax.Array, radius: jax.Array, half: jax.Array) -> list[jax.Array]:
    """The wall of a cylinder along z, between the heights -half and half."""
    across, along = p[..., :2], v[..., :2]
    found = roots(dot(along, along), dot(along, across), dot(across, across) - radius**2)
    return [only(x, jnp.abs(p[..., 2] + x * v[..., 2]) <= half) for x in found]


def capsule(p: jax.Array, v: jax.Array, size: jax.Array) -> jax.Array:
    """A capsule: its wall, and the caps beyond the ends of its axis."""
    hits = wall(p, v, size[..., 0], size[..., 1])
    for end in (-1, 1):
        q = jnp.concatenate([p[..., :2], p[..., 2:] - end * size[..., 1:2]], axis=-1)
        found = roots(dot(v, v), dot(v, q), dot(q, q) - size[..., 0] ** 2)
        hits += [only(x, end * (q[..., 2] + x * v[..., 2]) >= 0) for x in found]
    return nearest(hits)


def cylinder(p: jax.Array, v: jax.Array, size: jax.Array) -> jax.Array:
    """A cylinder: its wall and its flat ends."""
    hits = wall(p, v, size[..., 0], size[..., 1])
    for end in (-1, 1):
        x = crossing(p[..., 2], v[..., 2], end * size[..., 1])
        at = (p + x[..., None] * v)[..., :2]
        hits.append(only(x, dot(at, at) <= size[..., 0] ** 2))
    return nearest(hits)


def ellipsoid(p: jax.Array, v: jax.Array, size: jax.Array) -> jax.Array:
    """An ellipsoid, which is a sphere in scaled coordinates."""
    return sphere(p / size, v / size, jnp.ones_like(size))


def box(p: jax.Array, v: jax.Array, size: jax.Array) -> jax.Array:
    """A box: its six faces."""
    hits = []
    for i in range(3):
        for side in (-1, 1):
            x = crossing(p[..., i], v[..., i], side * size[..., i])
            within = jnp.abs(p + x[..., None] * v) <= size
            hits.append(only(x, within[..., (i + 1) % 3] & within[..., (i + 2) % 3]))
    return nearest(hits)


RAYS: dict[int, Ray] = {
    PLANE: plane,
    SPHERE: sphere,
    CAPSULE: capsule,
    ELLIPSOID: ellipsoid,
    CYLINDER: cylinder,
    BOX: box,
}


def into_geom(pos: jax.Array, mat: jax.Array, point: jax.Array, direction: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Rays (..., 3) of the world frame in the frames of geoms at pos (..., 3) with orientation mat (..., 9)."""
    axes = mat.reshape((*mat.shape[:-1], 3, 3))
    away = point - pos
    p, v = (jnp.sum(axes * x[..., :, None], axis=-2) for x in (away, direction))
    return p, v


def inside(kind: int, p: jax.Array, size: jax.Array) -> jax.Array:
    """Whether points p (..., 3), in the geoms' frames, are inside (...) geoms of one type with sizes (..., 3)."""
    across = dot(p[..., :2], p[..., :2])
    if kind == SPHERE:
        return dot(p, p) < size[..., 0] ** 2
    if kind == CAPSULE:
        beyond = jnp.maximum(jnp.abs(p[..., 2]) - size[..., 1], 0.0)
        return across + beyond**2 < size[..., 0] ** 2
    if kind == ELLIPSOID:
        return dot(p / size, p / size) < 1
    if kind == CYLINDER:
        return (jnp.abs(p[..., 2]) < size[..., 1]) & (across < size[..., 0] ** 2)
    return (jnp.abs(p) < size).all(axis=-1)
