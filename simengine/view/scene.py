"""What is drawn of a compiled model, and where the copies of many worlds lie.

Geoms are drawn as copies of few shapes, so that all worlds together take one draw call for each shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import mujoco
import numpy as np

from simengine.view.shapes import BOX, CAP, CYLINDER, SPHERE, SQUARE, TUBE, Shape, hfield_shape, mesh_shape

SHOWN_GROUPS = 3
"""Geoms of the groups below this number are visible at first, as in MuJoCo's viewer."""

_GEOM, _JOINT = mujoco.mjtGeom, mujoco.mjtJoint
_UPRIGHT, _UPSIDE_DOWN = np.eye(3), np.diag([1.0, -1.0, -1.0])
_CENTRE = np.zeros(3)
_GAP, _WIDE_GAP = 1.3, 2.0  # distance of neighbouring worlds, in diameters of one; wide if something may wander
_SQUARES = 4  # squares along the side of a world's part of a plane
_MOST_SQUARES = 40
_DARKER = 0.82  # of every second square
_PLAIN = (0.5, 0.5, 0.5, 1.0)  # MuJoCo's colour of a geom that has none of its own
_COLOUR_MAPS = (mujoco.mjtTextureRole.mjTEXROLE_RGB, mujoco.mjtTextureRole.mjTEXROLE_RGBA)


class _Piece(NamedTuple):
    """One copy of a shape: where it lies in its geom's frame, its half sizes, and how much darker it is."""

    shape: Shape
    scale: tuple[float, float, float]
    pos: np.ndarray = _CENTRE
    mat: np.ndarray = _UPRIGHT
    shade: float = 1.0


class Draw(NamedTuple):
    """Copies of one shape in a world.

    Attributes:
        shape: the shape.
        group: MuJoCo's group of the geoms.
        geom: geom of each copy, (n,).
        pos: position of each copy in the frame of its geom, (n, 3) [m].
        mat: orientation of each copy in the frame of its geom, (n, 3, 3).
        scale: factors of the shape along its axes, (n, 3).
        rgba: colour and opacity, from 0 to 1, (n, 4).
    """

    shape: Shape
    group: int
    geom: np.ndarray
    pos: np.ndarray
    mat: np.ndarray
    scale: np.ndarray
    rgba: np.ndarray

    @property
    def name(self) -> str:
        """A name that no other draw of the model has."""
        return f"group {self.group}/{self.shape.name}"


def draws(mj: mujoco.MjModel, tile: float, whole_planes: bool = False) -> tuple[Draw, ...]:
    """Return what is drawn of a model. Invisible geoms are left out.

    Args:
        mj: the model.
        tile: side of the square that a world has in the layout [m]. Planes are cut to it.
        whole_planes: draw planes in their own size. An endless one has the sides of ten tiles then.
    """
    found: dict[tuple[str, int], list[tuple[int, _Piece]]] = {}
    shapes: dict[tuple[mujoco.mjtGeom, int], Shape] = {}
    for geom in range(mj.ngeom):
        if geom_rgba(mj, geom)[3] > 0:
            for piece in _pieces(mj, geom, tile, whole_planes, shapes):
                found.setdefault((piece.shape.name, int(mj.geom_group[geom])), []).append((geom, piece))
    return tuple(_draw(mj, group, copies) for (_, group), copies in found.items())


def _draw(mj: mujoco.MjModel, group: int, copies: list[tuple[int, _Piece]]) -> Draw:
    geoms, pieces = zip(*copies, strict=True)
    rgba = np.array([geom_rgba(mj, geom) * (*[piece.shade] * 3, 1) for geom, piece in copies])
    pos, mat, scale = (np.array([getattr(piece, name) for piece in pieces]) for name in ("pos", "mat", "scale"))
    return Draw(pieces[0].shape, group, np.array(geoms), pos, mat, scale, rgba)


def _pieces(
    mj: mujoco.MjModel, geom: int, tile: float, whole_planes: bool, shapes: dict[tuple[mujoco.mjtGeom, int], Shape]
) -> Iterator[_Piece]:
    """Yield the copies of shapes that make a geom."""
    kind, data = _GEOM(int(mj.geom_type[geom])), int(mj.geom_dataid[geom])
    x, y, z = mj.geom_size[geom]
    if kind == _GEOM.mjGEOM_PLANE:
        yield from _squares(x, y, tile, whole_planes)
    elif kind == _GEOM.mjGEOM_SPHERE:
        yield _Piece(SPHERE, (x, x, x))
    elif kind == _GEOM.mjGEOM_ELLIPSOID:
        yield _Piece(SPHERE, (x, y, z))
    elif kind == _GEOM.mjGEOM_BOX:
        yield _Piece(BOX, (x, y, z))
    elif kind == _GEOM.mjGEOM_CYLINDER:
        yield _Piece(CYLINDER, (x, x, y))
    elif kind == _GEOM.mjGEOM_CAPSULE:
        end = np.array([0, 0, y])
        yield _Piece(TUBE, (x, x, y))
        yield _Piece(CAP, (x, x, x), end)
        yield _Piece(CAP, (x, x, x), -end, _UPSIDE_DOWN)
    else:
        if (kind, data) not in shapes:
            shapes[kind, data] = hfield_shape(mj, data) if kind == _GEOM.mjGEOM_HFIELD else mesh_shape(mj, data)
        yield _Piece(shapes[kind, data], (1.0, 1.0, 1.0))


