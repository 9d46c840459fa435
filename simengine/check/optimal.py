"""Contacts of meshes that MuJoCo does not find, or whose touching features are not certain.

Along the normal of a correct contact, two convex shapes have the distance that the contact states. Among nearly flat
facets, MuJoCo's search over the edges of a hull can stop early; then the shapes are closer than the contact states.

The number of contacts depends on whether a corner, an edge or a face touches. The hulls of meshes from CAD have corners
that are off a face by no more than the rounding of their coordinates, so whether these touch too is not certain.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

_SLACK = 1e-5  # relative to the geoms' size, for distances
_EXACTLY = 1e-13  # [m] largest distance from a face of a corner that belongs to it
_NEARLY = {"float64": 2e-6, "float32": 2e-5}  # relative to the geoms' size: of one that may touch
_SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX, _MESH = 2, 3, 4, 5, 6, 7  # MuJoCo's mjtGeom


def are_optimal(mj: mujoco.MjModel, data: mujoco.MjData) -> bool:
    """Whether all contacts of meshes are right, except those with planes and height fields.

    Args:
        mj: a model whose pairs have one contact each.
        data: after collision detection.
    """
    kind = mj.geom_type
    for (geom1, geom2), dist, frame in zip(data.contact.geom, data.contact.dist, data.contact.frame, strict=True):
        if _MESH not in (kind[geom1], kind[geom2]) or min(kind[geom1], kind[geom2]) < _SPHERE:
            continue
        apart = -reach(mj, data, geom1, frame[:3]) - reach(mj, data, geom2, -frame[:3])
        size = max(mj.geom_rbound[geom1], mj.geom_rbound[geom2])
        if abs(apart - dist) > _SLACK * size:
            return False
    return True


def are_clear(mj: mujoco.MjModel, data: mujoco.MjData, dtype: str) -> bool:
    """Whether every corner of a box or mesh near another one, or near a capsule, clearly touches or clearly does not.

    Args:
        mj: a model whose pairs have one contact each.
        data: after the collisions.
        dtype: "float32" or "float64", the precision that is compared with MuJoCo.
    """
    kind, flat = mj.geom_type, (_CAPSULE, _BOX, _MESH)
    for geoms, frame in zip(data.contact.geom, data.contact.frame, strict=True):
        if _MESH not in kind[geoms] or not all(k in flat for k in kind[geoms]):
            continue
        slack = slack_of(mj, geoms, dtype)
        for geom, direction in zip(geoms.tolist(), (frame[:3], -frame[:3]), strict=True):
            if kind[geom] == _MESH:
                height = _corners(mj, geom) @ (data.geom_xmat[geom].reshape(3, 3).T @ direction)
                below = height.max() - height
                if ((below > _EXACTLY) & (below < slack)).any():
                    return False
    return True


def slack_of(mj: mujoco.MjModel, geoms: Sequence[int] | np.ndarray, dtype: str) -> float:
    """Distance up to which a corner of two geoms may touch in a precision [m]."""
    return _NEARLY[dtype] * float(mj.geom_rbound[list(geoms)].sum())


def _corners(mj: mujoco.MjModel, geom: int) -> np.ndarray:
    """Vertices of a mesh in the geom's frame, (n, 3) [m]."""
    mesh = int(mj.geom_dataid[geom])
    return np.asarray(mj.mesh_vert[mj.mesh_vertadr[mesh] :][: mj.mesh_vertnum[mesh]])


def reach(mj: mujoco.MjModel, data: mujoco.MjData, geom: int, direction: np.ndarray) -> float:
    """Support function of a convex geom along a unit vector, from the world's origin [m]."""
    local = data.geom_xmat[geom].reshape(3, 3).T @ direction
    size, kind = mj.geom_size[geom], mj.geom_type[geom]
    if kind == _MESH:
        own = (_corners(mj, geom) @ local).max()
    elif kind == _BOX:
        own = size @ np.abs(local)
    elif kind == _ELLIPSOID:
        own = np.linalg.norm(size * local)
    else:
        along = size[1] * abs(local[2]) if kind in (_CAPSULE, _CYLINDER) else 0.0
        own = along + size[0] * (np.hypot(local[0], local[1]) if kind == _CYLINDER else 1.0)
    return float(data.geom_xpos[geom] @ direction + own)
