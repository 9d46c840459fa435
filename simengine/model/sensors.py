"""Table fields of sensors: what each measures, and in which frame; and the sensors that the engine lacks.

A frame belongs to a body, or to a site, geom or camera that is fixed in a body. The table stores the body and the pose
in it, so that no stage has to distinguish these.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import mujoco
import numpy as np

from simengine.model.codes import among
from simengine.model.distances import DISTANCES, distance_table, unsupported_distances

_OBJ = mujoco.mjtObj
_SENSOR = mujoco.mjtSensor

SENSORS: dict[str, tuple[str, ...]] = {
    "pos": (
        *("JOINTPOS", "TENDONPOS", "ACTUATORPOS", "JOINTLIMITPOS", "TENDONLIMITPOS", "MAGNETOMETER"),
        *("FRAMEPOS", "FRAMEQUAT", "FRAMEXAXIS", "FRAMEYAXIS", "FRAMEZAXIS", "SUBTREECOM", "CLOCK", "E_POTENTIAL"),
        *("RANGEFINDER", "INSIDESITE", "BALLQUAT", "CAMPROJECTION"),
    ),
    "vel": (
        *("JOINTVEL", "TENDONVEL", "ACTUATORVEL", "JOINTLIMITVEL", "TENDONLIMITVEL", "VELOCIMETER", "GYRO"),
        *("FRAMELINVEL", "FRAMEANGVEL", "SUBTREELINVEL", "SUBTREEANGMOM", "E_KINETIC", "BALLANGVEL"),
    ),
    "acc": (
        *("ACCELEROMETER", "FORCE", "TORQUE", "FRAMELINACC", "FRAMEANGACC"),
        *("ACTUATORFRC", "JOINTACTFRC", "TENDONACTFRC", "TOUCH", "JOINTLIMITFRC", "TENDONLIMITFRC", "CONTACT"),
    ),
    "distance": DISTANCES,
}
"""Supported sensors (mjtSensor without its prefix), by the part of an evaluation that measures them."""

MAX_SENSOR_DIM = 4
"""Most entries of one sensor, contact and distance sensors excepted."""

CONTACT_REDUCTIONS = ("NONE", "MINDIST", "MAXFORCE", "NETFORCE")
"""How a contact sensor reduces the contacts that it finds, in the order of the codes in sensor_intprm."""

NO_SENSOR = -1
"""`sensor_type` of sensors that a flag disables; their readings are zero."""

_RAYS = tuple(
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}"))
    for name in ("PLANE", "HFIELD", "SPHERE", "CAPSULE", "ELLIPSOID", "CYLINDER", "BOX")
)
_LIMIT_OF = ("POS", "VEL", "FRC")
_POSES = {
    _OBJ.mjOBJ_BODY: ("body_ipos", "body_iquat", None),
    _OBJ.mjOBJ_GEOM: ("geom_pos", "geom_quat", "geom_bodyid"),
    _OBJ.mjOBJ_SITE: ("site_pos", "site_quat", "site_bodyid"),
    _OBJ.mjOBJ_CAMERA: ("cam_pos", "cam_quat", "cam_bodyid"),
}


@cache
def sensor_code(name: str) -> int:
    """MuJoCo's number of a sensor type."""
    return int(_SENSOR.__members__[f"mjSENS_{name}"])


def sensor_table(mj: mujoco.MjModel) -> dict[str, Any]:
    """The derived table fields of sensors."""
    frames = [[_frame(mj, t, i) for t, i in zip(types, ids, strict=True)] for types, ids in _objects(mj)]
    measured, reference = ([list(column) for column in zip(*side, strict=True)] or [[], [], []] for side in frames)
    sites = _zones(mj)
    return {
        "sensor_type": np.where(_silent(mj), NO_SENSOR, mj.sensor_type),
        "sensor_bodyid": np.reshape([*measured[0], *reference[0]], (2, mj.nsensor)).T,
        "sensor_pos": _both(measured[1], reference[1], 3),
        "sensor_quat": _both(measured[2], reference[2], 4),
        "sensor_site": [int(mj.site_type[site]) if site >= 0 else -1 for site in sites],
        "sensor_size": np.reshape([mj.site_size[site] if site >= 0 else np.zeros(3) for site in sites], (-1, 3)),
        "sensor_match": _matches(mj),
        "sensor_prm": mj.sensor_intprm[:, :3],
        "sensor_lens": _lenses(mj),
        **distance_table(mj),
        "geom_visible": _visible(mj),
        "opt_magnetic": mj.opt.magnetic,
    }


