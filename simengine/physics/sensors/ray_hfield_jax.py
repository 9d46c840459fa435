"""Intersection of rays with one height field in JAX.

The field has a surface with two triangles per cell, walls below its edges, and the box of the base. Rays are given in
the field's frame, as in `simengine.physics.sensors.ray_jax`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.math.vector_jax import MINVAL, const
from simengine.physics.sensors.ray_jax import NO_HIT, box, crossing, nearest, only


class Field(NamedTuple):
    """A height field.

    Attributes:
        data: (rows, columns) heights from 0 to 1.
        size: (4,) half lengths along x and y, maximum height, depth of the base [m].
    """

    data: np.ndarray
    size: np.ndarray

    @property
    def cells(self) -> tuple[int, int]:
        """Number of cells along x and y."""
        return self.data.shape[1] - 1, self.data.shape[0] - 1


def hfield(p: jax.Array, v: jax.Array, field: Field) -> jax.Array:
    """Distances (n,) of rays p, v (n, 3)."""
    size = field.size
    half = const(np.array([size[0], size[1], size[3] / 2]), p)[None]
    under = box(p + const(np.array([0.0, 0.0, size[3] / 2]), p)[None], v, jnp.broadcast_to(half, p.shape))
    scale = const(np.array(field.cells) / (2 * size[:2]), p)[None]
    at, speed = (p[:, :2] + const(size[:2], p)[None]) * scale, v[:, :2] * scale
    return nearest([under, *_walls(p, v, at, speed, field), _surface(p, v, at, speed, field)])


def _walls(p: jax.Array, v: jax.Array, at: jax.Array, speed: jax.Array, field: Field) -> list[jax.Array]:
    """The walls between height 0 and the edges of the surface."""
    hits = []
    for i in range(2):
        cells = field.cells[1 - i]
        for side in (0, 1):
            line = np.take(field.data, -side, axis=1 - i)
            t = crossing(p[:, i], v[:, i], jnp.full_like(p[:, i], (2 * side - 1) * field.size[i]))
            place, z = at[:, 1 - i] + t * speed[:, 1 - i], p[:, 2] + t * v[:, 2]
            k = jnp.clip(jnp.floor(place), 0, cells - 1).astype(jnp.int32)
            low, high = const(line, p)[k], const(line, p)[k + 1]
            top = float(field.size[2]) * (low + (place - k.astype(p.dtype)) * (high - low))
            hits.append(only(t, (place >= 0) & (place <= cells) & (z >= 0) & (z < top)))
    return hits


def _surface(p: jax.Array, v: jax.Array, at: jax.Array, speed: jax.Array, field: Field) -> jax.Array:
    """The triangles of the cells that the rays cross; a ray crosses at most as many as there are rows and columns."""
    still = jax.lax.stop_gradient
    # (1) the points where the rays cross the lines between cells, and the cells between these points
    lines = [
        crossing(still(at[:, i, None]), still(speed[:, i, None]), jnp.arange(n + 1, dtype=p.dtype)[None])
        for i, n in enumerate(field.cells)
    ]
    steps = jnp.sort(jnp.maximum(jnp.concatenate([jnp.zeros_like(p[:, :1]), *lines], axis=1), 0.0), axis=1)
    middle = 0.5 * (steps[:, 1:] + steps[:, :-1])
    most = np.array(field.cells, np.int32)[None, None] - 1
    inner = jnp.floor(still(at[:, None] + middle[..., None] * speed[:, None]))
    cell = jnp.clip(inner, 0.0, const(most, p)).astype(jnp.int32)
    # (2) both triangles of each cell
    column, row = cell[..., 0], cell[..., 1]
    data, height = const(field.data, p), float(field.size[2])
    h00, h10, h01, h11 = data[row, column], data[row, column + 1], data[row + 1, column], data[row + 1, column + 1]
    x, y = at[:, :1] - column.astype(p.dtype), at[:, 1:] - row.astype(p.dtype)
    slack = 4 * float(jnp.finfo(p.dtype).eps) * field.data.shape[1]
    hits = []
    for upper, slope in enumerate((jnp.stack([h10 - h00, h11 - h10]), jnp.stack([h11 - h01, h01 - h00]))):
        above = p[:, 2:] - height * (h00 + slope[0] * x + slope[1] * y)
        rate = v[:, 2:] - height * (slope[0] * speed[:, :1] + slope[1] * speed[:, 1:])
        meets = jnp.abs(rate) > MINVAL
        t = -above / jnp.where(meets, rate, 1.0)
        fx, fy = x + t * speed[:, :1], y + t * speed[:, 1:]
        low, high = (fx, fy) if upper else (fy, fx)
        hits.append(only(t, meets & (low >= -slack) & (low <= high + slack) & (high <= 1 + slack)))
    found = jnp.concatenate(hits, axis=1)
    best = jnp.min(jnp.where(found >= 0, found, jnp.inf), axis=1)
    return jnp.where(jnp.isfinite(best), best, NO_HIT)
