"""Almost parallel edges of two cores that cross far from the points of a search; see `crossing.cuh`.

Which edges hold the crossing has no derivatives.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from simengine.physics.collision.convex.shape_jax import Pair, Shape, flat_code, flat_point
from simengine.physics.math.vector_jax import dot

_ASIDE = 1e-4
"""[rad] from a normal to the ends of an edge."""
_TOUCHES = 1e-5
"""Relative to the scale: an end this close to the farthest point touches."""


class Kinks(NamedTuple):
    """Edges of flat parts whose kinks are active at the contact.

    Attributes:
        number: () 0, 1 or 2.
        edge: (2, 3) unit vectors.
        body: (2,) the body that each edge belongs to: 0 or 1.
    """

    number: jax.Array
    edge: jax.Array
    body: jax.Array


def _edge_holds(
    s: Shape, mat: jax.Array, n: jax.Array, edge: jax.Array, point: jax.Array, scale: jax.Array
) -> jax.Array:
    """Whether the edge of a core at the unit vector n (3,), along the unit vector `edge` (3,), holds a point of its
    line.

    The point (3,) is relative to the shape's centre. A smooth part has no extent along the edge.
    """
    at, own, along = point @ mat, n @ mat, edge @ mat
    most = dot(flat_point(s, flat_code(s, own)), own)

    def end_holds(way: float) -> jax.Array:
        end = flat_point(s, flat_code(s, own + way * _ASIDE * along))
        return (dot(end, own) >= most - _TOUCHES * scale) & (way * (dot(at, along) - dot(end, along)) <= 0)

    return end_holds(-1.0) & end_holds(1.0)


def edges_cross(p: Pair, n: jax.Array, kinks: Kinks, share: jax.Array, p1: jax.Array, p2: jax.Array) -> jax.Array:
    """Whether two kinks are edges, one of each core, that hold the points which lie `share` (2,) along them from p1 and
    p2, both (3,) from a's centre."""
    p, n, kinks, share, p1, p2 = jax.tree.map(jax.lax.stop_gradient, (p, n, kinks, share, p1, p2))
    first = jnp.argmin(kinks.body)  # the edge of a
    edges, shares = kinks.edge[jnp.stack([first, 1 - first])], share[jnp.stack([first, 1 - first])]
    on_a = _edge_holds(p.a, p.mat_a, n, edges[0], p1 - shares[0] * edges[0], p.scale)
    on_b = _edge_holds(p.b, p.mat_b, -n, edges[1], p2 + shares[1] * edges[1] - p.offset, p.scale)
    return (kinks.number == 2) & (kinks.body[0] != kinks.body[1]) & on_a & on_b
