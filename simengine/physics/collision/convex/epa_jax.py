"""Penetration of two convex cores by EPA, for one pair; see `epa.cuh` for the method. Not differentiable."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from simengine.physics.collision.convex.gjk_jax import Simplex, triangle_weights
from simengine.physics.collision.convex.shape_jax import Pair, across, reach, support, unit
from simengine.physics.math.vector_jax import cross, dot

VERTICES, FACES, RIM = 48, 96, 40
_FLOOD = 12  # iterations that find a hole
_ROOM = FACES  # index after the last face, the target of writes that must have no effect


class Polytope(NamedTuple):
    """A growing polytope.

    Attributes:
        vertex: (VERTICES, 6) support points [m], and the directions that they belong to.
        plane: (FACES, 5) normal, signed distance [m], and a measure of how thin the face is.
        corner: (FACES, 4) vertices, anticlockwise from outside, and 1 for a face that exists.
        beyond: (VERTICES, VERTICES) the face that has the directed edge.
    """

    vertex: jax.Array
    plane: jax.Array
    corner: jax.Array
    beyond: jax.Array

    @property
    def dist(self) -> jax.Array:
        """(FACES,) signed distances [m], infinite where there is no face."""
        return jnp.where(self.corner[:, 3] > 0, self.plane[:, 3], jnp.inf)


def _put_faces(p: Polytope, place: jax.Array, corner: jax.Array, scale: jax.Array) -> Polytope:
    """Write faces with corners (n, 3) at indices `place` (n,); those at index _ROOM are dropped."""
    a, b, c = (p.vertex[corner[:, k], :3] for k in range(3))
    ab, ac = b - a, c - a
    n = cross(ab, ac)
    square, eps = dot(n, n), jnp.finfo(n.dtype).eps
    wide = (square > 64 * eps * eps * dot(ab, ab) * dot(ac, ac)) & (square > 1e-30)
    inverse = jnp.where(wide, 1 / jnp.sqrt(jnp.where(wide, square, 1.0)), 0.0)
    normal = n * inverse[:, None]
    longest = jnp.sqrt(jnp.maximum(dot(ab, ab), dot(ac, ac)))
    dist = jnp.where(wide, dot(normal, a), jnp.inf)
    plane = jnp.concatenate([normal, dist[:, None], (1 + scale * longest * inverse)[:, None]], axis=1)
    start = jnp.where((place < FACES)[:, None], corner, VERTICES)
    return p._replace(
        plane=p.plane.at[place].set(plane, mode="drop"),
        corner=p.corner.at[place].set(jnp.pad(corner, ((0, 0), (0, 1)), constant_values=1), mode="drop"),
        beyond=p.beyond.at[start, jnp.roll(corner, -1, axis=1)].set(
            jnp.broadcast_to(place[:, None], corner.shape), mode="drop"
        ),
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
    b, c = 1 + above.astype(jnp.int32), 2 - above.astype(jnp.int32)
    o, d = jnp.zeros_like(b), jnp.full_like(b, 3)
    corner = jnp.stack([jnp.stack(f) for f in ((o, b, c), (o, d, b), (b, d, c), (c, d, o))])
    dtype = pair.offset.dtype
    vertex = jnp.concatenate([jnp.stack(w), jnp.stack(dirs)], axis=1)
    blank = Polytope(
        vertex=jnp.zeros((VERTICES, 6), dtype).at[:4].set(vertex),
        plane=jnp.zeros((FACES, 5), dtype),
        corner=jnp.zeros((FACES, 4), jnp.int32),
        beyond=jnp.zeros((VERTICES, VERTICES), jnp.int32),
    )
    return _put_faces(blank, jnp.arange(4, dtype=jnp.int32), corner, pair.scale)


def _first_true(mask: jax.Array, count: int) -> jax.Array:
    """Indices of the first `count` true entries, followed by those of false ones."""
    return jnp.argsort(~mask, stable=True)[:count].astype(jnp.int32)


def _expand(
    p: Polytope, v: jax.Array, face: jax.Array, slack: jax.Array, scale: jax.Array
) -> tuple[Polytope, jax.Array]:
    """(2) remove the faces around `face` visible from v, and connect the rim of the hole to v; whether that fits."""
    alive, corner = p.corner[:, 3] > 0, p.corner[:, :3]
    seen = alive & (dot(p.plane[:, :3], p.vertex[v, :3][None]) - p.plane[:, 3] > slack * p.plane[:, 4])
    following = jnp.roll(corner, -1, axis=1)
    neighbour = p.beyond[following, corner]
    hole = jnp.arange(FACES, dtype=jnp.int32) == face

    def flood(_: int, hole: jax.Array) -> jax.Array:
        return hole | (seen & hole[neighbour].any(axis=1))

    hole = jax.lax.fori_loop(0, _FLOOD, flood, hole)
    rim = (hole[:, None] & ~hole[neighbour]).ravel()
    free = ~alive | hole
    edges, number = _first_true(rim, RIM), rim.sum()
    fits = (number <= RIM) & (number <= free.sum())
    place = jnp.where((jnp.arange(RIM) < number) & fits, _first_true(free, RIM), _ROOM)
    joined = jnp.stack([corner.ravel()[edges], following.ravel()[edges], jnp.full_like(edges, v)], axis=1)
    left = p._replace(corner=p.corner.at[:, 3].multiply((~hole).astype(jnp.int32)))
    return _put_faces(left, place, joined, scale), fits


def _face_around(p: Polytope, most: jax.Array, normal: jax.Array, corner: jax.Array) -> jax.Array:
    """Corners (4,) of the triangle that contains the plane's point nearest to the origin.

    If the given triangle does not contain it, that is the best among the faces with this normal (3,) whose distance is
    at most `most` ().
    """
    corners = jnp.concatenate([corner[None], p.corner])
    weight, _, wide = triangle_weights(p.vertex[corners[:, :3], :3])
    there = wide.at[1:].set(wide[1:] & (p.dist <= most) & (p.plane[:, :3] @ normal >= 0.9999))
    least = jnp.where(there, weight.min(axis=1), -jnp.inf)
    return jnp.where(~wide[0] | (least[0] >= 0), corner, corners[jnp.argmax(least)])


def epa(pair: Pair, wanted: jax.Array) -> tuple[Simplex, jax.Array]:
    """The face around the direction of least penetration, and that direction (3,); meaningless unless `wanted` ()."""
    dtype = pair.offset.dtype
    tolerance, exact, visible = (1e-7, 1e-7, 3e-8) if dtype == jnp.float32 else (1e-8, 1e-12, 1e-12)
    flat = (pair.a.round[0] <= 0) & (pair.b.round[0] <= 0)  # nothing improves the normal of flat cores later
    close = pair.scale * jnp.where(flat, exact, tolerance)
    p = _first(pair)

    def body(carry: tuple) -> tuple:
        p, count, depth, corner, normal, _ = carry
        dist = p.dist
        face = jnp.argmin(dist).astype(jnp.int32)
        direction = p.plane[face, :3]
        w = support(pair, direction)
        h = dot(w, direction)
        # an earlier normal may be as good by chance, but its corners may not be
        there = jnp.isfinite(dist[face])
        reached = h - dist[face] <= close
        better = there & (reached | (h < depth))
        p = p._replace(vertex=p.vertex.at[count].set(jnp.concatenate([w, direction])))
        depth, corner = jnp.where(better, h, depth), jnp.where(better, p.corner[face], corner)
        normal = jnp.where(better, direction, normal)
        p, fits = _expand(p, count, face, visible * pair.scale, pair.scale)
        return p, count + 1, depth, corner, normal, there & ~reached & fits

    def go_on(carry: tuple) -> jax.Array:
        return carry[5] & (carry[1] < VERTICES)

    big = jnp.full((), jnp.inf, dtype)
    carry = (p, jnp.asarray(4, jnp.int32), big, p.corner[0], p.vertex[0, 3:], wanted)
    p, _, depth, corner, normal, _ = jax.lax.while_loop(go_on, body, carry)
    # (3) weights of the face's corners for its plane's point nearest to the origin; if the plane has several triangles,
    # those of the triangle around that point
    corner = _face_around(p, depth + tolerance * pair.scale, normal, corner)
    vertex = p.vertex[jnp.stack([corner[0], corner[1], corner[2], corner[2]])]
    weight, _, ok = triangle_weights(vertex[:3, :3])
    weight = jnp.append(jnp.where(ok, weight, 0.0), jnp.zeros((), dtype))
    return Simplex(vertex[:, :3], vertex[:, 3:], weight, jnp.asarray([True, True, True, False])), normal
