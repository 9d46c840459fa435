"""Height fields: how many of a field's prisms a geom can touch.

MuJoCo collides a geom with two prisms for every cell under its bounding box, and lists at most mjMAXCONPAIR contacts.
"""

from __future__ import annotations

import mujoco
import numpy as np

_GEOM = mujoco.mjtGeom
_SLACK = 1e-5  # relative to a cell, for rounding in float32


def geom_hfields(mj: mujoco.MjModel) -> np.ndarray:
    """(ngeom,) height field of each geom, -1 for other geoms."""
    return np.where(mj.geom_type == int(_GEOM.mjGEOM_HFIELD), mj.geom_dataid, -1)


def most_cells(mj: mujoco.MjModel, field_geom: int, geom: int, reach: float) -> tuple[int, int]:
    """Most rows and columns of cells under a geom's bounding box, in any orientation.

    Args:
        mj: the model.
        field_geom: geom with a height field.
        geom: a convex geom.
        reach: distance below which contacts are listed [m].
    """
    field = int(mj.geom_dataid[field_geom])
    length = 2 * (_radius(mj, geom) + reach)
    cells = np.array([mj.hfield_nrow[field], mj.hfield_ncol[field]]) - 1
    sides = 2 * mj.hfield_size[field, [1, 0]] / cells
    rows, columns = np.minimum(np.ceil(length / sides + _SLACK) + 1, cells).astype(int).tolist()
    return rows, columns


def most_contacts(mj: mujoco.MjModel, field_geom: int, geom: int, reach: float) -> int:
    """Most contacts of the pair; see `most_cells`."""
    rows, columns = most_cells(mj, field_geom, geom, reach)
    return min(2 * rows * columns, int(mujoco.mjMAXCONPAIR))


def _radius(mj: mujoco.MjModel, geom: int) -> float:
    """Radius of a ball that contains the geom [m]."""
    if mj.geom_type[geom] != _GEOM.mjGEOM_MESH:
        return float(mj.geom_rbound[geom])
    mesh = int(mj.geom_dataid[geom])
    vert = mj.mesh_vert[mj.mesh_vertadr[mesh] :][: mj.mesh_vertnum[mesh]]
    return float(np.linalg.norm(vert - (vert.min(axis=0) + vert.max(axis=0)) / 2, axis=1).max())