def _lenses(mj: mujoco.MjModel) -> np.ndarray:
    """(nsensor, 4) focal lengths and half resolution of the camera of a `camprojection` sensor, x then y [pixels]."""
    lens = np.zeros((mj.nsensor, 4))
    for i in np.flatnonzero(mj.sensor_type == sensor_code("CAMPROJECTION")):
        camera = mj.sensor_refid[i]
        pixels, chip = mj.cam_resolution[camera].astype(float), mj.cam_sensorsize[camera].astype(float)
        if chip[1]:
            focal = mj.cam_intrinsic[camera, :2] / chip * pixels
        else:
            focal = np.full(2, 0.5 * pixels[1] / np.tan(np.radians(mj.cam_fovy[camera]) / 2))
        lens[i] = *focal, *(0.5 * pixels)
    return lens


def _zones(mj: mujoco.MjModel) -> np.ndarray:
    """(nsensor,) site whose volume a sensor tests, -1 for none."""
    zone = np.full(mj.nsensor, -1)
    inside, touch = (mj.sensor_type == sensor_code(name) for name in ("INSIDESITE", "TOUCH"))
    in_site = (mj.sensor_type == sensor_code("CONTACT")) & (mj.sensor_objtype == _OBJ.mjOBJ_SITE)
    zone[in_site] = mj.sensor_objid[in_site]
    zone[inside], zone[touch] = mj.sensor_refid[inside], mj.sensor_objid[touch]
    return zone


def _matches(mj: mujoco.MjModel) -> np.ndarray:
    """(nsensor, 2, 3) criteria for the geoms of a contact: 1 for a geom, 0 for a body; lowest and highest id."""
    match = np.zeros((mj.nsensor, 2, 3), int)
    for side, (types, ids) in enumerate(_objects(mj)):
        for i in np.flatnonzero(mj.sensor_type == sensor_code("CONTACT")):
            number = int(ids[i])
            if types[i] == _OBJ.mjOBJ_GEOM:
                match[i, side] = 1, number, number
            elif types[i] == _OBJ.mjOBJ_BODY:
                match[i, side] = 0, number, number
            elif types[i] == _OBJ.mjOBJ_XBODY:
                members = [b for b in range(number, mj.nbody) if _is_within(mj, b, number)]
                match[i, side] = 0, number, members[-1]
            else:
                match[i, side] = 0, 0, mj.nbody
    return match


def _is_within(mj: mujoco.MjModel, body: int, root: int) -> bool:
    """Whether a body is in the subtree of another."""
    while body > root:
        body = int(mj.body_parentid[body])
    return body == root


def _visible(mj: mujoco.MjModel) -> np.ndarray:
    """(ngeom,) bool: whether rays hit the geom; they pass through geoms of transparent colour."""
    if not mj.nmat:
        return np.asarray(mj.geom_rgba[:, 3] != 0)
    return np.where(mj.geom_matid >= 0, mj.mat_rgba[np.maximum(mj.geom_matid, 0), 3], mj.geom_rgba[:, 3]) != 0


def sensor_names(table: np.ndarray) -> np.ndarray:
    """(nsensor,) names of the types in the table field sensor_type, empty for disabled sensors."""
    return np.array([_SENSOR(t).name.removeprefix("mjSENS_") if t != NO_SENSOR else "" for t in table], dtype=str)


def measured_in(mj: mujoco.MjModel, part: str) -> np.ndarray:
    """(nsensor,) bool: whether the sensor is measured in the given part of an evaluation, a key of SENSORS."""
    return among(mj.sensor_type, *map(sensor_code, SENSORS[part])) if mj.nsensor else np.zeros(0, dtype=bool)


