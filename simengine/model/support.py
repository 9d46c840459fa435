"""The support gate: the features of a compiled model that the engine lacks, by name and element.

`unsupported_features` examines everything that MuJoCo compiled and returns one line per unsupported element, so that a
refusal names all of them at once. Every feature that changes the dynamics must be either simulated or refused.
"""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np

from simengine.model.actuators import unsupported_types
from simengine.model.rows import unsupported_rows
from simengine.model.sensors import unsupported_sensors
from simengine.model.tendons import is_fixed

_OBJ = mujoco.mjtObj
_DISABLE = mujoco.mjtDisableBit
_ENABLE = mujoco.mjtEnableBit

# Integrators by MuJoCo's code.
INTEGRATORS: dict[int, str] = {
    int(mujoco.mjtIntegrator.mjINT_EULER): "euler",
    int(mujoco.mjtIntegrator.mjINT_RK4): "rk4",
    int(mujoco.mjtIntegrator.mjINT_IMPLICIT): "implicit",
    int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST): "implicitfast",
}

# Disable flags that the model table takes into account, or that disable something the engine does not have.
HONOURED_DISABLE_FLAGS: tuple[int, ...] = tuple(
    int(flag)
    for flag in (
        _DISABLE.mjDSBL_CONSTRAINT,
        _DISABLE.mjDSBL_EQUALITY,
        _DISABLE.mjDSBL_FRICTIONLOSS,
        _DISABLE.mjDSBL_LIMIT,
        _DISABLE.mjDSBL_CONTACT,
        _DISABLE.mjDSBL_SPRING,
        _DISABLE.mjDSBL_DAMPER,
        _DISABLE.mjDSBL_GRAVITY,
        _DISABLE.mjDSBL_CLAMPCTRL,
        _DISABLE.mjDSBL_WARMSTART,
        _DISABLE.mjDSBL_FILTERPARENT,
        _DISABLE.mjDSBL_ACTUATION,
        _DISABLE.mjDSBL_REFSAFE,
        _DISABLE.mjDSBL_SENSOR,
        _DISABLE.mjDSBL_MIDPHASE,
        _DISABLE.mjDSBL_EULERDAMP,
        _DISABLE.mjDSBL_AUTORESET,
        _DISABLE.mjDSBL_NATIVECCD,
        _DISABLE.mjDSBL_MULTICCD,
        _DISABLE.mjDSBL_ISLAND,
    )
)

# Enable flags that the model table takes into account, or that do not change a step: energies can be requested with or
# without the flag, and the other two concern MuJoCo's inverse dynamics.
HONOURED_ENABLE_FLAGS: tuple[int, ...] = (
    int(_ENABLE.mjENBL_OVERRIDE),
    int(_ENABLE.mjENBL_ENERGY),
    int(_ENABLE.mjENBL_FWDINV),
    int(_ENABLE.mjENBL_INVDISCRETE),
)


def element(mj: mujoco.MjModel, objtype: mujoco.mjtObj, index: int) -> str:
    """An element as messages name it: by its name, or by its number if it has none."""
    name = mujoco.mj_id2name(mj, objtype, index)
    return f"{name!r}" if name else f"number {index}"


def _named(mj: mujoco.MjModel, feature: str, objtype: mujoco.mjtObj, mask: np.ndarray) -> Iterator[str]:
    for index in np.flatnonzero(np.asarray(mask)):
        yield f"{feature} of {objtype.name.removeprefix('mjOBJ_').lower()} {element(mj, objtype, int(index))}"


def _nonzero_rows(array: np.ndarray) -> np.ndarray:
    return np.asarray(np.asarray(array != 0).any(axis=tuple(range(1, array.ndim))))


def _flags(mj: mujoco.MjModel) -> Iterator[str]:
    for name, flag in _DISABLE.__members__.items():
        if not name.startswith("mjDSBL_"):
            continue  # mjNDISABLE is the number of flags
        if mj.opt.disableflags & int(flag) and int(flag) not in HONOURED_DISABLE_FLAGS:
            yield f"disable flag {name.removeprefix('mjDSBL_').lower()}"
    for name, flag in _ENABLE.__members__.items():
        if not name.startswith("mjENBL_"):
            continue
        if mj.opt.enableflags & int(flag) and int(flag) not in HONOURED_ENABLE_FLAGS:
            yield f"enable flag {name.removeprefix('mjENBL_').lower()}"


def _options(mj: mujoco.MjModel) -> Iterator[str]:
    integrator = mujoco.mjtIntegrator(mj.opt.integrator)
    if int(integrator) not in INTEGRATORS:
        yield f"integrator {integrator.name.removeprefix('mjINT_').lower()}"
    yield from _flags(mj)


def _elements(mj: mujoco.MjModel) -> Iterator[str]:
    everything = (
        ("flex", _OBJ.mjOBJ_FLEX, mj.nflex),
        ("plugin", _OBJ.mjOBJ_PLUGIN, mj.nplugin),
    )
    for feature, objtype, count in everything:
        for index in range(count):
            yield f"{feature} {element(mj, objtype, index)}"
    yield from unsupported_rows(mj)


def _joints(mj: mujoco.MjModel) -> Iterator[str]:
    joint = _OBJ.mjOBJ_JOINT
    yield from _named(mj, "plastic spring", joint, mj.jnt_plasticadr >= 0)


def _geoms(mj: mujoco.MjModel) -> Iterator[str]:
    yield from _named(mj, "surface velocity", _OBJ.mjOBJ_GEOM, _nonzero_rows(mj.geom_surfacevel))
    yield from _named(mj, "adhesion", _OBJ.mjOBJ_GEOM, mj.geom_adhesion)
    yield from _named(mj, "adhesion", _OBJ.mjOBJ_PAIR, mj.pair_adhesion)


def _tendons(mj: mujoco.MjModel) -> Iterator[str]:
    features = (
        ("armature of a path", (mj.tendon_armature != 0) & ~is_fixed(mj)),
        ("plastic spring", mj.tendon_plasticadr >= 0),
    )
    for feature, mask in features:
        yield from _named(mj, feature, _OBJ.mjOBJ_TENDON, mask)


def _actuators(mj: mujoco.MjModel) -> Iterator[str]:
    actuator = _OBJ.mjOBJ_ACTUATOR
    for feature, mask in unsupported_types(mj):
        yield from _named(mj, feature, actuator, mask)
    yield from _named(mj, "several controls", actuator, mj.actuator_ctrlnum != 1)
    extras = ("actuator_armature", "actuator_damping", "actuator_dampingpoly", "actuator_delay")
    for field in extras:
        yield from _named(mj, field.removeprefix("actuator_"), actuator, _nonzero_rows(getattr(mj, field)))


def _sensors(mj: mujoco.MjModel) -> Iterator[str]:
    for feature, index in unsupported_sensors(mj):
        yield f"{feature} of sensor {element(mj, _OBJ.mjOBJ_SENSOR, index)}"


def unsupported_features(mj: mujoco.MjModel) -> list[str]:
    """One line per element of `mj` that needs a feature the engine lacks; empty if the model is supported.

    Pairs of geoms are checked in `simengine.model.pairs`, where candidate pairs are listed, because a geom of any type
    is supported if it cannot touch anything.
    """
    return [*_options(mj), *_elements(mj), *_joints(mj), *_geoms(mj), *_tendons(mj), *_actuators(mj), *_sensors(mj)]
