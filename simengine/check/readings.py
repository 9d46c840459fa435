"""Which sensor readings are forces, or differences of them: they are no more accurate than forces on bodies are."""

from __future__ import annotations

import mujoco
import numpy as np

_SENSOR, _DATA = mujoco.mjtSensor, mujoco.mjtConDataField
_BETWEEN_BODIES = (int(_SENSOR.mjSENS_FORCE), int(_SENSOR.mjSENS_TORQUE))
_OF_CONTACTS = (_DATA.mjCONDATA_FORCE, _DATA.mjCONDATA_TORQUE)
_SINGLE = (_DATA.mjCONDATA_FOUND, _DATA.mjCONDATA_DIST)  # one number; others are vectors


def force_readings(mj: mujoco.MjModel) -> np.ndarray:
    """(nsensordata,) whether a reading is a force or torque between bodies or of contacts."""
    found = np.repeat(np.isin(mj.sensor_type, _BETWEEN_BODIES), mj.sensor_dim)
    for sensor in np.flatnonzero(np.asarray(mj.sensor_type) == int(_SENSOR.mjSENS_CONTACT)).tolist():
        first, number = int(mj.sensor_adr[sensor]), int(mj.sensor_dim[sensor])
        of_contact = _of_contact(int(mj.sensor_intprm[sensor, 0]))
        found[first : first + number] = np.resize(of_contact, number)
    return found


def _of_contact(fields: int) -> np.ndarray:
    """Whether each number that a sensor of contacts tells of one contact is part of a force; its fields are bits."""
    told = [_DATA(k) for k in range(int(_DATA.mjNCONDATA)) if fields >> k & 1]
    return np.concatenate([np.full(1 if field in _SINGLE else 3, field in _OF_CONTACTS) for field in told])
