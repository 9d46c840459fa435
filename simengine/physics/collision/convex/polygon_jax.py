"""Convex polygons: clipping, and four corners that span a large area; see `manifold.cuh`."""

from __future__ import annotations

import jax
import jax.numpy as jnp

_FEW = 192  # corners, among which a step that grows the area gains more than rounding
_Search = tuple[jax.Array, jax.Array, jax.Array, jax.Array]
"""Four corners (4,), the largest area so far, the best corners (4,), and which corner moves."""


def half_planes(corner: jax.Array, sides: jax.Array) -> jax.Array:
    """(C, 3) the sides of a polygon as half planes: outward normal x, y, and distance.

    They are in MuJoCo's order: clockwise, from the last corner on.

    Args: corner (C, 2 or more) anticlockwise, of which the first `sides` () are real.
    """
    k = jnp.arange(len(corner), dtype=jnp.int32)
    here = corner[(sides - 1 - k) % sides]
    following = corner[(sides - 2 - k) % sides]
    normal = jnp.stack([here[:, 1] - following[:, 1], following[:, 0] - here[:, 0]], axis=1)
    return jnp.concatenate([normal, jnp.sum(normal * here[:, :2], axis=1)[:, None]], axis=1)


def clip(polygon: jax.Array, number: jax.Array, planes: jax.Array, sides: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A polygon clipped against half planes one after the other (Sutherland and Hodgman, 1974).

    Args: polygon (n, 3), whose first `number` () corners are real; planes (m, 3), of which the first `sides` () are
    real.
    Returns: polygon (n, 3) and number (); the corners begin with those of the edge from the first to the second.
    """
    size = len(polygon)
    k = jnp.arange(size, dtype=jnp.int32)

    def step(
        carry: tuple[jax.Array, jax.Array], side: tuple[jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array], None]:
        (polygon, number), (plane, counts) = carry, side
        beyond = polygon[:, :2] @ plane[:2] - plane[2]
        after = jnp.where(k + 1 < number, k + 1, 0)
        d1, d2, to = beyond, beyond[after], polygon[after]
        there = k < number
        crosses = ((d1 <= 0) != (d2 <= 0)) & there
        stays = (d2 <= 0) & there
        share = d1 / jnp.where(crosses, d1 - d2, 1.0)
        made = polygon + share[:, None] * (to - polygon)
        count = crosses.astype(jnp.int32) + stays.astype(jnp.int32)
        total = jnp.cumsum(count, dtype=jnp.int32)
        place = total - count
        out = jnp.zeros_like(polygon)
        out = out.at[jnp.where(crosses, place, size)].set(made, mode="drop")
        out = out.at[jnp.where(stays, place + crosses.astype(jnp.int32), size)].set(to, mode="drop")
        return (jnp.where(counts, out, polygon), jnp.where(counts, jnp.minimum(total[-1], size), number)), None

    counts = jnp.arange(len(planes), dtype=jnp.int32) < sides
    (polygon, number), _ = jax.lax.scan(step, (polygon, number), (planes, counts))
    return polygon, number


def span(spot: jax.Array, number: jax.Array) -> jax.Array:
    """Four corners (4,) of a polygon that span a large area of it; the first four if there are no more.

    The first corner goes once round the polygon, and the others advance while the area grows: the third and the second
    after each step of the fourth. Not differentiable.

    Args: spot (n, 2) corners, of which the first `number` () are real.
    """
    larger = (1.00001 if len(spot) <= _FEW else 1.0000004) if spot.dtype == jnp.float32 else 1.000000001
    modulus = jnp.maximum(number, 1)

    def area(quad: jax.Array) -> jax.Array:
        a, b, c, d = spot[quad % modulus]
        return jnp.abs((c[0] - a[0]) * (d[1] - b[1]) - (c[1] - a[1]) * (d[0] - b[0]))

    def body(carry: _Search) -> _Search:
        quad, most, best, moving = carry
        trial = quad + (jnp.arange(4, dtype=jnp.int32) == moving).astype(jnp.int32)
        reached = area(trial)
        grows = reached > most * larger
        most = jnp.where(grows, reached, most)
        # the first corner advances; a corner that it has reached advances past it, and so does the next in turn
        a, b, c, d = quad
        second = b == a
        third = second & (c == b + 1)
        fourth = third & (d == c + 1)
        onward = quad + jnp.stack([jnp.ones((), bool), second, third, fourth]).astype(jnp.int32)
        settled = ~grows & (moving == 1)
        best = jnp.where(settled, quad, best)
        next_quad = jnp.where(grows, trial, jnp.where(moving == 3, onward, quad))
        following = jnp.where(grows, jnp.where(moving == 3, 2, moving), jnp.where(moving == 2, 1, 3))
        return next_quad, most, best, following

    first = jnp.arange(4, dtype=jnp.int32)
    three = jnp.asarray(3, jnp.int32)
    carry = (first, area(first), first, three)

    def go_on(carry: _Search) -> jax.Array:
        return (number > 4) & (carry[0][0] < number)

    _, _, best, _ = jax.lax.while_loop(go_on, body, carry)
    return best % jnp.maximum(number, 4)
