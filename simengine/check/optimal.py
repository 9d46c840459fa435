"""Contacts of meshes that MuJoCo does not find: where it stops at points that are not the nearest ones.

Along the normal of a right contact two convex shapes are as far apart as the contact says. Among nearly flat facets
MuJoCo's search over the edges of a hull can end early; then they are nearer to each other than it says.
"""

from __future__ import annotations

import mujoco
import numpy as np

_SLACK = 1e-5  # of the geoms' size, in the distance
_SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX, _MESH = 2, 3, 4, 5, 6, 7  # MuJoCo's mjtGeom


def are_optimal(mj: mujoco.MjModel, data: mujoco.MjData) -> bool:
    """Whether all contacts of meshes with anything but planes and height fields are right.

    Args:
        mj: a model whose pairs have one contact each.
        data: after the collisions.
    """
    kind = mj.geom_type
    for (geom1, geom2), dist, frame in zip(data.contact.geom, data.contact.dist, data.contact.frame, strict=True):
        if _MESH not in (kind[geom1], kind[geom2]) or min(kind[geom1], kind[geom2]) < _SPHERE:
            continue
        apart = -_reach(mj, data, geom1, frame[:3]) - _reach(mj, data, geom2, -frame[:3])
        size = max(mj.geom_rbound[geom1], mj.geom_rbound[geom2])
        if abs(apart - dist) > _SLACK * size:
            return False
    return True


def _reach(mj: mujoco.MjModel, data: mujoco.MjData, geom: int, direction: np.ndarray) -> float:
    """How far a convex geom reaches along a unit vector, from the world's origin [m]."""
    local = data.geom_xmat[geom].reshape(3, 3).T @ direction
    size, kind = mj.geom_size[geom], mj.geom_type[geom]
    if kind == _MESH:
        mesh = mj.geom_dataid[geom]
        vert = mj.mesh_vert[mj.mesh_vertadr[mesh] :][: mj.mesh_vertnum[mesh]]
        own = (vert @ local).max()
    elif kind == _BOX:
        own = size @ np.abs(local)
    elif kind == _ELLIPSOID:
        own = np.linalg.norm(size * local)
    else:
        along = size[1] * abs(local[2]) if kind in (_CAPSULE, _CYLINDER) else 0.0
        own = along + size[0] * (np.hypot(local[0], local[1]) if kind == _CYLINDER else 1.0)
    return float(data.geom_xpos[geom] @ direction + own)
