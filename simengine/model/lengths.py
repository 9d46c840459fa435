"""Table fields of lengths: coordinates of joints and lengths of tendons, their limits, and the actuators on them.

Length number i is that of joint i, or of tendon i - njnt.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from simengine.model.actuators import needs_general_actuation


def length_table(mj: mujoco.MjModel) -> dict[str, Any]:
    """The derived table fields of tendons, limits and transmissions."""
    term = np.flatnonzero(mj.wrap_type == mujoco.mjtWrap.mjWRAP_JOINT)
    tendon, joint = np.repeat(np.arange(mj.ntendon), mj.tendon_num)[term], mj.wrap_objid[term]
    values = _by_joint("wrap", joint, mj.njnt)
    order = values.pop("order")
    number = np.bincount(tendon, minlength=mj.ntendon)
    values |= {"tendon_num": number, "tendon_adr": np.cumsum(number) - number, "wrap_prm": mj.wrap_prm[term]}
    values |= {"wrap_byjnt": order, "wrap_tenid": tendon}
    values |= {"wrap_qposadr": mj.jnt_qposadr[joint], "wrap_dofadr": mj.jnt_dofadr[joint]}
    simple = not needs_general_actuation(mj)
    actuator, joint, moment = _moments(mj, simple)
    values |= _by_joint("moment", joint, mj.njnt)
    order = values.pop("order")
    values |= {"moment_actuator": actuator[order], "moment": moment[order]}
    lengthid = mj.actuator_trnid[:, 0] + np.where(on_tendon(mj), mj.njnt, 0)
    values["actuator_lengthid"] = lengthid if simple else np.zeros(mj.nu)
    values["limit_id"] = _limited(mj)
    return values


def on_tendon(mj: mujoco.MjModel) -> np.ndarray:
    """(nu,) bool: whether the actuator acts on a tendon."""
    return np.asarray(mj.actuator_trntype == mujoco.mjtTrn.mjTRN_TENDON)


def _by_joint(what: str, joint: np.ndarray, njnt: int) -> dict[str, Any]:
    """Items sorted by their joint: their order, and the number of items and the first item of each joint."""
    number = np.bincount(joint, minlength=njnt)
    return {
        "order": np.argsort(joint, kind="stable"),
        f"jnt_{what}num": number,
        f"jnt_{what}adr": np.cumsum(number) - number,
    }


def _moments(mj: mujoco.MjModel, simple: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Actuator, joint and moment of every pair of an actuator and a joint it acts on; none unless all are simple."""
    found: list[tuple[int, int, float]] = []
    tendon = on_tendon(mj)
    for u, target in enumerate(mj.actuator_trnid[:, 0].tolist() if simple else ()):
        gear = float(mj.actuator_gear[u, 0])
        if not tendon[u]:
            found.append((u, target, gear))
            continue
        wraps = range(mj.tendon_adr[target], mj.tendon_adr[target] + mj.tendon_num[target])
        found += [(u, int(mj.wrap_objid[k]), gear * float(mj.wrap_prm[k])) for k in wraps]
    columns = np.array(found, dtype=np.float64).reshape(-1, 3)
    return columns[:, 0].astype(int), columns[:, 1].astype(int), columns[:, 2]


def _limited(mj: mujoco.MjModel) -> np.ndarray:
    """Limited joints, then njnt + limited tendons, in MuJoCo's order of rows; none if a flag disables limits."""
    bits = mujoco.mjtDisableBit
    if mj.opt.disableflags & (int(bits.mjDSBL_LIMIT) | int(bits.mjDSBL_CONSTRAINT)):
        return np.zeros(0, dtype=np.int32)
    return np.concatenate([np.flatnonzero(mj.jnt_limited), mj.njnt + np.flatnonzero(mj.tendon_limited)])
