"""How deep a geom is in itself, which a sensor of the distance of a geom from its own body measures.

Centres that coincide are no start for MuJoCo's search: of a box or a mesh in some poses it gives 0, and of smooth
shapes up to two percent less than the depth. The depth of a symmetric shape in itself is its least width.
"""

from __future__ import annotations

import mujoco
import numpy as np

_TYPE, _SENSOR = mujoco.mjtGeom, mujoco.mjtSensor
_OFF = int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
_FAR = 1.0  # [m], beyond any distance of a geom from itself
_SIZES = {  # number of sizes of which the least is half the least width
    _TYPE.mjGEOM_SPHERE: 1,
    _TYPE.mjGEOM_CAPSULE: 1,
    _TYPE.mjGEOM_CYLINDER: 2,
    _TYPE.mjGEOM_ELLIPSOID: 3,
    _TYPE.mjGEOM_BOX: 3,
}


def with_own_depths(mj: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """`sensordata` with exact depths of geoms in themselves; nan where they are not known.

    Args:
        mj: the model.
        data: evaluated up to the positions.
    """
    readings = np.array(data.sensordata)
    if mj.opt.disableflags & _OFF:
        return readings
    for sensor in np.flatnonzero(np.asarray(mj.sensor_type) == int(_SENSOR.mjSENS_GEOMDIST)).tolist():
        place, cutoff = int(mj.sensor_adr[sensor]), float(mj.sensor_cutoff[sensor]) or np.inf
        for geom in sorted(common_geoms(mj, sensor)):
            kind = _TYPE(mj.geom_type[geom])
            if number := _SIZES.get(kind):
                width = 2 * float(mj.geom_size[geom, :number].min())
                readings[place] = min(readings[place], -min(width, cutoff))
            elif kind == _TYPE.mjGEOM_MESH and not mujoco.mj_geomDistance(mj, data, geom, geom, _FAR, None) < 0:
                readings[place] = np.nan
    return readings


def common_geoms(mj: mujoco.MjModel, sensor: int) -> set[int]:
    """The geoms that both sides of a sensor of nearest points name."""
    sides = (mj.sensor_objtype, mj.sensor_objid), (mj.sensor_reftype, mj.sensor_refid)
    one, other = (_geoms(mj, int(kinds[sensor]), int(numbers[sensor])) for kinds, numbers in sides)
    return one & other


def _geoms(mj: mujoco.MjModel, kind: int, number: int) -> set[int]:
    """The geoms that a side of such a sensor names: one, or all of a body."""
    if kind == mujoco.mjtObj.mjOBJ_GEOM:
        return {number}
    return set(np.flatnonzero(mj.geom_bodyid == number).tolist()) if kind == mujoco.mjtObj.mjOBJ_BODY else set()