def _silent(mj: mujoco.MjModel) -> np.ndarray:
    """(nsensor,) bool: whether a flag disables the sensor, or the limit that it measures does not exist."""
    bits = mujoco.mjtDisableBit
    flags = mj.opt.disableflags
    if flags & int(bits.mjDSBL_SENSOR):
        return np.ones(mj.nsensor, dtype=bool)
    no_limits = bool(flags & (int(bits.mjDSBL_LIMIT) | int(bits.mjDSBL_CONSTRAINT)))
    silent = np.zeros(mj.nsensor, dtype=bool)
    for kind, limited in (("JOINT", mj.jnt_limited), ("TENDON", mj.tendon_limited)):
        shown = among(mj.sensor_type, *(sensor_code(f"{kind}LIMIT{what}") for what in _LIMIT_OF))
        silent[shown] = no_limits | (limited[mj.sensor_objid[shown]] == 0)
    return silent


def _objects(mj: mujoco.MjModel) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    return (mj.sensor_objtype, mj.sensor_objid), (mj.sensor_reftype, mj.sensor_refid)


def _both(measured: list[np.ndarray], reference: list[np.ndarray], width: int) -> np.ndarray:
    sides = [np.reshape(side, (-1, width)) for side in (measured, reference)]
    return np.stack(sides, axis=1)


def _frame(mj: mujoco.MjModel, objtype: int, objid: int) -> tuple[int, np.ndarray, np.ndarray]:
    """Body of an object (-1 for none), and the object's position and orientation in it."""
    nowhere = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    kind = _OBJ(objtype)
    if objid < 0 or kind not in (_OBJ.mjOBJ_XBODY, *_POSES):
        return -1, *nowhere
    if kind == _OBJ.mjOBJ_XBODY:
        return objid, *nowhere
    pos, quat, bodies = _POSES[kind]
    body = objid if bodies is None else int(getattr(mj, bodies)[objid])
    return body, getattr(mj, pos)[objid], getattr(mj, quat)[objid]


def inertial_frames(mj: mujoco.MjModel) -> np.ndarray:
    """(nsensor, 2) body whose inertial frame is a sensor's measured or reference frame; -1 for other frames."""
    sides = [np.where(types == int(_OBJ.mjOBJ_BODY), ids, -1) for types, ids in _objects(mj)]
    return np.stack(sides, axis=1)


def unsupported_sensors(mj: mujoco.MjModel) -> Iterator[tuple[str, int]]:
    """Unsupported features of each sensor, with the sensor's number."""
    known = {sensor_code(name) for names in SENSORS.values() for name in names}
    zones = _zones(mj)
    for i in range(mj.nsensor):
        kind = _SENSOR(mj.sensor_type[i])
        if int(kind) not in known:
            yield f"type {kind.name.removeprefix('mjSENS_').lower()}", i
        if mj.sensor_history[i].any() or mj.sensor_delay[i] or mj.sensor_interval[i].any():
            yield "history, delay or interval", i
        yield from ((feature, i) for feature in unsupported_distances(mj, i))
        if kind == _SENSOR.mjSENS_RANGEFINDER:
            yield from ((feature, i) for feature in _unsupported_rays(mj, i))
        if kind == _SENSOR.mjSENS_INSIDESITE and mj.sensor_intprm[i, 0]:
            yield "enclosed objects", i
        if (zone := zones[i]) >= 0 and mj.site_type[zone] == mujoco.mjtGeom.mjGEOM_MESH:
            yield "zone of type mesh", i
        for types, ids in _objects(mj):
            if types[i] == _OBJ.mjOBJ_CAMERA and mj.cam_mode[ids[i]] != mujoco.mjtCamLight.mjCAMLIGHT_FIXED:
                yield "camera that follows something", i


def _unsupported_rays(mj: mujoco.MjModel, sensor: int) -> Iterator[str]:
    """Unsupported features of a rangefinder."""
    if mj.sensor_objtype[sensor] != _OBJ.mjOBJ_SITE:
        yield "rays of a camera"
    if mj.sensor_dim[sensor] != 1 or mj.sensor_intprm[sensor, 0] != 1 << int(mujoco.mjtRayDataField.mjRAYDATA_DIST):
        yield "data other than dist"
    for kind in np.unique(mj.geom_type[_visible(mj)]):
        if int(kind) not in _RAYS:
            yield f"ray against type {mujoco.mjtGeom(kind).name.removeprefix('mjGEOM_').lower()}"
