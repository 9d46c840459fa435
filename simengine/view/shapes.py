"""Triangles of the shapes that geoms have. An edge of a shape has separate vertices on its two sides, so that shading
does not round it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np

AROUND = 24  # corners of a circle


class Shape(NamedTuple):
    """A surface of triangles.

    Attributes:
        name: what it is, such as "box", or "mesh 3" for the mesh of this index.
        vertices: (n, 3) float32, in the frame of the shape [m].
        faces: vertices of each triangle, counterclockwise seen from outside, (m, 3) int32.
    """

    name: str
    vertices: np.ndarray
    faces: np.ndarray


def _joined(name: str, pieces: Sequence[tuple[np.ndarray, np.ndarray]]) -> Shape:
    """Return one shape of several pieces, each with its vertices and faces."""
    first = np.cumsum([0, *(len(vertices) for vertices, _ in pieces)])
    faces = np.concatenate([faces + start for start, (_, faces) in zip(first, pieces, strict=False)])
    return Shape(name, np.concatenate([vertices for vertices, _ in pieces]).astype(np.float32), faces.astype(np.int32))


def _sheet(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices and faces of a sheet of (rows, columns, 3) points.

    A face is seen from where rows go up and columns go to the right. The diagonal of a square goes up to the right.
    """
    rows, columns = points.shape[:2]
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    right, above = corner + 1, corner + columns
    faces = np.concatenate([np.stack([corner, right, above + 1], 1), np.stack([corner, above + 1, above], 1)])
    return points.reshape(-1, 3), faces


def _revolved(name: str, *profiles: Sequence[tuple[float, float]]) -> Shape:
    """Return the surface that profiles sweep around the z axis. A profile has points (radius, z), from below."""
    angle = np.linspace(0, 2 * np.pi, AROUND + 1)
    pieces = []
    for profile in profiles:
        radius, z = np.array(profile, float).T[:, :, None]
        pieces.append(_sheet(np.stack(np.broadcast_arrays(radius * np.cos(angle), radius * np.sin(angle), z), -1)))
    joined = _joined(name, pieces)
    corners = joined.vertices[joined.faces]
    has_area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) > 1e-7
    return joined._replace(faces=joined.faces[has_area])  # those at a pole are lines


def _arc(low: float, high: float, parts: int) -> list[tuple[float, float]]:
    return [(float(np.cos(angle)), float(np.sin(angle))) for angle in np.linspace(low, high, parts + 1)]


def _box() -> Shape:
    square = np.array([[(-1, -1, 1), (1, -1, 1)], [(-1, 1, 1), (1, 1, 1)]], float)
    turns = [np.roll(square, axis, axis=2) for axis in range(3)]  # cyclic, so each face is still seen from outside
    opposite = [-turn[:, ::-1] for turn in turns]
    return _joined("box", [_sheet(side) for side in (*turns, *opposite)])


SPHERE = _revolved("sphere", _arc(-np.pi / 2, np.pi / 2, AROUND // 2))
"""Radius 1."""
CAP = _revolved("cap", _arc(0, np.pi / 2, AROUND // 4))
"""The upper half of the sphere. Two of them and a tube make a capsule, whatever its size."""
TUBE = _revolved("tube", [(1, -1), (1, 1)])
"""Radius 1 and half height 1, open at both ends."""
CYLINDER = _revolved("cylinder", [(0, -1), (1, -1)], [(1, -1), (1, 1)], [(1, 1), (0, 1)])
"""Radius 1 and half height 1."""
BOX = _box()
"""Half sides of 1."""
SQUARE = _joined("square", [_sheet(np.array([[(-1, -1, 0), (1, -1, 0)], [(-1, 1, 0), (1, 1, 0)]], float))])
"""Half sides of 1, seen from positive z."""


def mesh_shape(mj: mujoco.MjModel, mesh: int) -> Shape:
    """Return a mesh, in the frame of its geoms. A vertex is repeated where the mesh has several normals at it."""
    vertices, faces = slice_of(mj.mesh_vertadr, mj.mesh_vertnum, mesh), slice_of(mj.mesh_faceadr, mj.mesh_facenum, mesh)
    corners = np.stack([mj.mesh_face[faces], mj.mesh_facenormal[faces]], -1).reshape(-1, 2)
    kept, index = np.unique(corners, axis=0, return_inverse=True)
    return Shape(f"mesh {mesh}", mj.mesh_vert[vertices][kept[:, 0]], index.reshape(-1, 3).astype(np.int32))


def hfield_shape(mj: mujoco.MjModel, hfield: int) -> Shape:
    """Return a height field with its sides. Squares have the diagonal along which MuJoCo's collision cuts them."""
    rows, columns = int(mj.hfield_nrow[hfield]), int(mj.hfield_ncol[hfield])
    half_x, half_y, height, depth = mj.hfield_size[hfield]
    first = int(mj.hfield_adr[hfield])
    top = np.empty((rows, columns, 3))
    top[..., 0] = np.linspace(-half_x, half_x, columns)
    top[..., 1] = np.linspace(-half_y, half_y, rows)[:, None]
    top[..., 2] = height * mj.hfield_data[first : first + rows * columns].reshape(rows, columns)
    sides = []
    for edge in (top[0], top[:, -1], top[-1, ::-1], top[::-1, 0]):
        foot = edge * (1, 1, 0) - (0, 0, depth)
        sides.append(_sheet(np.stack([foot, edge])))
    return _joined(f"hfield {hfield}", [_sheet(top), *sides])


def slice_of(first: np.ndarray, count: np.ndarray, index: int) -> slice:
    """Return the part of an array that belongs to one entry, from the entries' addresses and numbers."""
    return slice(int(first[index]), int(first[index]) + int(count[index]))
