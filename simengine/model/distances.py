"""Pairs of geoms whose distance a sensor measures; MuJoCo documentation, "XML Reference", "sensor/distance"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import mujoco
import numpy as np

from simengine.model.pair_types import PAIR_CODE, PAIRS

DISTANCES = ("GEOMDIST", "GEOMNORMAL", "GEOMFROMTO")
"""Sensors (mjtSensor without its prefix) of the two nearest points of geoms, or of the geoms of bodies."""

_BY_SEARCH = ("convex", "box_box", "hfield")  # pair types whose distance MuJoCo finds by its flag nativeccd
_NOWHERE = {("plane", "plane"), ("plane", "hfield"), ("hfield", "hfield")}  # types that have no distance in MuJoCo


class DistancePair(NamedTuple):
    """Two geoms, the lower type first; index into PAIRS; 1, or -1 where the second is the sensor's first."""

    geom1: int
    geom2: int
    code: int
    sign: int


def _measures(mj: mujoco.MjModel, sensor: int) -> bool:
    return mujoco.mjtSensor(mj.sensor_type[sensor]).name.removeprefix("mjSENS_") in DISTANCES


def _pairs_of(mj: mujoco.MjModel, sensor: int) -> Iterator[tuple[int, int]]:
    """Pairs of geoms that a sensor looks at, in MuJoCo's order."""
    sides = []
    for kind, number in (
        (mj.sensor_objtype[sensor], int(mj.sensor_objid[sensor])),
        (mj.sensor_reftype[sensor], int(mj.sensor_refid[sensor])),
    ):
        first, count = (number, 1)
        if kind == mujoco.mjtObj.mjOBJ_BODY:
            first, count = int(mj.body_geomadr[number]), int(mj.body_geomnum[number])
        sides.append(range(first, first + count))
    return ((one, other) for one in sides[0] for other in sides[1])


def _types(mj: mujoco.MjModel, *geoms: int) -> tuple[str, str]:
    one, other = (mujoco.mjtGeom(mj.geom_type[geom]).name.removeprefix("mjGEOM_").lower() for geom in geoms)
    return one, other


def _in_order(mj: mujoco.MjModel, one: int, other: int) -> tuple[int, int]:
    return (other, one) if mj.geom_type[one] > mj.geom_type[other] else (one, other)


def distance_pairs(mj: mujoco.MjModel) -> list[list[DistancePair]]:
    """Of each sensor the pairs of geoms of which it tells the nearest; those without a distance are left out."""
    found: list[list[DistancePair]] = [[] for _ in range(mj.nsensor)]
    for sensor in filter(lambda i: _measures(mj, i), range(mj.nsensor)):
        for one, other in _pairs_of(mj, sensor):
            geoms = _in_order(mj, one, other)
            types = _types(mj, *geoms)
            if types not in _NOWHERE:
                sign = 1 if geoms == (one, other) else -1
                found[sensor].append(DistancePair(*geoms, PAIR_CODE[types], sign))
    return found


def distance_table(mj: mujoco.MjModel) -> dict[str, np.ndarray]:
    """The fields of the model table that tell of distances."""
    found = distance_pairs(mj)
    return {
        "sensor_distadr": np.cumsum([0, *map(len, found)]),
        "distance_pair": np.array([pair for pairs in found for pair in pairs], dtype=int).reshape(-1, 4),
    }


def measured_geoms(mj: mujoco.MjModel) -> set[int]:
    """Geoms whose distance from another is measured."""
    return {geom for pairs in distance_pairs(mj) for pair in pairs for geom in pair[:2]}


def unsupported_distances(mj: mujoco.MjModel, sensor: int) -> Iterator[str]:
    """What the engine lacks of a sensor of distances."""
    other_ccd = mj.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_NATIVECCD)
    pairs = _pairs_of(mj, sensor) if _measures(mj, sensor) else ()
    for one, other in dict.fromkeys(_types(mj, *_in_order(mj, *pair)) for pair in pairs):
        code = PAIR_CODE.get((one, other), -1)
        if code < 0 and (one, other) not in _NOWHERE:
            yield f"distance {one}-{other}"
        elif code >= 0 and other_ccd and PAIRS[code].name in _BY_SEARCH:
            yield f"distance {one}-{other} with the disable flag nativeccd"
