"""Several contacts of flat features; see `simengine/kernels/manifold.cuh` for the rules. One pair."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from simengine.math.convex_shape import Pair
from simengine.math.vector import dot

FLAT = 0.0888
CAP_SIDES = 16
_angle = 2 * np.pi / CAP_SIDES * np.arange(CAP_SIDES + 1)
_corner = np.stack([np.cos(_angle), np.sin(_angle)], axis=1)
_outward = np.stack([np.diff(_corner[:, 1]), -np.diff(_corner[:, 0])], axis=1)
_SIDE = np.sum(_outward * _corner[:-1], axis=1)


def clip_to_cap(a: jax.Array, b: jax.Array, radius: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The part of the segment from a to b, (3,) in the frame of a cap, over the cap: parameters from, to; none if
    from > to."""
    outward = jnp.asarray(_outward, a.dtype)
    side = radius * jnp.asarray(_SIDE, a.dtype)
    da, db = outward @ a[:2] - side, outward @ b[:2] - side
    crosses = (da > 0) != (db > 0)
    t = da / jnp.where(crosses, da - db, 1.0)
    begin = jnp.max(jnp.where(crosses & (da > 0), t, 0.0))
    end = jnp.min(jnp.where(crosses & (db > 0), t, 1.0))
    return begin, jnp.where(((da > 0) & (db > 0)).any(), -1.0, end)


def capsule_on_cap(p: Pair, normal: jax.Array, margin: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Contacts of a capsule (a) that lies on the cap of a cylinder (b).

    Args: normal (3,) from a to b; margin () [m].
    Returns: dist (2,) [m], pos (2, 3) from a's centre [m], the normal (3,) of both, and how many there are ().
    """
    axis, up = p.mat_a[:, 2], p.mat_b[:, 2]
    lies = jnp.abs(dot(axis, up)) <= FLAT
    # (1) the cap that the normal points into, and the capsule's line that is nearest to it; both are half the margin
    # thicker, and the line is nearer to the axis where the normal is not across it
    up = jnp.where(dot(normal, up) < 0, up, -up)
    aside = (p.a.radius + 0.5 * margin) * (normal - dot(normal, axis) * axis)
    half = p.a.box[2] * axis
    ends = jnp.stack([aside - half, aside + half])
    local = (ends - p.offset[None]) @ p.mat_b
    # (2) the part of it over the cap
    begin, end = clip_to_cap(local[0], local[1], p.b.round[0])
    over = lies & (begin <= end)
    # (3) its ends, the one that clipping made first; one that has no partner counts twice if clipping made it
    cut = jnp.stack([begin > 0, end < 1])
    t = jnp.stack([begin, end])
    swap = cut[0] != cut[1]
    t, cut = jnp.where(swap, t[::-1], t), jnp.where(swap, cut[::-1], cut)
    points = ends[0][None] + t[:, None] * (ends[1] - ends[0])[None]
    dist = (points - p.offset[None]) @ up - p.b.box[2] + 0.5 * margin
    pos = points + 0.5 * (margin - dist)[:, None] * up[None]
    near = dist <= margin
    only = 1 - near[0].astype(jnp.int32)
    pick = jnp.where(near.all(), jnp.arange(2, dtype=jnp.int32), only)
    number = jnp.where(near.all(), 2, jnp.where(near.any(), 1 + cut[only].astype(jnp.int32), 0))
    return dist[pick], pos[pick], -up, jnp.where(over, number, 0)