def _squares(half_x: float, half_y: float, tile: float, whole: bool) -> Iterator[_Piece]:
    """Yield the squares of a plane, light and dark by turns. A half side of zero has no end."""
    most = 5 * tile if whole else tile / 2
    half = np.array([min(size or most, np.inf if whole else most) for size in (half_x, half_y)])
    x_count, y_count = np.clip(np.ceil(2 * half * _SQUARES / tile - 1e-9), 1, _MOST_SQUARES).astype(int)
    side = half / (x_count, y_count)
    for i, j in np.ndindex(x_count, y_count):
        middle = np.append((2 * np.array([i, j]) + 1) * side - half, 0)
        yield _Piece(SQUARE, (*side, 1.0), middle, shade=_DARKER if (i + j) % 2 else 1.0)


def geom_rgba(mj: mujoco.MjModel, geom: int) -> np.ndarray:
    """Return the colour of a geom as MuJoCo draws it, (4,), with a texture reduced to its mean colour."""
    rgba = np.array(mj.geom_rgba[geom], float)
    material = int(mj.geom_matid[geom])
    if material < 0:
        return rgba
    if np.allclose(rgba, _PLAIN):
        rgba = np.array(mj.mat_rgba[material], float)
    for role in _COLOUR_MAPS:
        texture = int(mj.mat_texid[material, int(role)])
        if texture >= 0:
            rgba[:3] *= _mean_colour(mj, texture)
            break
    return rgba


def _mean_colour(mj: mujoco.MjModel, texture: int) -> np.ndarray:
    channels = int(mj.tex_nchannel[texture])
    size = int(mj.tex_width[texture]) * int(mj.tex_height[texture]) * channels
    first = int(mj.tex_adr[texture])
    return np.asarray(mj.tex_data[first : first + size].reshape(-1, channels)[:, :3].mean(0) / 255)


def spacing(mj: mujoco.MjModel) -> float:
    """Return a distance of neighbouring worlds at which they do not touch in their initial state [m].

    Planes do not count, because they have no end or belong to all worlds.
    """
    data = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, data)
    solid = mj.geom_type != int(_GEOM.mjGEOM_PLANE)
    if not solid.any():
        return float(2 * mj.stat.extent)
    centre, reach = data.geom_xpos[solid, :2], mj.geom_rbound[solid, None]
    wanders = (mj.jnt_type == _JOINT.mjJNT_FREE) | (mj.jnt_type == _JOINT.mjJNT_SLIDE) & ~_limited(mj)
    diameter = max(np.max(centre + reach, axis=0) - np.min(centre - reach, axis=0))
    return float((_WIDE_GAP if wanders.any() else _GAP) * diameter)


def _limited(mj: mujoco.MjModel) -> np.ndarray:
    return np.asarray(mj.jnt_limited, bool)


def grid_offsets(count: int, side: float) -> np.ndarray:
    """Return where the worlds lie, (count, 3) [m]: row by row in a square grid around the origin."""
    columns = int(np.ceil(np.sqrt(count)))
    rows = -(-count // columns)
    row, column = np.divmod(np.arange(count), columns)
    places = np.stack([column - (columns - 1) / 2, (rows - 1) / 2 - row, np.zeros(count)], 1)
    return side * places


def place(draw: Draw, xpos: np.ndarray, xmat: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the poses of all copies of a shape in several worlds, world by world.

    Args:
        draw: the copies in one world, n of them.
        xpos: `geom_xpos` of the worlds, (worlds, ngeom, 3) [m].
        xmat: `geom_xmat` of the worlds, (worlds, ngeom, 3, 3).
        offsets: where the worlds lie, (worlds, 3) [m].

    Returns:
        Positions (worlds * n, 3) [m] and quaternions (worlds * n, 4), real part first.
    """
    geom_mat = xmat[:, draw.geom]
    positions = xpos[:, draw.geom] + offsets[:, None] + np.einsum("wnij,nj->wni", geom_mat, draw.pos)
    return positions.reshape(-1, 3), quaternions((geom_mat @ draw.mat).reshape(-1, 3, 3))


def quaternions(mat: np.ndarray) -> np.ndarray:
    """Return the unit quaternions of rotation matrices, (n, 3, 3) to (n, 4), real part first."""
    xx, yy, zz = mat[:, 0, 0], mat[:, 1, 1], mat[:, 2, 2]
    # Four times the outer product of the quaternion with itself. Its row of the largest component is the most exact.
    outer = np.empty((len(mat), 4, 4))
    outer[:, 0, 0], outer[:, 1, 1] = 1 + xx + yy + zz, 1 + xx - yy - zz
    outer[:, 2, 2], outer[:, 3, 3] = 1 - xx + yy - zz, 1 - xx - yy + zz
    for i, j in ((0, 1), (1, 2), (2, 0)):
        k = 3 - i - j
        outer[:, 0, k + 1] = outer[:, k + 1, 0] = mat[:, j, i] - mat[:, i, j]
        outer[:, i + 1, j + 1] = outer[:, j + 1, i + 1] = mat[:, j, i] + mat[:, i, j]
    best = np.argmax(np.diagonal(outer, axis1=1, axis2=2), axis=1)
    rows = outer[np.arange(len(mat)), best]
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
