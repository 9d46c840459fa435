"""Two convex shapes of any kind in JAX: GJK where their cores are apart, EPA where they overlap."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from simengine.math.contact_frame import NO_CONTACT, make_frame
from simengine.math.convex_shape import Pair, Shape, extent
from simengine.math.epa import epa
from simengine.math.gjk import gjk
from simengine.math.manifold import capsule_on_cap
from simengine.math.polish import lies_along, polish, witnesses
from simengine.math.vector import dot

SLOTS = 2
_SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX = 2, 3, 4, 5, 6  # MuJoCo's mjtGeom


def shapes_of(types: Sequence[int], size: jax.Array, vert: np.ndarray) -> Shape:
    """Shapes of n geoms.

    Args: types n of mjtGeom; size (n, 3) MuJoCo's sizes [m]; vert (n, k, 3) [m].
    """
    kind = np.asarray(types)[:, None]
    disc, line = kind == _CYLINDER, kind == _CAPSULE
    zero = jnp.zeros_like(size[:, :1])
    along = jnp.concatenate([zero, zero, size[:, 1:2]], axis=1)
    across = jnp.concatenate([size[:, :1], size[:, :1], zero], axis=1)
    nothing = jnp.zeros_like(size)
    ball = line | (kind == _SPHERE)
    return Shape(
        box=jnp.where(kind == _BOX, size, jnp.where(disc | line, along, nothing)),
        round=jnp.where(kind == _ELLIPSOID, size, jnp.where(disc, across, nothing)),
        radius=jnp.where(ball, size[:, :1], zero)[:, 0],
        vert=jnp.asarray(vert, size.dtype),
        disc=disc[:, 0],
        line=line[:, 0],
    )


def convex(
    pos1: jax.Array,
    mat1: jax.Array,
    shape1: Shape,
    pos2: jax.Array,
    mat2: jax.Array,
    shape2: Shape,
    margin: jax.Array,
    several: bool,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n pairs of convex shapes.

    Args: positions (n, 3) [m], rotation matrices (n, 9), shapes of n geoms, margin (n,) [m]; several: flat features
    give several contacts.
    Returns: dist (n, SLOTS) [m], NO_CONTACT in an unused slot; pos (n, SLOTS, 3) [m]; frame (n, SLOTS, 9).
    """

    with jax.default_matmul_precision("highest"):
        each = jax.vmap(partial(_contacts, several))
        dist, pos, normal = each(pos1, mat1, shape1, pos2, mat2, shape2, margin)
    return dist, pos, make_frame(normal)


def _contacts(
    several: bool,
    pos1: jax.Array,
    mat1: jax.Array,
    shape1: Shape,
    pos2: jax.Array,
    mat2: jax.Array,
    shape2: Shape,
    margin: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    scale = extent(shape1) + extent(shape2)
    p = Pair(shape1, shape2, mat1.reshape(3, 3), mat2.reshape(3, 3), pos2 - pos1, scale)
    still = jax.tree.map(jax.lax.stop_gradient, p)
    radii = shape1.radius + shape2.radius
    # (1) the normal: towards the nearest point, or along the least penetration
    apart_simplex, apart_normal, touching, apart = gjk(still, jax.lax.stop_gradient(margin + radii))
    deep_simplex, deep_normal = epa(still, touching)
    simplex = jax.tree.map(lambda a, b: jnp.where(touching, a, b), deep_simplex, apart_simplex)
    # (2) made exact
    normal, kinks = polish(p, simplex, jnp.where(touching, deep_normal, apart_normal))
    p1, p2 = witnesses(p, simplex, normal, kinks)
    dist = jnp.where(apart, NO_CONTACT, -dot(p1 - p2, normal) - radii)
    # (3) contact half-way between the surfaces
    middle = 0.5 * (p1 + shape1.radius * normal + p2 - shape2.radius * normal)
    dists = jnp.stack([dist, *(SLOTS - 1) * [jnp.full_like(dist, NO_CONTACT)]])
    middles, normals = jnp.broadcast_to(middle, (SLOTS, 3)), jnp.broadcast_to(normal, (SLOTS, 3))
    if several:
        # (4) more contacts of flat features
        more, points, face, number = capsule_on_cap(p, normal, margin)
        lies = shape1.line & shape2.disc & (dist <= margin) & ~lies_along(p, kinks) & (number > 0)
        dists = jnp.where(lies, jnp.where(jnp.arange(SLOTS, dtype=jnp.int32) < number, more, NO_CONTACT), dists)
        middles, normals = jnp.where(lies, points, middles), jnp.where(lies, face[None], normals)
    return dists, pos1[None] + middles, normals
