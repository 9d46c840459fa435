"""Readings of touch sensors that rounding decides, because the line of a force passes the edge of the sensor's site.

The case is not rare: if the sites that tile a capsule meet on its axis, the line of every contact with the capsule
passes through their common edge.
"""

from __future__ import annotations

import mujoco
import numpy as np

_SLACK = 1e-4  # fraction of its size by which a site is enlarged and reduced


def undecided_touch(mj: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Indices in `sensordata` of the readings that a slightly larger or smaller site would change.

    Args:
        mj: the model.
        data: evaluated up to the forces.
    """
    sensors = np.flatnonzero(mj.sensor_type == int(mujoco.mjtSensor.mjSENS_TOUCH))
    if not sensors.size or not data.ncon:
        return np.zeros(0, dtype=int)
    bodies = mj.geom_bodyid[data.contact.geom]
    force = np.zeros((data.ncon, 6))
    for k in range(data.ncon):
        mujoco.mj_contactForce(mj, data, k, force[k])
    undecided = []
    for sensor in sensors.tolist():
        site = mj.sensor_objid[sensor]
        own = bodies == mj.site_bodyid[site]
        for k in np.flatnonzero(own.any(axis=1) & (force[:, 0] > 0)).tolist():
            line = data.contact.frame[k, :3] * (-1.0 if own[k, 1] else 1.0)
            hits = [_meets(mj, data, site, data.contact.pos[k], line, 1 + slack) for slack in (-_SLACK, _SLACK)]
            if hits[0] != hits[1]:
                undecided.append(mj.sensor_adr[sensor])
                break
    return np.array(undecided, dtype=int)


def _meets(
    mj: mujoco.MjModel, data: mujoco.MjData, site: int, origin: np.ndarray, line: np.ndarray, scale: float
) -> bool:
    """Whether a ray hits a site of `scale` times its size."""
    pose = data.site_xpos[site], data.site_xmat[site]
    return mujoco.mju_rayGeom(*pose, scale * mj.site_size[site], origin, line, mj.site_type[site]) >= 0
