"""Solids of a model's geoms, built from the model table, for the JAX forms."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simengine.physics.collision.convex.solid_jax import CAP_SIDES, Solid
from simengine.physics.math.vector_jax import const

_CYLINDER, _BOX, _MESH = 5, 6, 7  # MuJoCo's mjtGeom
_CORNERS = {_CYLINDER: 2 * CAP_SIDES, _BOX: 8}


def solids_of(m: Any, geoms: np.ndarray, size: jax.Array) -> Solid:
    """The solids of n geoms of convex types; those of spheres and ellipsoids have no face.

    Args: m a model; geoms (n,); size (n, 3) MuJoCo's sizes [m].
    """
    kind = np.asarray(m.geom_type)[geoms]
    number = [_CORNERS.get(k, int(m.geom_hullnum[g])) for g, k in zip(geoms, kind.tolist(), strict=True)]
    hulls = [_hull(m, int(m.geom_solidadr[g]), n) for g, n in zip(geoms, number, strict=True)]
    vert, corner, sides, normal, ring, spoke = (_stack(arrays) for arrays in zip(*hulls, strict=True))
    disc, mesh = (kind == _CYLINDER)[:, None], (kind == _MESH)[:, None]
    scale = jnp.where(mesh, 1.0, jnp.where(disc, jnp.take(size, np.array([0, 0, 1]), axis=1), size))
    return Solid(
        vert=const(vert, size) * scale[:, None],
        corner=jnp.asarray(corner, jnp.int32),
        sides=jnp.asarray(sides, jnp.int32),
        normal=const(normal, size),
        ring=jnp.asarray(ring, jnp.int32),
        spoke=jnp.asarray(spoke, jnp.int32),
    )


def _hull(m: Any, first: int, number: int) -> tuple[np.ndarray, ...]:
    """The arrays of one solid, with `number` corners from `first` on; if that is zero, one corner and no face."""
    if not number:
        nothing = np.zeros((1, 1), int)
        return np.zeros((1, 3)), nothing, np.ones(1, int), np.zeros((1, 3)), nothing - 1, nothing
    adr, face_adr = np.asarray(m.vert_adr)[first : first + number + 1], np.asarray(m.face_adr)
    faces = np.unique(m.vert_face[adr[0] : adr[-1]])
    around = [np.asarray(m.face_vert)[face_adr[f] : face_adr[f + 1]] for f in faces]
    corner = _rows(around)
    ring = _rows([np.asarray(m.vert_face)[a:b] - faces[0] for a, b in pairwise(adr)], fill=-1)
    spoke = _rows([np.asarray(m.vert_edge)[a:b] for a, b in pairwise(adr)], fill=0)
    vert = np.asarray(m.hull_vert)[first : first + number]
    return vert, corner, np.array([len(a) for a in around]), np.asarray(m.face_normal)[faces], ring, spoke


def _rows(rows: list[np.ndarray], fill: int | None = None) -> np.ndarray:
    """Rows of different lengths as a matrix, padded with `fill` or with the row's first entry."""
    out = np.empty((len(rows), max(len(row) for row in rows)), int)
    for entry, row in zip(out, rows, strict=True):
        entry[: len(row)] = row
        entry[len(row) :] = row[0] if fill is None else fill
    return out


def _stack(arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    """Arrays of different shapes, stacked into one and padded with -1."""
    shape = np.max([a.shape for a in arrays], axis=0)
    out = np.full((len(arrays), *shape), -1, dtype=arrays[0].dtype)
    for place, array in zip(out, arrays, strict=True):
        place[tuple(slice(n) for n in array.shape)] = array
    return out
