"""Tendons that wrap around spheres and cylinders, in JAX, for many paths at once.

The problem is reduced to a plane: the shortest path from one point to another around a circle, or through it. Around a
cylinder the path is a helix, which rises evenly along the axis. Source: MuJoCo documentation, "XML Reference",
"spatial/geom".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math.vector_jax import MINVAL, const, cross, dot, norm, normalize, safe_sqrt


class Wrapped(NamedTuple):
    """Paths past n geoms.

    Attributes:

        wraps (n,) bool: whether the path meets the geom; the other attributes are valid only where it does.
        length (n,): length on the geom [m].
        enter, leave (n, 3): where the path meets the geom and leaves it [m].
    """

    wraps: jax.Array
    length: jax.Array
    enter: jax.Array
    leave: jax.Array


def wrap(
    cylinder: np.ndarray,
    centre: jax.Array,
    mat: jax.Array,
    radius: Any,
    x0: jax.Array,
    x1: jax.Array,
    has_side: np.ndarray,
    side: jax.Array,
) -> Wrapped:
    """Paths from x0 (n, 3) to x1 (n, 3) past geoms.

    Args: cylinder (n,) bool, else a sphere; centre (n, 3), mat (n, 9), radius (n,) of the geoms; has_side (n,) bool:
        whether there is a sidesite side (n, 3); the path stays on its side, or goes through the geom if it lies inside.
    """
    p0, p1, s = x0 - centre, x1 - centre, side - centre
    r = const(radius, centre)
    axis0, axis1 = _axes(cylinder, mat, p0, p1)

    def flat(p: jax.Array) -> jax.Array:
        return jnp.stack([dot(p, axis0), dot(p, axis1)], axis=-1)

    d0, d1, flank = flat(p0), flat(p1), flat(s)
    wraps, arc, t0, t1 = _around(d0, d1, flank, has_side, r)
    through = has_side & (dot(s, s) < r * r)
    if has_side.any():
        meets, point = _through(d0, d1, r)
        wraps, arc = jnp.where(through, meets, wraps), jnp.where(through, 0.0, arc)
        t0, t1 = (jnp.where(through[:, None], point, t) for t in (t0, t1))

    def lifted(t: jax.Array) -> jax.Array:
        return centre + t[:, :1] * axis0 + t[:, 1:] * axis1

    enter, leave = lifted(t0), lifted(t1)
    if cylinder.any():
        up = mat[:, 2::3]
        before, after = norm(t0 - d0), norm(d1 - t1)
        total = before + arc + after
        start = dot(p0, up)
        slope = (dot(p1, up) - start) / jnp.where(total > 0, total, 1.0) * const(cylinder, r)
        height = jnp.where(cylinder, start + slope * before, 0.0)
        climb = slope * arc
        enter, leave = enter + height[:, None] * up, leave + (height + climb)[:, None] * up
        arc = jnp.where(cylinder, safe_sqrt(arc * arc + climb * climb), arc)
    return Wrapped(wraps, arc, enter, leave)


def _axes(cylinder: np.ndarray, mat: jax.Array, p0: jax.Array, p1: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Axes (n, 3) of the planes of wrapping: through both points for a sphere, normal to the axis for a cylinder."""
    x_axis = jnp.broadcast_to(jnp.asarray([1.0, 0.0, 0.0], p0.dtype), p0.shape)
    along, _ = normalize(p0, x_axis)
    normal = cross(p0, p1)
    other = jnp.where(jnp.abs(along[:, :1]) < 0.6, x_axis, jnp.roll(x_axis, 1, axis=1))
    normal = jnp.where((norm(normal) < MINVAL)[:, None], cross(p0, other), normal)
    normal, _ = normalize(normal, x_axis)
    own = cylinder[:, None]
    return jnp.where(own, mat[:, ::3], along), jnp.where(own, mat[:, 1::3], cross(normal, along))


def _cross2(a: jax.Array, b: jax.Array) -> jax.Array:
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]


