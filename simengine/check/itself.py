"""How deep a geom is in itself, which a sensor of the distance of a geom from its own body measures.

Centres that coincide are no start for MuJoCo's search: of a box in some poses it gives 0, and of smooth shapes up to
two percent less than the depth. The depth of a symmetric shape in itself is its least width.
"""

from __future__ import annotations

import mujoco
import numpy as np

_TYPE = mujoco.mjtGeom
_OFF = int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
_SIZES = {  # number of sizes of which the least is half the least width
    _TYPE.mjGEOM_SPHERE: 1,
    _TYPE.mjGEOM_CAPSULE: 1,
    _TYPE.mjGEOM_CYLINDER: 2,
    _TYPE.mjGEOM_ELLIPSOID: 3,
    _TYPE.mjGEOM_BOX: 3,
}


def own_depths(mj: mujoco.MjModel) -> dict[int, float]:
    """Readings, by their index in `sensordata`, that the depth of some geom in itself bounds from above [m]."""
    found = {}
    for sensor in np.flatnonzero(np.asarray(mj.sensor_type) == int(mujoco.mjtSensor.mjSENS_GEOMDIST)).tolist():
        shared = common_geoms(mj, sensor)
        widths = [2 * mj.geom_size[g, :n].min() for g in shared if (n := _SIZES.get(_TYPE(mj.geom_type[g])))]
        if widths and not mj.opt.disableflags & _OFF:
            cutoff = float(mj.sensor_cutoff[sensor])
            deepest = float(max(widths))
            found[int(mj.sensor_adr[sensor])] = -min(deepest, cutoff) if cutoff > 0 else -deepest
    return found


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
