"""Convex polygons: clipping, and four corners that span a large area; see `polygon.cuh`."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

_CLEARLY_LARGER = 1.001
_FEW = 192  # corners, among which a step that grows the area gains more than rounding


class _Search(NamedTuple):
    """The search for four corners.

    Attributes:
        quad: (4,) corners of now.
        most: () the largest area so far.
        best: (4,) the corners that span it.
        moving: () which corner moves next: 3, 2 or 1; 0 where two corners coincide and may part.
        met: () bool, whether there were steps that keep the area.
    """

    quad: jax.Array
    most: jax.Array
    best: jax.Array
    moving: jax.Array
    met: jax.Array


def half_planes(corner: jax.Array, sides: jax.Array, slack: jax.Array) -> jax.Array:
    """(C, 4) the sides of a polygon as half planes: outward normal x, y, distance, and the slack of the distance.

    They are in MuJoCo's order: clockwise, from the last corner on.

    Args: corner (C, 2 or more) anticlockwise, of which the first `sides` () are real; slack (), by how far beyond a
    side what lies along it is inside.
    """
    k = jnp.arange(len(corner), dtype=jnp.int32)
    here = corner[(sides - 1 - k) % sides]
    following = corner[(sides - 2 - k) % sides]
    normal = jnp.stack([here[:, 1] - following[:, 1], following[:, 0] - here[:, 0]], axis=1)
    dist, reach = jnp.sum(normal * here[:, :2], axis=1), jnp.abs(normal).sum(axis=1)
    return jnp.concatenate([normal, dist[:, None], (slack * reach)[:, None]], axis=1)


def clip(polygon: jax.Array, number: jax.Array, planes: jax.Array, sides: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A polygon clipped against half planes one after the other (Sutherland and Hodgman, 1974).

    Args: polygon (n, 3), whose first `number` () corners are real; planes (m, 4), of which the first `sides` () are
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
        crosses = ((d1 <= plane[3]) != (d2 <= plane[3])) & there
        stays = (d2 <= plane[3]) & there
        share = jnp.clip(d1 / jnp.where(crosses, d1 - d2, 1.0), 0.0, 1.0)
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


def without_copies(polygon: jax.Array, number: jax.Array, same: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A polygon without the corners that are copies of the one before, as long as there are more than four.

    Args: polygon (n, 3), whose first `number` () corners are real; same (), below which a distance is none.
    Returns: polygon (n, 3) and number ().
    """
    k = jnp.arange(len(polygon), dtype=jnp.int32)
    spot = jax.lax.stop_gradient(polygon[:, :2])
    last = (k + 1 == number) & (jnp.abs(spot - spot[0]).max(axis=1) <= same)

    def keep(carry: tuple[jax.Array, jax.Array], i: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        before, copies = carry
        copy = (jnp.abs(spot[i] - before).max() <= same) | last[i]
        drop = copy & (copies > 0) & (i > 0) & (i < number)
        return (jnp.where(drop, before, spot[i]), copies - drop.astype(jnp.int32)), ~drop

    _, kept = jax.lax.scan(keep, (spot[0], number - 4), k)
    there = kept & (k < number)
    return polygon[jnp.argsort(~there, stable=True)], there.sum().astype(jnp.int32)


def span(spot: jax.Array, number: jax.Array) -> jax.Array:
    """Four corners (4,) of a polygon that span a large area of it; the first four if there are no more.

    The first corner goes once round the polygon, and the others advance while the area grows: the third and the second
    after each step of the fourth. Where the first one has reached the second, a triangle may be the largest so far. In
    a free search the second corner then goes on to the third, which is the same triangle, and from where all can part;
    it also takes steps that keep the area. A free search counts if it finds more, and if the other one met such steps
    or ended with corners that coincide. Not differentiable.

    Args: spot (n, 2) corners, of which the first `number` () are real.
    """
    larger = (1.00001 if len(spot) <= _FEW else 1.0000004) if spot.dtype == jnp.float32 else 1.000000001
    modulus = jnp.maximum(number, 1)
    first, three = jnp.arange(4, dtype=jnp.int32), jnp.asarray(3, jnp.int32)

    def area(quad: jax.Array) -> jax.Array:
        a, b, c, d = spot[quad % modulus]
        return jnp.abs((c[0] - a[0]) * (d[1] - b[1]) - (c[1] - a[1]) * (d[0] - b[0]))

    def step(s: _Search, free: jax.Array, least: jax.Array) -> _Search:
        quad, moving = s.quad, s.moving
        # (1) the moving corner advances; the third one parts from the second, and pushes the fourth on
        parts = moving == 0
        pushed = parts & (quad[3] == quad[2] + 1)
        trial = quad + ((first == moving) & ~parts) + ((first == 2) & parts) + ((first == 3) & pushed)
        end = jnp.where(moving == 3, quad[0] + number, quad[jnp.minimum(moving + 1, 3)])
        reached = area(trial)
        grows = reached > s.most * larger
        keeps = ~grows & ~parts & (reached * larger >= s.most) & (trial[moving] < end)
        moves = grows | (keeps & free)
        # (2) where no corner moves: a triangle's second corner goes on to the third, or the first corner advances; a
        # corner that it has reached advances past it, and so does the next in turn
        settled = ~moves & (moving == 1)
        joins = free & (quad[0] == quad[1]) & (quad[2] == quad[1] + 1)
        joined = quad + ((first == 1) & joins)
        a, b, c, d = quad
        second = b <= a
        third = second & (c == b + 1)
        fourth = third & (d == c + 1)
        onward = quad + jnp.stack([jnp.ones((), bool), second, third, fourth])
        may_part = free & (moving == 3) & (b == c)
        advances = ~moves & (parts | ((moving == 3) & ~may_part))
        held = jnp.where(settled, joined, jnp.where(advances, onward, quad))
        after = jnp.where(settled | advances, 3, jnp.where(moving == 2, 1, 0))
        most = jnp.where(moves, jnp.maximum(s.most, reached), s.most)
        return _Search(
            quad=jnp.where(moves, trial, held).astype(jnp.int32),
            most=most,
            best=jnp.where(settled & (most > least), joined, s.best).astype(jnp.int32),
            moving=jnp.where(moves, jnp.where((moving == 3) | parts, 2, moving), after).astype(jnp.int32),
            met=s.met | keeps,
        )

    def search(free: bool, wanted: jax.Array, least: jax.Array, best: jax.Array) -> _Search:
        def go_on(s: _Search) -> jax.Array:
            return wanted & (s.quad[0] < number)

        begin = _Search(first, area(first), best, three, jnp.zeros((), bool))
        return jax.lax.while_loop(go_on, lambda s: step(s, jnp.asarray(free), least), begin)

    plain = search(False, number > 4, jnp.zeros((), spot.dtype), first)
    copies = (plain.best % modulus == jnp.roll(plain.best, 1) % modulus).any()
    least = jnp.where(copies, plain.most, plain.most * _CLEARLY_LARGER)
    best = search(True, (number > 4) & (plain.met | copies), least, plain.best).best
    return best % jnp.maximum(number, 4)