def _segment(d0: jax.Array, d1: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Squared distance (n,) of segments from the origin, and whether the nearest point is between the ends."""
    along = d1 - d0
    square = dot(along, along)
    ok = square >= MINVAL
    share = jnp.where(ok, -dot(along, d0) / jnp.where(ok, square, 1.0), 0.0)
    nearest = d0 + jnp.clip(share, 0.0, 1.0)[:, None] * along
    return dot(nearest, nearest), (share > 0) & (share < 1)


def _between(matters: jax.Array, d0: jax.Array, d1: jax.Array, across: jax.Array) -> jax.Array:
    """Angles (n,) between d0 and d1, whose cross product is `across`; 0 where not `matters`, since ends may be zero."""
    return jnp.arctan2(jnp.where(matters, jnp.abs(across), 0.0), jnp.where(matters, dot(d0, d1), 1.0))


def _tangent(d: jax.Array, square: jax.Array, r: jax.Array, turn: jax.Array) -> jax.Array:
    """Points (n, 2) where tangents from d touch the circle; turn = +1 is on the left as seen from the centre."""
    aside = turn * r * safe_sqrt(square - r * r)
    left = jnp.stack([-d[:, 1], d[:, 0]], axis=-1)
    return ((r * r)[:, None] * d + aside[:, None] * left) / square[:, None]


def _around(
    d0: jax.Array, d1: jax.Array, flank: jax.Array, has_side: np.ndarray, r: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Paths around the circle: whether they touch it (n,), their length on it (n,), and the tangent points (n, 2).

    A path takes the longer way round if its sidesite lies opposite to both ends.
    """
    square0, square1, across = dot(d0, d0), dot(d1, d1), _cross2(d0, d1)
    outside = (square0 >= r * r) & (square1 >= r * r)
    far = has_side & (across * _cross2(d0, flank) < 0) & (across * _cross2(flank, d1) < 0)
    wraps = outside & (far | (_segment(d0, d1)[0] <= r * r))
    turn = jnp.where((across > 0) == far, -1.0, 1.0).astype(r.dtype)
    safe0, safe1 = (jnp.where(outside, square, 2.0 * r * r) for square in (square0, square1))
    between = _between(outside, d0, d1, across)
    tangents = sum(jnp.arctan2(safe_sqrt(square - r * r), r) for square in (safe0, safe1))
    angle = jnp.where(far, 2.0 * np.pi - between, between) - tangents
    return wraps, r * jnp.maximum(angle, 0.0), _tangent(d0, safe0, r, turn), _tangent(d1, safe1, r, -turn)


def _through(d0: jax.Array, d1: jax.Array, r: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Paths through the circle: whether they touch it (n,), and the points (n, 2) of it that make them shortest.

    The angle of incidence phi solves asin(A sin phi) + asin(B sin phi) - 2 phi + G = 0, where A and B are r divided by
    the distances of the ends, and G is the angle between the ends. Newton's method starts from phi = pi/2 and has
    MuJoCo's termination.
    """
    length0, length1, across = norm(d0), norm(d1), _cross2(d0, d1)
    distance2, inside = _segment(d0, d1)
    wraps = (length0 > r) & (length1 > r) & ~((distance2 <= r * r) & inside)
    a, b = (r / jnp.where(wraps, length, 2.0 * r) for length in (length0, length1))
    g = _between(wraps, d0, d1, across)

    def value(phi: jax.Array) -> jax.Array:
        s = jnp.sin(phi)
        return jnp.arcsin(a * s) + jnp.arcsin(b * s) - 2.0 * phi + g

    def slope(phi: jax.Array) -> jax.Array:
        s, c = jnp.sin(phi), jnp.cos(phi)
        first, second = (k * c / jnp.sqrt(1.0 - k * k * s * s) for k in (a, b))
        return first + second - 2.0

    def refine(_: int, phi: jax.Array) -> jax.Array:
        residual = value(phi)
        return jnp.where(jnp.abs(residual) < 1e-6, phi, phi - residual / slope(phi))

    start = jnp.full_like(r, 0.5 * np.pi)
    phi = jax.lax.stop_gradient(jax.lax.fori_loop(0, 20, refine, start))
    # one more Newton step leaves the number unchanged and gives it the derivative of the root
    residual = value(phi)
    phi = phi - (residual - jax.lax.stop_gradient(residual)) / jax.lax.stop_gradient(slope(phi))
    # rotate from the end that has the other end on its left
    first = across > 0
    turn = phi - jnp.arcsin(jnp.where(first, a, b) * jnp.sin(phi))
    begin = jnp.where(first[:, None], d0, d1) * (r / jnp.maximum(jnp.where(first, length0, length1), MINVAL))[:, None]
    s, c = jnp.sin(turn), jnp.cos(turn)
    return wraps, jnp.stack([begin[:, 0] * c - begin[:, 1] * s, begin[:, 0] * s + begin[:, 1] * c], axis=-1)
