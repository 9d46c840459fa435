"""Table fields of constraint rows: equality constraints, friction losses, and the rows of a contact.

Constraints that a flag disables have no rows. Source: MuJoCo documentation, chapter "Computation", section "Constraint
model".
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import mujoco
import numpy as np

from simengine.model.codes import among
from simengine.model.tendons import is_fixed

_EQ = mujoco.mjtEq
_SITE = mujoco.mjtObj.mjOBJ_SITE
_BITS = mujoco.mjtDisableBit

EQUALITY_ROWS: dict[int, int] = {
    int(_EQ.mjEQ_CONNECT): 3,
    int(_EQ.mjEQ_WELD): 6,
    int(_EQ.mjEQ_JOINT): 1,
    int(_EQ.mjEQ_TENDON): 1,
}
"""Number of rows of an equality constraint, by its type."""

LEAST_WEIGHT = 1e-4
"""Least inverse inertia of a body along a line in float32, over that of turning times the square of how far it reaches.
With the usual impedance of 0.95, a row of such a body then gives way by a part of 5e-6 more than with a smaller one."""


LEAST_SHARE = 2e-4
"""Least regularisation of an edge of a pyramid in float32, over that of a contact without friction: that of a friction
of 0.01. With the usual impedance, the normal force is then off by a part of 1e-5. Less friction lets more slip."""


def row_table(mj: mujoco.MjModel, condim: np.ndarray, geom1: np.ndarray, geom2: np.ndarray) -> dict[str, Any]:
    """The derived table fields of equality constraints and friction losses, and the number of rows of contacts.

    Args: condim, geom1, geom2 (ncand,): contact dimensions and geoms of the candidate pairs.
    """
    moved_by = last_dofs(mj)
    values = _equalities(mj, moved_by)
    values |= {"body_lastdof": moved_by, "friction_id": _friction(mj)}
    values["body_leastweight"] = LEAST_WEIGHT * _reach(mj, values) ** 2
    pyramid = np.where(condim == 1, 1, 2 * (condim - 1))
    rows = condim if mj.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC else pyramid
    # the geoms of an explicit pair may be unable to move relative to each other
    still = moved_by[mj.geom_bodyid[geom1]] == moved_by[mj.geom_bodyid[geom2]]
    values["cand_rows"] = np.where(still, 0, rows)
    return values


def with_least_weights(mj: mujoco.MjModel) -> mujoco.MjModel:
    """The model with the inverse inertia along a line that bodies have in float32, itself if that is their own."""
    reach = _reach(mj, _equalities(mj, last_dofs(mj)))
    least = LEAST_WEIGHT * reach**2 * mj.body_invweight0[:, 1]
    if (mj.body_invweight0[:, 0] >= least).all():
        return mj
    held = copy(mj)
    held.body_invweight0[:, 0] = np.maximum(mj.body_invweight0[:, 0], least)
    return held


def needs_general_rows(mj: mujoco.MjModel, condim: Sequence[int]) -> bool:
    """Whether a state can have rows that the stage `constraint` does not make, or rows that are needed after the
    solver.

    That stage makes limits of joints and fixed tendons, and contacts that are frictionless or pyramids of dimension 3.

    Args: condim: contact dimensions of the candidate pairs.
    """
    cones = mj.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    paths = (mj.tendon_limited.astype(bool) & ~is_fixed(mj)).any()
    return bool(mj.opt.noslip_iterations or mj.neq or len(_friction(mj)) or cones or paths or set(condim) - {1, 3})


def _disabled(mj: mujoco.MjModel, flag: mujoco.mjtDisableBit) -> bool:
    return bool(mj.opt.disableflags & (int(flag) | int(_BITS.mjDSBL_CONSTRAINT)))


def last_dofs(mj: mujoco.MjModel) -> np.ndarray:
    """(nbody,) last dof that moves each body, from which `dof_parentid` leads to all others; -1 if there is none."""
    last = np.full(mj.nbody, -1)
    for body in range(1, mj.nbody):
        number = mj.body_dofnum[body]
        last[body] = mj.body_dofadr[body] + number - 1 if number else last[mj.body_parentid[body]]
    return last


def _equalities(mj: mujoco.MjModel, moved_by: np.ndarray) -> dict[str, Any]:
    """Objects, frames and number of rows of each equality constraint; sites are converted to frames of their bodies."""
    on_bodies = among(mj.eq_type, _EQ.mjEQ_CONNECT, _EQ.mjEQ_WELD)
    rows = np.array([EQUALITY_ROWS[int(kind)] for kind in mj.eq_type], dtype=np.int32)
    obj = np.stack([mj.eq_obj1id, mj.eq_obj2id], axis=1)
    anchor, quat = np.zeros((mj.neq, 2, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (mj.neq, 2, 1))
    for e in np.flatnonzero(on_bodies):
        data = mj.eq_data[e]
        if mj.eq_objtype[e] == _SITE:
            sites = obj[e].copy()
            obj[e], anchor[e], quat[e] = mj.site_bodyid[sites], mj.site_pos[sites], mj.site_quat[sites]
        elif mj.eq_type[e] == _EQ.mjEQ_WELD:
            anchor[e], quat[e, 0] = (data[3:6], data[:3]), data[6:10]
        else:
            anchor[e] = data[:3], data[3:6]
    still = on_bodies & (moved_by[np.where(on_bodies[:, None], obj, 0)] < 0).all(axis=1)
    rows[still | _disabled(mj, _BITS.mjDSBL_EQUALITY)] = 0
    return {"eq_rows": rows, "eq_obj": obj, "eq_anchor": anchor, "eq_quat": quat}


def _reach(mj: mujoco.MjModel, equalities: dict[str, Any]) -> np.ndarray:
    """Distance from each body's centre of mass to the farthest point of its geoms and anchors, (nbody,)."""
    reach = np.zeros(mj.nbody)
    to_geoms = np.linalg.norm(mj.geom_pos - mj.body_ipos[mj.geom_bodyid], axis=1)
    np.maximum.at(reach, mj.geom_bodyid, to_geoms + mj.geom_rbound)
    of_bodies = among(mj.eq_type, _EQ.mjEQ_CONNECT, _EQ.mjEQ_WELD)
    body, anchor = equalities["eq_obj"][of_bodies], equalities["eq_anchor"][of_bodies]
    np.maximum.at(reach, body, np.linalg.norm(anchor - mj.body_ipos[body], axis=2))
    return reach


def _friction(mj: mujoco.MjModel) -> np.ndarray:
    """Dofs with a friction loss, then nv + tendons with one, in MuJoCo's order of rows."""
    if _disabled(mj, _BITS.mjDSBL_FRICTIONLOSS):
        return np.zeros(0, dtype=np.int32)
    return np.concatenate([np.flatnonzero(mj.dof_frictionloss > 0), mj.nv + np.flatnonzero(mj.tendon_frictionloss > 0)])


def unsupported_rows(mj: mujoco.MjModel) -> list[str]:
    """One line per equality constraint of an unsupported type."""
    lines = []
    for e in range(mj.neq):
        if int(mj.eq_type[e]) not in EQUALITY_ROWS:
            kind = _EQ(int(mj.eq_type[e])).name.removeprefix("mjEQ_").lower()
            name = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_EQUALITY, e)
            lines.append(f"{kind} type of equality constraint {repr(name) if name else f'number {e}'}")
    return lines
