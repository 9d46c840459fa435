"""Four corners of a mesh's flat face that span a large area, for contacts with planes.

They depend only on the face and on the first corner, so they are computed once, at load. This is done in double
precision, because areas in symmetric faces often differ by rounding alone.
"""

from __future__ import annotations

import math

import numpy as np

CORNERS = 4

_Point = tuple[float, float, float]


def face_spans(vert: np.ndarray, face: np.ndarray) -> np.ndarray:
    """Four corners for each corner of the face, which is the first of the four.

    Args:
        vert: (n, 3) vertices.
        face: (m,) vertices around a convex face.

    Returns:
        (m, 4) vertices; faces with fewer corners repeat the first ones.
    """
    points: list[_Point] = [(x, y, z) for x, y, z in vert[face].tolist()]
    starts = range(len(face))
    spans = [_span(points[start:] + points[:start]) for start in starts]
    return face[(np.arange(len(face))[:, None] + np.array(spans, dtype=int).reshape(-1, CORNERS)) % max(1, len(face))]


def _span(corner: list[_Point]) -> list[int]:
    """Four corners that include the first. The others advance while the area of the four grows: the third and the
    second after each step of the fourth. Corners of a face that is not quite flat may stand back, so that one is left
    out and two of the four meet. This is MuJoCo's rule, found by experiment; the area is not always the largest."""
    number, quad = len(corner), list(range(CORNERS))
    if number <= CORNERS:
        return quad
    area = _area(*corner[:CORNERS])

    def moves_on(which: int) -> bool:
        nonlocal area
        if quad[which] + 1 >= number:
            return False
        quad[which] += 1
        a, b, c, d = quad
        other = _area(corner[a], corner[b], corner[c], corner[d])
        if other > area:
            area = other
            return True
        quad[which] -= 1
        return False

    while moves_on(3):
        while moves_on(2):
            pass
        while moves_on(1):
            pass
    return quad


def _area(a: _Point, b: _Point, c: _Point, d: _Point) -> float:
    """Twice the area of a quadrilateral."""
    (ax, ay, az), (bx, by, bz), (cx, cy, cz), (dx, dy, dz) = a, b, c, d
    ux, uy, uz, vx, vy, vz = cx - ax, cy - ay, cz - az, dx - bx, dy - by, dz - bz
    x, y, z = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    return math.sqrt(x * x + y * y + z * z)
