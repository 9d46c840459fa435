"""Actuators as tables: the types that the engine has, and whether a model needs only those of the stage `actuation`.

What a type does stands in `physics/actuation/`: transmissions in `transmission.cu` and `transmission_jax.py`, all else
in `actuators.cuh` and `actuators_jax.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import mujoco
import numpy as np

from simengine.model.codes import among

_TRN, _DYN, _GAIN, _BIAS = mujoco.mjtTrn, mujoco.mjtDyn, mujoco.mjtGain, mujoco.mjtBias
_PRM = 9


class Part(NamedTuple):
    """A part of an actuator that comes in several types.

    Attributes:
        field: of MjModel, with the type of each actuator.
        enum: MuJoCo's types.
        used: how many of its parameters a type uses, by its name in MJCF, of all types that the engine has.
    """

    field: str
    enum: Any
    used: dict[str, int]


PARTS: dict[str, Part] = {
    "transmission": Part(
        "actuator_trntype",
        _TRN,
        dict.fromkeys(("joint", "jointinparent", "tendon", "site", "slidercrank", "body"), 0),
    ),
    "activation dynamics": Part(
        "actuator_dyntype", _DYN, {"none": 0, "integrator": 0, "filter": 1, "filterexact": 1, "muscle": 3}
    ),
    "gain": Part("actuator_gaintype", _GAIN, {"fixed": 1, "affine": 3, "muscle": _PRM}),
    "bias": Part("actuator_biastype", _BIAS, {"none": 0, "affine": 3, "muscle": _PRM}),
}
"""What an actuator is made of, and the types of each part that the engine has."""


def unsupported_types(mj: mujoco.MjModel) -> Iterator[tuple[str, np.ndarray]]:
    """Each type that the engine lacks, and the actuators (nu,) that are of it."""
    for part, (field, enum, used) in PARTS.items():
        codes = getattr(mj, field)
        for code in sorted(set(codes.tolist())):
            kind = enum(code).name.partition("_")[2].lower()
            if kind not in used:
                yield f"{kind} {part}", np.asarray(codes == code)


def actuator_table(mj: mujoco.MjModel) -> dict[str, Any]:
    """The table fields of actuators and activations that differ from MuJoCo's."""
    disabled = _disabled(mj)
    on = ~disabled[:, None]
    gain, bias = _parameters(mj, mj.actuator_gainprm, "gain"), _parameters(mj, mj.actuator_biasprm, "bias")
    return {
        "actuator_gainprm": np.where(on, gain, 0.0),
        "actuator_biasprm": np.where(on, bias, 0.0),
        "actuator_dynprm": mj.actuator_dynprm[:, :3],
        "actuator_disabled": disabled,
        "actuator_period": periods(np, full_turns(mj), mj.actuator_gainprm, mj.actuator_biasprm),
        "act_actuatorid": np.flatnonzero(mj.actuator_actadr >= 0),
    }


def _parameters(mj: mujoco.MjModel, prm: np.ndarray, part: str) -> np.ndarray:
    """Parameters (nu, 9) of gains or biases, zero beyond the number that each type uses.

    The peak force of a muscle, if not given, follows from its scale and acc0.
    """
    kind, known = np.asarray(getattr(mj, PARTS[part].field)), _used_parameters(part)
    used = np.array([known[code] for code in kind.tolist()], dtype=int)
    folded = np.where(np.arange(_PRM) < used[:, None], prm[:, :_PRM], 0.0)
    scaled = (kind == int(_GAIN.mjGAIN_MUSCLE)) & (folded[:, 2] < 0)
    folded[scaled, 2] = folded[scaled, 3] / np.maximum(mujoco.mjMINVAL, mj.actuator_acc0[scaled])
    return folded


