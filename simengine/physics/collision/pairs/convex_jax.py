"""Two convex shapes of any type in JAX: GJK if their cores are apart, EPA if they overlap.

Capsules and cylinders take the same way here. The kernels need no search for them (`segment_cylinder.cuh`); both agree
to the tolerances of the conformance test.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.collision.contact_jax import NO_CONTACT, make_frame
from simengine.physics.collision.convex.epa_jax import epa
from simengine.physics.collision.convex.gjk_jax import gjk
from simengine.physics.collision.convex.manifold_jax import SLOTS, lying_contacts
from simengine.physics.collision.convex.polish_jax import lies_along, polish, witnesses
from simengine.physics.collision.convex.shape_jax import Pair, Shape, extent, reach
from simengine.physics.collision.convex.solid_jax import Solid, features

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
    solids: tuple[Solid, Solid] | None = None,
    up_to_margin: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n pairs of convex shapes.

    Args: positions (n, 3) [m], rotation matrices (n, 9), shapes of n geoms, margin (n,) [m]; solids of n geoms, if flat
        features give several contacts; whether distances up to the margin count, and not only those certainly below it.
    Returns: dist (n, slots) [m], NO_CONTACT in an unused slot; pos (n, slots, 3) [m]; frame (n, slots, 9). There are
        SLOTS slots with solids, and one without.
    """

    with jax.default_matmul_precision("highest"):
        contacts = partial(_contacts, up_to_margin=up_to_margin)
        dist, pos, normal = jax.vmap(contacts)(pos1, mat1, shape1, pos2, mat2, shape2, margin, solids)
    return dist, pos, make_frame(normal)


def _contacts(
    pos1: jax.Array,
    mat1: jax.Array,
    shape1: Shape,
    pos2: jax.Array,
    mat2: jax.Array,
    shape2: Shape,
    margin: jax.Array,
    solids: tuple[Solid, Solid] | None,
    up_to_margin: bool,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    scale = extent(shape1) + extent(shape2)
    p = Pair(shape1, shape2, mat1.reshape(3, 3), mat2.reshape(3, 3), pos2 - pos1, scale)
    still = jax.tree.map(jax.lax.stop_gradient, p)
    radii = shape1.radius + shape2.radius
    # (1) the normal: towards the nearest point, or in the direction of least penetration
    apart_simplex, apart_normal, touching, apart = gjk(still, jax.lax.stop_gradient(margin + radii))
    deep_simplex, deep_normal = epa(still, touching)
    simplex = jax.tree.map(lambda a, b: jnp.where(touching, a, b), deep_simplex, apart_simplex)
    # (2) the exact normal
    normal, kinks = polish(p, simplex, jnp.where(touching, deep_normal, apart_normal))
    h = reach(p, normal)
    p1, p2 = witnesses(p, simplex, normal, h, kinks)
    dist = jnp.where(apart, NO_CONTACT, -h - radii)
    if not up_to_margin:
        # as in MuJoCo, what is at the margin is no contact; rounding of the distance must not make it one
        at_margin = 4.0 * jnp.finfo(dist.dtype).eps if dist.dtype == jnp.float32 else 1e-14
        below = jax.lax.stop_gradient(dist) < margin - at_margin * still.scale
        dist = jnp.where(below, dist, NO_CONTACT)
    # (3) contact midway between the surfaces
    middle = 0.5 * (p1 + shape1.radius * normal + p2 - shape2.radius * normal)
    if solids is None:
        return dist[None], pos1[None] + middle[None], normal[None]
    # (4) more contacts of flat features
    first = features(
        solids[0], p.a, p.mat_a, jnp.zeros_like(pos1), simplex, kinks, 0, normal, lies_along(p, kinks, 0), margin, scale
    )
    second = features(
        solids[1], p.b, p.mat_b, p.offset, simplex, kinks, 1, normal, lies_along(p, kinks, 1), margin, scale
    )
    lying = lying_contacts(p, solids, (first, second), margin)
    slot = jnp.arange(SLOTS, dtype=jnp.int32)
    lies = (dist <= margin) & (lying.number > 0)
    several = jnp.where(slot < lying.number, lying.dist, NO_CONTACT)
    dists = jnp.where(lies, several, jnp.where(slot == 0, dist, NO_CONTACT))
    normals = jnp.broadcast_to(jnp.where(lies, lying.normal, normal), (SLOTS, 3))
    return dists, pos1[None] + jnp.where(lies, lying.pos, middle[None]), normals
