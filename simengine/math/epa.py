"""Penetration of two convex cores by EPA; see `simengine/kernels/epa.cuh` for the method. One pair; nothing here is for
differentiation."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from simengine.math.convex_shape import Pair, across, reach, support, unit
from simengine.math.gjk import Simplex, triangle_weights
from simengine.math.vector import cross, dot

VERTICES, FACES, RIM = 48, 96, 32
_FLOOD = 8  # steps in which a hole is found
_ROOM = FACES  # a place beyond the faces, where what must not be written goes


class Polytope(NamedTuple):
    """Attributes:
    w, dir: (VERTICES, 3) points [m] and the directions whose support they are.
    normal: (FACES, 3); dist: (FACES,) signed distance of the plane [m]; doubt: (FACES,) how thin the face is.
    corner: (FACES, 3) vertices, anticlockwise from outside; alive: (FACES,) bool.
    beyond: (VERTICES, VERTICES) face that has the directed edge.
    """

    w: jax.Array
    dir: jax.Array
    normal: jax.Array
    dist: jax.Array
    doubt: jax.Array
    corner: jax.Array
    alive: jax.Array
    beyond: jax.Array


def _put_faces(p: Polytope, place: jax.Array, corner: jax.Array, scale: jax.Array) -> Polytope:
    """Faces with corners (n, 3) at places (n,); those at _ROOM are left out."""
    a, b, c = (p.w[corner[:, k]] for k in range(3))
    ab, ac = b - a, c - a
    n = cross(ab, ac)
    square, eps = dot(n, n), jnp.finfo(n.dtype).eps
    wide = (square > 64 * eps * eps * dot(ab, ab) * dot(ac, ac)) & (square > 1e-30)
    inverse = jnp.where(wide, 1 / jnp.sqrt(jnp.where(wide, square, 1.0)), 0.0)
    normal = n * inverse[:, None]
    longest = jnp.sqrt(jnp.maximum(dot(ab, ab), dot(ac, ac)))
    row = jnp.where(place < FACES, corner[:, 0], VERTICES)
    beyond = p.beyond
    for k in range(3):
        start = jnp.where(row < VERTICES, corner[:, k], VERTICES)
        beyond = beyond.at[start, corner[:, (k + 1) % 3]].set(place, mode="drop")
    return p._replace(
        normal=p.normal.at[place].set(normal, mode="drop"),
        dist=p.dist.at[place].set(jnp.where(wide, dot(normal, a), jnp.inf), mode="drop"),
        doubt=p.doubt.at[place].set(1 + scale * longest * inverse, mode="drop"),
        corner=p.corner.at[place].set(corner, mode="drop"),
        alive=p.alive.at[place].set(True, mode="drop"),
        beyond=beyond,
    )


def _first(pair: Pair) -> Polytope:
    """(1) a tetrahedron of support points."""
    start = unit(pair.offset)
    dirs = [start, -start]
    w = [support(pair, d) for d in dirs]

    def farther(direction: jax.Array) -> None:
        base = dot(direction, w[0])
        up, down = reach(pair, direction) - base, reach(pair, -direction) + base
        dirs.append(jnp.where(up >= down, direction, -direction))
        w.append(support(pair, dirs[-1]))

    farther(across(w[1] - w[0]))
    top = unit(cross(w[1] - w[0], w[2] - w[0]))
    farther(top)
    above = dot(w[3] - w[0], top) > 0
    b, c = jnp.where(above, 2, 1), jnp.where(above, 1, 2)
    o, d = jnp.zeros_like(b), jnp.full_like(b, 3)
    corner = jnp.stack([jnp.stack(f) for f in ((o, b, c), (o, d, b), (b, d, c), (c, d, o))])
    dtype = pair.offset.dtype
    blank = Polytope(
        w=jnp.zeros((VERTICES, 3), dtype).at[:4].set(jnp.stack(w)),
        dir=jnp.zeros((VERTICES, 3), dtype).at[:4].set(jnp.stack(dirs)),
        normal=jnp.zeros((FACES, 3), dtype),
        dist=jnp.full(FACES, jnp.inf, dtype),
        doubt=jnp.ones(FACES, dtype),
        corner=jnp.zeros((FACES, 3), b.dtype),
        alive=jnp.zeros(FACES, bool),
        beyond=jnp.zeros((VERTICES, VERTICES), b.dtype),
    )
    return _put_faces(blank, jnp.arange(4), corner, pair.scale)


def _expand(
    p: Polytope, v: jax.Array, face: jax.Array, slack: jax.Array, scale: jax.Array
) -> tuple[Polytope, jax.Array]:
    """(2) takes away the faces around `face` that vertex v sees, and joins the rim of the hole to it; whether it fits."""
    seen = p.alive & (p.normal @ p.w[v] - p.dist > slack * p.doubt)
    following = jnp.roll(p.corner, -1, axis=1)
    neighbour = p.beyond[following, p.corner]
    hole = jnp.arange(FACES) == face

    def flood(_: int, hole: jax.Array) -> jax.Array:
        return hole | (seen & hole[neighbour].any(axis=1))

    hole = jax.lax.fori_loop(0, _FLOOD, flood, hole)
    rim = hole[:, None] & ~hole[neighbour]
    edges = jnp.flatnonzero(rim, size=RIM, fill_value=-1)
    free = jnp.flatnonzero(~p.alive | hole, size=RIM, fill_value=_ROOM)
    fits = (rim.sum() <= RIM) & (rim.sum() <= (~p.alive | hole).sum())
    place = jnp.where((edges >= 0) & fits, free, _ROOM)
    corner = jnp.stack([p.corner.ravel()[edges], following.ravel()[edges], jnp.full_like(edges, v)], axis=1)
    return _put_faces(p._replace(alive=p.alive & ~hole), place, corner, scale), fits


def epa(pair: Pair, wanted: jax.Array) -> tuple[Simplex, jax.Array]:
    """The face around the direction of least penetration, and that direction (3,); nothing useful unless `wanted` ()."""
    dtype = pair.offset.dtype
    tolerance, visible = (1e-6, 3e-7) if dtype == jnp.float32 else (1e-8, 1e-12)
    p = _first(pair)

    def body(carry: tuple) -> tuple:
        p, count, depth, corner, normal, _ = carry
        face = jnp.argmin(jnp.where(p.alive, p.dist, jnp.inf))
        least = p.dist[face]
        worth = least < depth - tolerance * pair.scale
        direction = p.normal[face]
        w = support(pair, direction)
        h = dot(w, direction)
        better = worth & (h < depth)
        p = p._replace(w=p.w.at[count].set(w), dir=p.dir.at[count].set(direction))
        depth, corner = jnp.where(better, h, depth), jnp.where(better, p.corner[face], corner)
        normal = jnp.where(better, direction, normal)
        p, fits = _expand(p, count, face, visible * pair.scale, pair.scale)
        return p, count + 1, depth, corner, normal, worth & fits & (h - least > tolerance * pair.scale)

    def go_on(carry: tuple) -> jax.Array:
        return carry[5] & (carry[1] < VERTICES)

    big = jnp.full((), jnp.inf, dtype)
    carry = (p, jnp.asarray(4, p.corner.dtype), big, p.corner[0], p.normal[0], wanted)
    p, _, _, corner, normal, _ = jax.lax.while_loop(go_on, body, carry)
    # (3) weights of the corners of the face at its plane's point nearest to the origin
    four = jnp.append(corner, corner[2])
    weight, _, ok = triangle_weights(p.w[corner])
    weight = jnp.append(jnp.where(ok, weight, 0.0), jnp.zeros((), dtype))
    return Simplex(p.w[four], p.dir[four], weight, jnp.arange(4) < 3), normal