@cache
def _used_parameters(part: str) -> dict[int, int]:
    """The number of parameters that each type uses, by MuJoCo's number of the type."""
    _, enum, known = PARTS[part]
    names = {int(code): name.partition("_")[2].lower() for name, code in enum.__members__.items()}
    return {code: known[name] for code, name in names.items() if name in known}


def full_turns(mj: mujoco.MjModel) -> np.ndarray:
    """(nu,) actuator length of a full turn, for actuators on spatial rotations with a fixed gain and an affine bias.

    Spatial rotations are those of ball joints, and of a site relative to a reference site. Zero for other actuators.
    """
    affine = (mj.actuator_gaintype == int(_GAIN.mjGAIN_FIXED)) & (mj.actuator_biastype == int(_BIAS.mjBIAS_AFFINE))
    on_joint = among(mj.actuator_trntype, _TRN.mjTRN_JOINT, _TRN.mjTRN_JOINTINPARENT)
    ball = np.append(mj.jnt_type, -1)[np.where(on_joint, mj.actuator_trnid[:, 0], -1)] == int(
        mujoco.mjtJoint.mjJNT_BALL
    )
    site = (mj.actuator_trntype == int(_TRN.mjTRN_SITE)) & (mj.actuator_trnid[:, 1] >= 0)
    site &= ~mj.actuator_gear[:, :3].any(axis=1)
    gear = np.where(ball[:, None], mj.actuator_gear[:, :3], mj.actuator_gear[:, 3:])
    return np.where(affine & (ball | site), 2 * np.pi * np.linalg.norm(gear, axis=1), 0.0)


def periods(xp: Any, turns: Any, gain: Any, bias: Any) -> Any:
    """(..., nu) length of a full turn for position servos, whose length MuJoCo takes modulo full turns; else zero.

    An actuator is a position servo if the slope of its bias is minus its gain.

    Args: turns (nu,): see `full_turns`; gain, bias (..., nu, at least 2): their parameters.
    """
    return xp.where(bias[..., 1] == -gain[..., 0], turns, xp.zeros_like(turns))


def _disabled(mj: mujoco.MjModel) -> np.ndarray:
    """(nu,) bool: whether the actuator is disabled, by its group or by the flag for all actuation."""
    if mj.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_ACTUATION):
        return np.ones(mj.nu, dtype=bool)
    group = np.clip(mj.actuator_group, 0, 31)
    return np.where((mj.actuator_group < 0) | (mj.actuator_group > 30), False, mj.opt.disableactuator >> group & 1 > 0)


def needs_general_actuation(mj: mujoco.MjModel) -> bool:
    """Whether some actuator is not simply a force on a hinge, slide or fixed tendon that is linear in its control."""
    scalar = among(mj.actuator_trntype, _TRN.mjTRN_JOINT, _TRN.mjTRN_JOINTINPARENT)
    joint = np.where(scalar, mj.actuator_trnid[:, 0], -1)
    scalar &= ~among(np.append(mj.jnt_type, -1)[joint], mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL)
    plain = scalar | ((mj.actuator_trntype == int(_TRN.mjTRN_TENDON)) & ~_on_spatial_tendon(mj))
    plain &= mj.actuator_dyntype == int(_DYN.mjDYN_NONE)
    plain &= mj.actuator_gaintype == int(_GAIN.mjGAIN_FIXED)
    plain &= among(mj.actuator_biastype, _BIAS.mjBIAS_NONE, _BIAS.mjBIAS_AFFINE)
    return not plain.all() or bool(np.any(mj.tendon_actfrclimited))


def _on_spatial_tendon(mj: mujoco.MjModel) -> np.ndarray:
    """(nu,) bool: whether the actuator acts on a spatial tendon."""
    fixed = mj.wrap_type[mj.tendon_adr] == mujoco.mjtWrap.mjWRAP_JOINT
    tendon = np.where(mj.actuator_trntype == int(_TRN.mjTRN_TENDON), mj.actuator_trnid[:, 0], -1)
    return np.append(~fixed, False)[tendon]
