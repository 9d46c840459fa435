"""Convex geoms by their definition: how far they reach in a direction, and whether they hold a point."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import mujoco
import numpy as np

_TYPE = mujoco.mjtGeom
_RING = range(-1, 2)  # cells around that of a point whose prisms may hold it


class Solid(Protocol):
    """A convex set of points."""

    def reach(self, way: np.ndarray) -> float:
        """Largest coordinate (m) of its points along a unit vector (3,), world frame."""

    def holds(self, point: np.ndarray, off: float) -> bool:
        """Whether a point (3,) [m], world frame, is in it or at most about `off` [m] away."""


@dataclass(frozen=True)
class Hull:
    """Attributes:
    corners: (n, 3) [m], world frame.
    normals, on: (k, 3) outward unit normals of its faces, and a point on each [m].
    """

    corners: np.ndarray
    normals: np.ndarray
    on: np.ndarray

    def reach(self, way: np.ndarray) -> float:
        """See `Solid`."""
        return float((self.corners @ way).max())

    def holds(self, point: np.ndarray, off: float) -> bool:
        """See `Solid`."""
        return bool((np.einsum("ij,ij->i", self.normals, point - self.on) <= off).all())


@dataclass(frozen=True)
class Round:
    """Attributes:
    kind: a sphere, capsule, cylinder or ellipsoid.
    size: (3,) its sizes [m].
    centre, axes: (3,) [m] and (3, 3), axes in columns.
    """

    kind: int
    size: np.ndarray
    centre: np.ndarray
    axes: np.ndarray

    def reach(self, way: np.ndarray) -> float:
        """See `Solid`."""
        local, (first, second, _) = way @ self.axes, self.size
        if self.kind == _TYPE.mjGEOM_ELLIPSOID:
            far = float(np.linalg.norm(self.size * local))
        elif self.kind == _TYPE.mjGEOM_CYLINDER:
            far = first * float(np.hypot(local[0], local[1])) + second * abs(local[2])
        else:
            far = first + (second * abs(local[2]) if self.kind == _TYPE.mjGEOM_CAPSULE else 0.0)
        return float(self.centre @ way) + far

    def holds(self, point: np.ndarray, off: float) -> bool:
        """See `Solid`."""
        local, (first, second, _) = (point - self.centre) @ self.axes, self.size
        if self.kind == _TYPE.mjGEOM_ELLIPSOID:
            scale = float(np.linalg.norm(local / self.size))
            return bool(np.linalg.norm(local) * (1 - 1 / max(scale, 1.0)) <= off)
        if self.kind == _TYPE.mjGEOM_CYLINDER:
            return bool(np.hypot(local[0], local[1]) <= first + off and abs(local[2]) <= second + off)
        inner = np.clip(local[2], -second, second) if self.kind == _TYPE.mjGEOM_CAPSULE else 0.0
        return bool(np.linalg.norm(local - np.array([0.0, 0.0, inner])) <= first + off)


def solids(mj: mujoco.MjModel, data: mujoco.MjData, geom: int, near: np.ndarray) -> Iterator[Solid]:
    """The convex parts of a geom: itself, or the prisms of a height field around a point (3,) [m]; none of a plane.

    Args:
        mj: the model.
        data: holds the poses of geoms.
        geom: its number.
        near: the point, world frame.
    """
    kind, size = int(mj.geom_type[geom]), np.array(mj.geom_size[geom])
    centre, axes = np.array(data.geom_xpos[geom]), np.array(data.geom_xmat[geom]).reshape(3, 3)
    if kind in (_TYPE.mjGEOM_SPHERE, _TYPE.mjGEOM_CAPSULE, _TYPE.mjGEOM_CYLINDER, _TYPE.mjGEOM_ELLIPSOID):
        yield Round(kind, size, centre, axes)
    elif kind == _TYPE.mjGEOM_BOX:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
        normals = np.concatenate((np.eye(3), -np.eye(3)))
        yield _placed(signs * size, normals, normals * size, centre, axes)
    elif kind == _TYPE.mjGEOM_MESH:
        yield mesh_hull(mj, int(mj.geom_dataid[geom]), centre, axes)
    elif kind == _TYPE.mjGEOM_HFIELD:
        for corners in _prisms(mj, int(mj.geom_dataid[geom]), (near - centre) @ axes):
            yield _placed(corners, *_faces(corners), centre, axes)


def _placed(corners: np.ndarray, normals: np.ndarray, on: np.ndarray, centre: np.ndarray, axes: np.ndarray) -> Hull:
    """A hull from its parts in its own frame."""
    return Hull(corners @ axes.T + centre, normals @ axes.T, on @ axes.T + centre)


def mesh_hull(mj: mujoco.MjModel, mesh: int, centre: np.ndarray, axes: np.ndarray) -> Hull:
    """The hull of a mesh by number, placed in the world, with MuJoCo's polygons; its corners are all vertices."""
    first = int(mj.mesh_vertadr[mesh])
    corners = np.array(mj.mesh_vert[first : first + int(mj.mesh_vertnum[mesh])], float)
    part = slice(int(mj.mesh_polyadr[mesh]), int(mj.mesh_polyadr[mesh]) + int(mj.mesh_polynum[mesh]))
    on = corners[mj.mesh_polyvert[mj.mesh_polyvertadr[part]]]
    return _placed(corners, np.array(mj.mesh_polynormal[part], float), on, centre, axes)


def _prisms(mj: mujoco.MjModel, field: int, near: np.ndarray) -> Iterator[np.ndarray]:
    """Corners (6, 3) of prisms around a point, in the frame of the height field: three of the base, then those above.

    Each cell has two, and a strip along x goes up and down its corners.
    """
    rows, columns = int(mj.hfield_nrow[field]), int(mj.hfield_ncol[field])
    first, (x, y, top, base) = int(mj.hfield_adr[field]), mj.hfield_size[field].tolist()
    height = np.array(mj.hfield_data[first : first + rows * columns], float).reshape(rows, columns)
    step = np.array([2 * x / (columns - 1), 2 * y / (rows - 1)])
    cell = np.floor((near[:2] + np.array([x, y])) / step).astype(int)
    for right, up, half in itertools.product(_RING, _RING, range(2)):
        column, row = (cell + np.array([right, up])).tolist()
        if 0 <= column < columns - 1 and 0 <= row < rows - 1:
            flat = [(column + k // 2, row + 1 - k % 2) for k in range(half, half + 3)]
            lower = [(c * step[0] - x, r * step[1] - y, -base) for c, r in flat]
            yield np.array(lower + [(*lower[k][:2], top * height[r, c]) for k, (c, r) in enumerate(flat)])


def _faces(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outward normals (5, 3) of the faces of a prism with corners (6, 3), and a corner of each."""
    triples = corners[[(0, 1, 2), (3, 4, 5), (0, 1, 3), (1, 2, 4), (2, 0, 5)]]
    normals = np.cross(triples[:, 1] - triples[:, 0], triples[:, 2] - triples[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    inward = np.einsum("ij,ij->i", normals, corners.mean(axis=0) - triples[:, 0]) > 0
    return np.where(inward[:, None], -normals, normals), triples[:, 0]
