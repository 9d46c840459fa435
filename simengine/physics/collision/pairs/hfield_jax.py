"""A geom on a height field in JAX: the prisms of the field under the geom, each against a convex shape."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.collision.contact_jax import NO_CONTACT
from simengine.physics.collision.convex.shape_jax import Shape, support_local
from simengine.physics.collision.pairs.convex_jax import convex
from simengine.physics.math.vector_jax import const, dot


class Terrain(NamedTuple):
    """Height fields of n pairs.

    Attributes:
        data: (k,) heights of all fields, from 0 to 1, row by row.
        adr: (n,) index of the first height of the pair's field.
        grid: (n, 2) number of columns and rows, along x and y.
        size: (n, 4) half lengths along x and y, maximum height, depth of the base [m].
        cells: (n, 2) most columns and rows of cells under the geom.
        slots: (n,) most contacts.
    """

    data: np.ndarray
    adr: np.ndarray
    grid: np.ndarray
    size: np.ndarray
    cells: np.ndarray
    slots: np.ndarray


class _Prisms(NamedTuple):
    """All prisms that can be under a geom, pair by pair, in MuJoCo's order. Of each: its pair, its column and row from
    the first cell under the geom, and which of the cell's two prisms it is, (n,)."""

    pair: np.ndarray
    column: np.ndarray
    row: np.ndarray
    half: np.ndarray


def _prisms(cells: np.ndarray) -> _Prisms:
    each = [np.mgrid[:rows, :columns, :2].reshape(3, -1) for columns, rows in cells]
    row, column, half = np.concatenate(each, axis=1).astype(np.int32)
    return _Prisms(np.repeat(np.arange(len(cells)), [part.shape[1] for part in each]), column, row, half)


def _ends(pose: jax.Array, shape: Shape) -> tuple[jax.Array, jax.Array]:
    """Lower and upper corner (3,) of a geom's bounding box relative to its centre, in the frame in which the geom has
    the orientation `pose` (3, 3)."""

    def reach(direction: jax.Array) -> jax.Array:
        return dot(support_local(shape, direction), direction) + shape.radius

    high, low = jax.vmap(reach)(pose), jax.vmap(reach)(-pose)
    return -low, high


def hfield(
    pos1: jax.Array,
    mat1: jax.Array,
    terrain: Terrain,
    pos2: jax.Array,
    mat2: jax.Array,
    shape2: Shape,
    margin: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contacts of n geoms on height fields.

    Args: positions (n, 3) [m], rotation matrices (n, 9), the fields, shapes of n geoms, margin (n,) [m].
    Returns: dist (sum of slots,) [m], NO_CONTACT in an unused slot; pos (sum of slots, 3) [m]; frame (sum of slots, 9).
    """
    prisms = _prisms(terrain.cells)
    axes1, axes2 = mat1.reshape(-1, 3, 3), mat2.reshape(-1, 3, 3)
    with jax.default_matmul_precision("highest"):
        turn = jnp.swapaxes(axes1, 1, 2)
        centre = jnp.einsum("nij,nj->ni", turn, pos2 - pos1)
        box = jax.vmap(_ends)(jax.lax.stop_gradient(turn @ axes2), jax.tree.map(jax.lax.stop_gradient, shape2))
    vert, there = _corners(terrain, prisms, centre, *box, margin)

    # (4) collide prisms and geoms as convex shapes
    middle = vert.mean(axis=1)
    number, zero = len(prisms.pair), jnp.zeros_like(middle)
    no = np.zeros(number, bool)
    solid = Shape(box=zero, round=zero, radius=zero[:, 0], vert=vert - middle[:, None], disc=no, line=no)
    turn1, turn2, reach = (x[prisms.pair] for x in (mat1, mat2, margin))
    offset = jnp.einsum("nij,nj->ni", axes1[prisms.pair], middle, precision="highest")
    geom = jax.tree.map(lambda x: x[prisms.pair], shape2)
    found = convex(offset, turn1, solid, zero, turn2, geom, reach, up_to_margin=True)
    dist, pos, frame = (x[:, 0] for x in found)
    dist = jnp.where(there & (dist <= reach), dist, NO_CONTACT)

    # (5) store them in the slots of the pair
    listed = jnp.cumsum((dist < NO_CONTACT).astype(jnp.int32))
    first = np.searchsorted(prisms.pair, prisms.pair)
    place = listed - jnp.where(first > 0, listed[first - 1], 0) - 1
    slots, total = terrain.slots.astype(np.int32), int(terrain.slots.sum())
    start = np.cumsum(slots, dtype=np.int32) - slots
    slot = jnp.where((dist < NO_CONTACT) & (place < slots[prisms.pair]), start[prisms.pair] + place, total)
    free = jnp.full((total,), NO_CONTACT, dist.dtype), jnp.zeros((total, 3), pos.dtype)
    frames = jnp.broadcast_to(const(np.eye(3).ravel(), frame), (total, 9))
    dist, pos = (x.at[slot].set(y, mode="drop") for x, y in zip(free, (dist, pos + pos2[prisms.pair]), strict=True))
    return dist, pos, frames.at[slot].set(frame, mode="drop")


def _corners(
    terrain: Terrain, prisms: _Prisms, centre: jax.Array, low: jax.Array, high: jax.Array, margin: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Corners (prisms, 6, 3) in the fields' frames relative to the geoms' centres [m], and whether the prisms count.

    Args: centres of the geoms, and lower and upper corners of their boxes relative to them (n, 3), in the fields'
        frames; margin (n,) [m].
    """
    size, last = const(terrain.size, centre), np.asarray(terrain.grid - 1, np.int32)
    still = jax.lax.stop_gradient(centre)
    reach = margin[:, None]
    # (1) no contact if the bounding boxes are apart
    below = const(terrain.size[:, [0, 1, 3]], centre)
    near = ((still + low - reach <= size[:, :3]) & (still + high + reach >= -below)).all(axis=1)
    # (2) cells that the geom's box covers
    step = const(2 * terrain.size[:, :2] / last, centre)
    begin = jnp.floor((still + low - reach + size[:, :3])[:, :2] / step)
    end = jnp.ceil((still + high + reach + size[:, :3])[:, :2] / step)
    most = const(last, centre)
    begin, end = (jnp.clip(x, 0.0, most).astype(jnp.int32)[prisms.pair] for x in (begin, end))
    cell = begin + np.stack([prisms.column, prisms.row], axis=1)
    covered = near[prisms.pair] & (cell < end).all(axis=1)
    cell = jnp.minimum(cell, last[prisms.pair] - 1)
    # (3) three corners of the base, then three of the surface
    number = prisms.half[:, None] + np.arange(3, dtype=np.int32)[None]
    column, row = cell[:, :1] + number // 2, cell[:, 1:] + 1 - number % 2
    height = const(terrain.data, centre)[terrain.adr[prisms.pair, None] + row * terrain.grid[prisms.pair, :1] + column]
    size, step, centre = (x[prisms.pair, None] for x in (size, step, centre))
    flat = jnp.stack([column, row], axis=-1).astype(centre.dtype) * step - size[..., :2] - centre[..., :2]
    top, base = height * size[..., 2] - centre[..., 2], jnp.broadcast_to(-size[..., 3] - centre[..., 2], height.shape)
    reached = (top >= (low[:, 2] - margin)[prisms.pair, None]).any(axis=1)
    surface, bottom = (jnp.concatenate([flat, z[..., None]], axis=-1) for z in (top, base))
    return jnp.concatenate([bottom, surface], axis=1), covered & reached
