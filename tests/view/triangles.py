"""Rays on triangles, as an oracle that knows nothing of how the triangles were made."""

from __future__ import annotations

import numpy as np


def rotation(quaternion: np.ndarray) -> np.ndarray:
    """The rotation matrix of a unit quaternion, real part first."""
    w, v = quaternion[0], quaternion[1:]
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def nearest_hit(corners: np.ndarray, start: np.ndarray, direction: np.ndarray) -> float:
    """Distance along a ray to the nearest triangle that is seen from its front, in lengths of the direction; or -1.

    Args:
        corners: triangles, (n, 3, 3).
        start: start of the ray, (3,).
        direction: its direction, (3,).
    """
    edge1, edge2 = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    p = np.cross(direction, edge2)
    det = np.einsum("ni,ni->n", edge1, p)
    front = det > 1e-14
    scale = 1 / np.where(front, det, 1)
    s = start - corners[:, 0]
    q = np.cross(s, edge1)
    u, v, t = np.einsum("ni,ni->n", s, p) * scale, (q @ direction) * scale, np.einsum("ni,ni->n", edge2, q) * scale
    near = 1e-6  # a ray through an edge hits one of its sides
    hits = t[front & (u >= -near) & (v >= -near) & (u + v <= 1 + near) & (t > 0)]
    return float(hits.min()) if len(hits) else -1.0
