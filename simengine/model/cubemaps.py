"""Cube maps of hulls: for each direction, the few vertices of a hull that may be farthest along it.

A direction meets the surface of a cube, whose faces are divided into square cells. Each cell lists the vertices that
are farthest along some direction through it. On a face of the cube, how far a vertex is along a direction is a linear
function of the place, so a vertex that another one beats at the four corners of a cell is beaten in the whole cell.

A look at the vertices of one cell finds the same vertex as a look at all, whatever came before: cells are taken a
little too large, and a vertex must be beaten by more than rounding errors, so that ties are decided in the same way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LOOKS_AT_ALL = 16
"""Hulls with at most so many vertices have one cell; on a CPU a look at 25 takes as long as one at a cell."""

_MOST_SIDE = 64  # cells along an edge of the cube
_CELLS_A_VERTEX = 2  # finer cells cost memory and gain nothing
_FEW = 3  # vertices of a cell, on average, that need no finer cells
_EDGE = 1e-5  # by how much a cell is enlarged, in half edges of the cube; single precision errs by less than 1e-6
_PACK = 4  # vertices that are looked at together
_MOST_PACKS = 2**18  # with 64 bytes each; more would not stay in the cache of a GPU
_ROUNDING = 4e-6  # difference of heights that may be rounding, relative to the hull's size; single precision: 1e-6


class CubeMap(NamedTuple):
    """The cube map of one hull.

    Attributes:
        side: cells along an edge of the cube; 0 if a single cell lists all vertices.
        adr: (cells + 1,) first entry of each cell in `vert`. The faces of the cube are +x, -x, +y, -y, +z and -z. The
            cells of a face run along the axis that follows the face's own (x, y, z, x, ...), and then along the other.
        vert: vertices of the cells, in ascending order within each.
    """

    side: int
    adr: np.ndarray
    vert: np.ndarray


def cell_packs(adr: np.ndarray, vert: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The vertices of cells with their places, four to a pack, so that a look at a cell reads one line of memory.

    Args:
        adr: (cells + 1,) first entry of each cell in `vert`.
        vert: (n,) vertices of the cells.
        points: (n, 3) where they are [m], in single precision, as MuJoCo stores them.

    Returns:
        (packs, 16) int32. A pack has four places along x as the bits of floats, then along y and along z, and then the
        four vertices; the last vertex of a cell is repeated. The first pack of each cell comes first. Where a cell has
        more, the first one has, instead of its vertices, minus the distance to the next pack of the cell, and the
        number of those that follow each other there. There are none if they would be too many.
    """
    cells, number = len(adr) - 1, np.diff(adr)
    more = (number - 1) // _PACK
    if cells + more.sum() > _MOST_PACKS:
        return np.zeros((0, 4 * _PACK), np.int32)
    first = np.cumsum(more) - more
    cell = np.concatenate([np.arange(cells), np.repeat(np.arange(cells), more)])
    turn = np.concatenate([np.zeros(cells, int), 1 + np.arange(more.sum()) - np.repeat(first, more)])
    entry = adr[cell][:, None] + np.minimum(_PACK * turn[:, None] + np.arange(_PACK), number[cell][:, None] - 1)
    places = np.asarray(points, np.float32)[entry].transpose(0, 2, 1).reshape(-1, 3 * _PACK)
    packs = np.concatenate([np.ascontiguousarray(places).view(np.int32), vert[entry].astype(np.int32)], axis=1)
    large = np.flatnonzero(more)
    packs[large, 3 * _PACK] = large - cells - first[large]
    packs[large, 3 * _PACK + 1] = more[large]
    return packs


class _Lists(NamedTuple):
    """Vertices of the cells, cell by cell: the cell of each entry, as its face and its place, and the vertex."""

    face: np.ndarray
    row: np.ndarray
    column: np.ndarray
    vert: np.ndarray


def cube_map(vert: np.ndarray) -> CubeMap:
    """The cube map of a hull.

    Args:
        vert: (n, 3) vertices of the hull [m], in any order; points inside it do no harm.
    """
    number = len(vert)
    if number <= LOOKS_AT_ALL:
        return CubeMap(0, np.array([0, number]), np.arange(number))
    face = np.repeat(np.arange(6), number)
    lists, side = _Lists(face, 0 * face, 0 * face, np.tile(np.arange(number), 6)), 1
    while side < _MOST_SIDE and _FEW * 6 * side**2 < len(lists.vert) and 6 * side**2 < _CELLS_A_VERTEX * number:
        side *= 2
        lists = _contenders(vert, _halved(lists), side)
    cell = (lists.face * side + lists.row) * side + lists.column
    return CubeMap(side, np.searchsorted(cell, np.arange(6 * side**2 + 1)), lists.vert)


def _halved(lists: _Lists) -> _Lists:
    """The same vertices in each of the four cells that a cell is divided into, cell by cell."""
    parts = [
        _Lists(lists.face, 2 * lists.row + row, 2 * lists.column + column, lists.vert)
        for row in (0, 1)
        for column in (0, 1)
    ]
    face, row, column, vert = (np.concatenate(values) for values in zip(*parts, strict=True))
    order = np.lexsort((vert, column, row, face))
    return _Lists(face[order], row[order], column[order], vert[order])


def _contenders(vert: np.ndarray, lists: _Lists, side: int) -> _Lists:
    """The lists without vertices that another one beats in their whole cell; at least one stays in each.

    Args:
        vert: (n, 3) vertices [m].
        lists: the lists, cell by cell.
        side: cells along an edge of the cube.
    """
    axis = lists.face // 2
    point = vert[lists.vert]
    up = np.where(lists.face % 2, -1, 1) * np.take_along_axis(point, axis[:, None], 1)[:, 0]
    along, other = (np.take_along_axis(point, (axis[:, None] + k) % 3, 1)[:, 0] for k in (1, 2))
    cell = (lists.face * side + lists.row) * side + lists.column
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    own = np.repeat(np.arange(len(first)), np.diff(first, append=len(cell)))

    # how far the vertices are along the directions through the four corners of their cell
    ends = [[(2 * place + 1 + end) / side - 1 + end * _EDGE for end in (-1, 1)] for place in (lists.column, lists.row)]
    corners = np.stack([up + u * along + v * other for u in ends[0] for v in ends[1]])
    slack = _ROUNDING * np.sqrt((vert**2).sum(axis=1).max())
    kept = np.ones(len(cell), bool)
    # the farthest ones at the corners of a cell beat most others
    for height in corners:
        top = np.flatnonzero(height == np.maximum.reduceat(height, first)[own])
        best = top[np.searchsorted(own[top], own)]
        kept &= ~(corners[:, best] > corners + slack).all(axis=0)
    return _Lists(*(values[kept] for values in lists))
