"""From the direction that GJK or EPA found to the exact normal and witness points, for one pair; see `polish.cuh`.

The results are differentiable. The derivatives take the touching features as constant, and the last step of Newton's
method has derivatives, so that those of the normal follow the implicit function theorem.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from simengine.physics.collision.convex.crossing_jax import Kinks, edges_cross
from simengine.physics.collision.convex.gjk_jax import Simplex
from simengine.physics.collision.convex.shape_jax import (
    Pair,
    Shape,
    across,
    flat_code,
    flat_point,
    reach,
    round_point,
    support,
    support_local,
    unit,
)
from simengine.physics.math.vector_jax import cross, dot

STEPS = 8
_still = jax.lax.stop_gradient


class _Steps(NamedTuple):
    """Steps of Newton's method: the direction (3,) that they reached, the last one that was no worse than those before
    it (3,) and its h, and whether there are more."""

    here: jax.Array
    start: jax.Array
    least: jax.Array
    more: jax.Array


def _candidates(s: Shape, mat: jax.Array, dirs: jax.Array, used: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Edges (16, 3) of a body, and whether their kinks are active (16,): whether the sign changes among the used ones
    of the support directions dirs (4, 3), which point outward from this body."""
    codes = jax.vmap(lambda d: flat_code(s, d @ mat))(dirs)
    first = jnp.argmax(used)
    signs, number = codes
    differs = (signs != signs[first][None]) & (s.box > 0)[None]
    chord = (s.vert[number] - s.vert[number[first]][None]) @ mat.T
    square = dot(chord, chord)
    length = jnp.sqrt(jnp.where(square > 0, square, 1.0))
    axes = jnp.broadcast_to(mat.T[None], (4, 3, 3))
    edges = jnp.concatenate([(chord / length[:, None])[:, None], axes], axis=1)
    valid = jnp.concatenate([(number != number[first])[:, None], differs], axis=1) & used[:, None]
    return edges.reshape(16, 3), valid.reshape(16)


def _kinks(p: Pair, s: Simplex) -> Kinks:
    """(1) active kinks: the first edge, and the first that is not parallel to it."""
    edge1, valid1 = _candidates(p.a, p.mat_a, s.dir, s.used)
    edge2, valid2 = _candidates(p.b, p.mat_b, -s.dir, s.used)
    edge, valid = jnp.concatenate([edge1, edge2]), jnp.concatenate([valid1, valid2])
    first = jnp.argmax(valid)
    along = _still(edge @ edge[first])
    other = valid & (1 - along * along >= 1e-4)
    pick = jnp.stack([first, jnp.argmax(other)])
    number = jnp.where(valid.any(), 1 + other.any().astype(jnp.int32), 0)
    return Kinks(number, edge[pick], (pick >= 16).astype(jnp.int32))


def _curvature(s: Shape, mat: jax.Array, n: jax.Array, t: jax.Array) -> jax.Array:
    """t h'' t' (2, 2) of a body's ellipsoid part, for tangents t (2, 3)."""
    local, tangent = n @ mat, t @ mat
    q, height = round_point(s, local)
    scaled, along = tangent * s.round[None], tangent @ q
    ok = height > 1e-15
    return jnp.where(ok, (scaled @ scaled.T - jnp.outer(along, along)) / jnp.where(ok, height, 1.0), 0.0)


