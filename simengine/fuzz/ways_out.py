"""The least way of a sphere or capsule out of a hull that its middle meets, exactly."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np

from simengine.check.solids import Hull, Round, Solid

_LENGTH = 1e-9  # of a cross product of unit vectors, below which they are parallel


def least_way_out(hull: Solid, ball: Solid) -> float | None:
    """Depth of a sphere or capsule in a hull [m]; None if the point or segment in its middle does not meet the hull.

    The difference of the hull and the segment is a polytope. Its faces are those of the hull, and those that an edge
    and the segment span. The least way of the segment out of the hull is along the normal of one of them, and the
    radius comes on top. Any two corners count as an edge: another plane around a polytope is no nearer than its faces.
    """
    if not isinstance(hull, Hull) or not isinstance(ball, Round):
        return None
    length = {mujoco.mjtGeom.mjGEOM_SPHERE: 0.0, mujoco.mjtGeom.mjGEOM_CAPSULE: ball.size[1]}.get(ball.kind)
    if length is None:
        return None
    axis, corners = ball.axes[:, 2], hull.corners - ball.centre
    edges = np.array([other - one for one, other in itertools.combinations(corners, 2)])
    edges /= np.linalg.norm(edges, axis=1, keepdims=True)
    spanned = np.cross(edges, axis)
    sizes = np.linalg.norm(spanned, axis=1, keepdims=True)
    normals = spanned[sizes[:, 0] > _LENGTH] / sizes[sizes[:, 0] > _LENGTH]
    ways = np.concatenate((hull.normals, normals, -normals)) if length else hull.normals
    out = float(((corners @ ways.T).max(axis=0) + length * np.abs(ways @ axis)).min())
    return out + float(ball.size[0]) if out > 0 else None
