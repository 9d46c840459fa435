"""Table fields of spatial tendons: the pieces of their paths through sites, past geoms and over pulleys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np

_WRAP = mujoco.mjtWrap
AROUND = (int(_WRAP.mjWRAP_SPHERE), int(_WRAP.mjWRAP_CYLINDER))
"""Codes in `wrap_type` of what a path goes around. They are integers, since `in` finds no NumPy integer among enums."""


def is_fixed(mj: mujoco.MjModel) -> np.ndarray:
    """(ntendon,) bool: whether the tendon is fixed: a sum of joint coordinates, not a path in space."""
    kinds = (mj.wrap_type[adr : adr + num] for adr, num in zip(mj.tendon_adr, mj.tendon_num, strict=True))
    return np.array([(kind == _WRAP.mjWRAP_JOINT).all() for kind in kinds], dtype=bool)


def path_table(mj: mujoco.MjModel) -> dict[str, Any]:
    """The derived table fields of paths."""
    fixed = is_fixed(mj)
    found = [(t, *piece) for t in np.flatnonzero(~fixed).tolist() for piece in _pieces(mj, t)]
    columns = np.array(found, dtype=np.float64).reshape(-1, 6)
    tendon, site1, geom, side, site2 = columns[:, :5].astype(int).T
    number = np.bincount(tendon, minlength=mj.ntendon)
    return {
        "tendon_pathadr": np.cumsum(number) - number,
        "tendon_pathnum": number,
        "path_tenid": tendon,
        "path_site": np.stack([site1, site2], axis=1),
        "path_geom": geom,
        "path_side": side,
        "path_scale": columns[:, 5],
    }


def _pieces(mj: mujoco.MjModel, t: int) -> Iterator[tuple[int, int, int, int, float]]:
    """Pieces of a path: first site, geom and sidesite (or -1), second site, and factor on the length from pulleys."""
    scale, previous, geom, side = 1.0, -1, -1, -1
    for k in range(mj.tendon_adr[t], mj.tendon_adr[t] + mj.tendon_num[t]):
        kind, target, parameter = int(mj.wrap_type[k]), int(mj.wrap_objid[k]), float(mj.wrap_prm[k])
        if kind == int(_WRAP.mjWRAP_PULLEY):
            scale, previous = 1.0 / parameter, -1
        elif kind in AROUND:
            geom, side = target, round(parameter)
        elif kind == int(_WRAP.mjWRAP_SITE):
            if previous >= 0:
                yield previous, geom, side, target, scale
            previous, geom, side = target, -1, -1