def _newton_step(p: Pair, kinks: Kinks, n: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """One step of Newton's method from n, whether there is one, and h(n). The Hessian is taken as constant."""
    single = kinks.number == 1
    t0 = jnp.where(single, unit(cross(n, kinks.edge[0])), _still(across(n)))
    t = jnp.stack([t0, cross(n, t0)])
    w = support(p, n)
    g, t = t @ w, _still(t)
    still = jax.tree.map(_still, (p, n, dot(w, n)))
    H = _curvature(still[0].a, still[0].mat_a, still[1], t) + _curvature(still[0].b, still[0].mat_b, still[1], t)
    H = H - still[2] * jnp.eye(2, dtype=n.dtype)
    det = H[0, 0] * H[1, 1] - H[0, 1] * H[0, 1]
    convex = H[0, 0] > 0
    ok = convex & (single | (det > 1e-6 * H[0, 0] * jnp.abs(H[1, 1])))
    det, first = jnp.where(ok & ~single, det, 1.0), jnp.where(ok, H[0, 0], 1.0)
    both = jnp.stack([H[0, 1] * g[1] - H[1, 1] * g[0], H[0, 1] * g[0] - H[0, 0] * g[1]]) / det
    step = jnp.where(single, jnp.stack([-g[0] / first, jnp.zeros_like(g[0])]), both)
    step = jnp.where(ok, jnp.clip(step, -0.3, 0.3), 0.0)
    return unit(n + step @ t), ok, still[2]


def _over_cap(p: Pair, axis: jax.Array, body: int) -> jax.Array:
    """Whether the other shape's support point against a cap's normal lies over the cap. Only tested for ellipsoids,
    which touch a cap with no other point."""
    s, other = (p.b, p.a) if body else (p.a, p.b)
    mat, mat_other = (p.mat_b, p.mat_a) if body else (p.mat_a, p.mat_b)
    sign = 1 if body else -1
    point = mat_other @ support_local(other, sign * axis @ mat_other) - sign * p.offset
    local = point @ mat
    return (other.round[2] <= 0) | (local[0] ** 2 + local[1] ** 2 <= s.round[0] ** 2)


def _face(s: Shape, mat: jax.Array, n: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Normal (3,) of the cylinder's cap, or of the side of a box, that is nearest to n or to -n; two edges (2, 3) that
    span it; and whether there is one near n."""
    local = _still(n @ mat)
    up = jnp.where(s.disc, 2, jnp.argmax(jnp.abs(local)))
    column = (up + jnp.arange(3, dtype=up.dtype)) % 3
    axis, *edges = mat.T[column]
    near = (s.disc | (s.box[0] > 0)) & (jnp.abs(local[up]) >= 0.998)
    return jnp.where(local[up] > 0, axis, -axis), jnp.stack(edges), near


def _choices(kinks: Kinks) -> tuple[Kinks, jax.Array]:
    """The choices of kinks (4, ...): all, the second, the first, none; and which of these choices exist (4,)."""
    first, second = kinks.edge
    edges = jnp.stack([kinks.edge, jnp.stack([second, first]), kinks.edge, kinks.edge])
    bodies = jnp.stack([kinks.body, kinks.body[::-1], kinks.body, kinks.body])
    number = jnp.asarray([2, 1, 1, 0], jnp.int32)
    there = kinks.number >= jnp.asarray([2, 2, 1, 0], jnp.int32)
    return Kinks(number, edges, bodies), there


def _best_direction(p: Pair, kinks: Kinks, n: jax.Array, slack: jax.Array) -> jax.Array:
    """The best direction (3,) for a choice of active kinks, found from n. A step to a larger h is cut to a quarter."""

    def step(_: int, carry: _Steps) -> _Steps:
        following, more, h = _newton_step(p, kinks, carry.here)
        worse = carry.more & (h > carry.least + slack)
        back = unit(carry.start + 0.25 * (carry.here - carry.start))
        on = carry.more & more
        return _Steps(
            jnp.where(worse, back, jnp.where(on, following, carry.here)),
            jnp.where(worse, carry.start, carry.here),
            jnp.where(worse, carry.least, h),
            worse | on,
        )

    start = _across_edge(kinks, n)
    steps = _Steps(start, start, jnp.full((), jnp.inf, n.dtype), jnp.ones((), bool))
    steps = jax.lax.fori_loop(0, STEPS, step, steps)
    return jnp.where(kinks.number == 2, _corner(kinks, n), steps.here)


def _across_edge(kinks: Kinks, n: jax.Array) -> jax.Array:
    edge = kinks.edge[0]
    return unit(jnp.where(kinks.number == 1, n - dot(n, edge) * edge, n))


def _corner(kinks: Kinks, n: jax.Array) -> jax.Array:
    corner = unit(cross(kinks.edge[0], kinks.edge[1]))
    return jnp.where(dot(_still(corner), n) < 0, -corner, corner)


def polish(p: Pair, s: Simplex, n: jax.Array) -> tuple[jax.Array, Kinks]:
    """The normal (3,), improved from n, and the active kinks."""
    still = jax.tree.map(_still, p)
    slack = 8 * jnp.finfo(n.dtype).eps * still.scale
    # (1) kinks that may be active
    kinks = _kinks(p, s)
    # (2) all of them, or only some if that is better, because a kink that the support points show may only be near
    choices, there = _choices(kinks)
    trials = jax.vmap(_best_direction, (None, 0, None, None))(still, jax.tree.map(_still, choices), n, slack)
    heights = jax.vmap(reach, (None, 0))(still, trials)
    h, pick = reach(still, n), jnp.full((), -1, jnp.int32)
    for choice in range(4):
        bound = h + jnp.where(choices.number[choice] == kinks.number, slack, -slack)
        better = there[choice] & (heights[choice] <= bound)
        h, pick = jnp.where(better, heights[choice], h), jnp.where(better, choice, pick)
    chosen = jax.tree.map(lambda x: x[jnp.maximum(pick, 0)], choices)
    start = _still(jnp.where(pick >= 0, trials[pick], n))
    last, *_ = _newton_step(p, chosen, _across_edge(chosen, start))
    last = jnp.where(chosen.number == 2, _corner(chosen, start), last)
    ok = (pick >= 0) & (reach(still, _still(last)) <= h + slack)
    n = jnp.where(ok, last, start)
    kinks = jax.tree.map(lambda a, b: jnp.where(pick >= 0, a, b), chosen, kinks)
    # (3) caps, and sides of boxes where these are better
    for body, (shape, mat) in enumerate(((p.a, p.mat_a), (p.b, p.mat_b))):
        face, edges, near = _face(shape, mat, n)
        other = reach(still, _still(face))
        bound = h + jnp.where(shape.disc, 0.25, -0.25) * slack
        ok = near & (other <= bound) & (_over_cap(still, _still(face), body) | ~shape.disc)
        h, n = jnp.where(ok, other, h), jnp.where(ok, face, n)
        plane = Kinks(jnp.full_like(kinks.number, 2), edges, jnp.full_like(kinks.body, body))
        kinks = jax.tree.map(lambda a, b, ok=ok: jnp.where(ok, a, b), plane, kinks)
    return n, kinks


def lies_along(p: Pair, kinks: Kinks, body: int) -> jax.Array:
    """Whether the contact is a line along the axis of a body: on the side of a cylinder."""
    along = jnp.abs(kinks.edge @ (p.mat_b if body else p.mat_a)[:, 2]) > 0.5
    on_side = (along & (kinks.body == body) & (jnp.arange(2, dtype=jnp.int32) < kinks.number)).any()
    return (p.b if body else p.a).disc & on_side


def touching(like: jax.Array) -> float:
    """Relative to the scale: a vertex less than this below the farthest one counts as touching too."""
    return 1e-5 if like.dtype == jnp.float32 else 1e-6


def _witness(
    s: Shape, mat: jax.Array, simplex: Simplex, dirs: jax.Array, n: jax.Array, scale: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """A point (3,) of a core near the contact, in world axes from the shape's centre, and whether it is unique.

    It is unique if the flat part has a single support point and the smooth part no cap. A support point that does not
    touch is replaced by one that does, because the simplex may contain another edge, parallel to the one that touches.
    """

    def parts(direction: jax.Array) -> tuple[jax.Array, jax.Array]:
        local = _still(direction @ mat)
        return flat_point(s, flat_code(s, local)), round_point(s, local)[0]

    flat, curved = jax.vmap(parts)(dirs)
    along = _still(n @ mat)
    low = flat_point(s, flat_code(s, along))
    misses = _still((low[None] - flat) @ along > touching(along) * scale)
    touch = jnp.where(misses[:, None], low[None], flat)
    flat = jnp.where(s.disc, touch, flat)
    same = (flat == flat[jnp.argmax(simplex.used)][None]).all(axis=1) | ~simplex.used
    weight = jnp.where(simplex.used, simplex.weight, 0.0)
    flat, curved = weight @ touch, weight @ curved
    local = n @ mat
    aside = _still(local[:2])  # of a normal that is the axis, but for rounding, the cap lies flat
    on_cap = s.disc & (dot(aside, aside) < (32 * jnp.finfo(n.dtype).eps) ** 2)
    point = mat @ (flat + jnp.where(on_cap, curved, round_point(s, jnp.where(on_cap, 1.0, local))[0]))
    return point, same.all() & ~(s.disc & (1 - jnp.abs(_still(local[2])) < 1e-4))


def _is_strict(s: Shape) -> jax.Array:
    """Whether a core is strictly convex, with a unique support point in every direction: a point or an ellipsoid."""
    box, curved = _still(s.box), _still(s.round) > 0
    return (box == 0).all() & (_still(s.vert) == 0).all() & (curved == curved[0]).all()


def witnesses(p: Pair, s: Simplex, n: jax.Array, h: jax.Array, kinks: Kinks) -> tuple[jax.Array, jax.Array]:
    """Witness points (3,), (3,) of both cores, from a's centre, whose difference is h n. The points move along the
    edges of the active kinks until no difference perpendicular to n is left."""
    p1, certain1 = _witness(p.a, p.mat_a, s, s.dir, n, p.scale)
    p2, certain2 = _witness(p.b, p.mat_b, s, -s.dir, -n, p.scale)
    p2 = p2 + p.offset
    rest = p1 - p2
    rest = rest - dot(rest, n) * n
    two = kinks.number == 2
    r0, r1 = dot(rest, kinks.edge[0]), jnp.where(two, dot(rest, kinks.edge[1]), 0.0)
    c = jnp.where(two, dot(kinks.edge[0], kinks.edge[1]), 0.0)
    det = 1 - c * c
    share = jnp.stack([r0 - c * r1, r1 - c * r0]) / jnp.where(det > 0, det, 1.0)
    share = jnp.where(jnp.arange(2, dtype=jnp.int32) < kinks.number, share, 0.0)
    first = kinks.body == 0
    move1, move2 = jnp.where(first, share, 0.0) @ kinks.edge, jnp.where(first, 0.0, share) @ kinks.edge
    # a far crossing of almost parallel edges of both cores is not well defined: then each point moves by half, unless
    # both edges hold it
    most = 4.0 * jnp.linalg.norm(_still(rest)) + 0.01 * _still(p.scale)
    half = two & (kinks.body[0] != kinks.body[1]) & (jnp.abs(_still(share)).sum() > most)
    half = half & ~edges_cross(p, n, kinks, share, p1, p2)
    end1, end2 = p1 - jnp.where(half, 0.5 * rest, move1), p2 + jnp.where(half, 0.5 * rest, move2)
    # the support point of a strictly convex core is unique and determines the other's
    strict1 = _is_strict(p.a) | (certain1 & ~certain2)
    strict2 = _is_strict(p.b) | (certain2 & ~certain1)
    return (
        jnp.where(strict2, p2 + h * n, jnp.where(strict1, p1, end1)),
        jnp.where(strict2, p2, jnp.where(strict1, p1 - h * n, end2)),
    )
