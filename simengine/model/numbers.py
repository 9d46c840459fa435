"""Looks for numbers of a model that no simulation can work with: NaN, infinities, negative friction, no inertia, cells
of height fields that are too short to be counted.

MuJoCo's compiler refuses most of them. Others pass it, such as a damping of NaN, and so does every number of a compiled
model that a program has changed. Numbers beyond a precision would be infinite there: see `fits`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cache
from itertools import chain
from math import isfinite

import mujoco
import numpy as np

from simengine.errors import ModelError

# What the elements of arrays belong to, by the beginning of the arrays' names.
_OWNERS = {
    "body": "body",
    "jnt": "joint",
    "dof": "joint",
    "geom": "geom",
    "site": "site",
    "pair": "pair",
    "eq": "equality",
    "tendon": "tendon",
    "actuator": "actuator",
    "sensor": "sensor",
    "hfield": "hfield",
    "mesh": "mesh",
    "key": "key",
    "wrap": "",
    "qpos0": "",
    "qpos_spring": "",
}
_SEEN_BY = {"cam": "camera"}  # only drawn, unless a sensor looks through it
# Ranges and cutoffs may be infinite, which means that there are none. What is only drawn, or only the user's, does not
# count.
_UNBOUNDED = ("range", "cutoff", "springyield")
_NOT_SIMULATED = ("rgba", "user", "texcoord", "normal", "polynormal")
_OPTIONS = ("timestep", "gravity", "wind", "magnetic", "density", "viscosity", "impratio")
_OVERRIDES = ("o_margin", "o_solref", "o_solimp", "o_friction")  # of all contacts, with the flag `override`
# An infinite one ends a search at once.
_TOLERANCES = ("tolerance", "ls_tolerance", "noslip_tolerance", "ccd_tolerance")

_LEAST_NORM = 0.5  # of a quaternion that is one; numbers beyond 1e154 overflow to zero when MuJoCo normalizes them
_SHORTEST = 1e-8  # [m] of a cell: below that, indices of the cells under a geom are beyond int32

_EPSILON = float(np.finfo(float).eps)
_CERTAIN = 100.0  # so far from the bound that rounding does not matter

_Test = Callable[[np.ndarray], np.ndarray]


def check_numbers(name: str, mj: mujoco.MjModel) -> None:
    """Refuse a model with such numbers.

    Args:
        name: the model's name.
        mj: the compiled model.

    Raises:
        ModelError: the model holds NaN or an infinity, a joint has a negative friction loss, an inertia no orientation,
            or a height field too short cells. The message names every array with one of its elements.
    """
    if bad := bad_numbers(mj):
        raise ModelError(f"model {name!r} has numbers that are not finite: {'; '.join(bad)}; correct the model")
    driven = [
        (_element(mj, "dof", "joint", int(i)), mj.dof_frictionloss[i]) for i in np.flatnonzero(mj.dof_frictionloss < 0)
    ]
    if driven:
        losses = "; ".join(f"{joint} has {loss:g}" for joint, loss in dict(driven).items())
        raise ModelError(f"model {name!r} has friction that drives instead of braking: {losses}; give zero or more")
    if least := _driving_fluid(mj):
        raise ModelError(f"model {name!r} has a fluid that drives instead of braking: {least}; give zero or more")
    unturned = np.flatnonzero(np.linalg.norm(mj.body_iquat, axis=1) < _LEAST_NORM).tolist()
    if unturned:
        bodies = "; ".join(_element(mj, "body", "body", i) for i in unturned)
        raise ModelError(f"model {name!r} has inertia without an orientation, body_iquat is zero: {bodies}; correct it")
    if narrow := _short_cells(mj):
        raise ModelError(
            f"model {name!r} has height fields with cells below {_SHORTEST:g} m: {narrow}; give larger sizes"
        )


def _driving_fluid(mj: mujoco.MjModel) -> str:
    """A negative density or viscosity that acts. MuJoCo takes it for zero, except in its model of ellipsoids."""
    shapes = np.flatnonzero(mj.geom_fluid[:, 0]).tolist()
    for option in ("density", "viscosity"):
        if shapes and getattr(mj.opt, option) < 0:
            return f"{option} {getattr(mj.opt, option):g} at {_element(mj, 'geom', 'geom', shapes[0])}"
    return ""


def _short_cells(mj: mujoco.MjModel) -> str:
    """The height fields whose cells are too short, and how long these are."""
    shortest = 2 * mj.hfield_size[:, :2] / np.maximum(np.stack((mj.hfield_ncol, mj.hfield_nrow), axis=1) - 1, 1)
    fields = np.flatnonzero((shortest < _SHORTEST).any(axis=1)).tolist()
    return "; ".join(f"{_element(mj, 'hfield', 'hfield', i)} has cells of {shortest[i].min():g} m" for i in fields)


def check_inertia(name: str, mj: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Look for joints that move without inertia.

    Args:
        name: the model's name.
        mj: the compiled model.
        data: as `at_rest` returns it.

    Warns:
        UserWarning: there is such a joint.
    """
    for joint in joints_without_inertia(mj, data):
        warnings.warn(
            f"{joint} of model {name!r} moves without inertia, so that its acceleration is arbitrary; give its body a "
            "mass or the joint an armature",
            stacklevel=2,
        )


def bad_numbers(mj: mujoco.MjModel) -> list[str]:
    """One line for each array of a model that holds NaN, or an infinity where none can be meant."""
    owners = _OWNERS | _SEEN_BY if _looks_through_a_camera(mj) else _OWNERS
    return [] if _all_finite(mj, owners) else _lines(mj, lambda values: ~np.isfinite(values), np.isnan, owners)


def _all_finite(mj: mujoco.MjModel, owners: Mapping[str, str]) -> bool:
    """Whether the sum of each array is finite, as in almost every model; NaN and infinities are part of their sum."""
    arrays = (getattr(mj, name) for name, _ in _arrays(tuple(owners.items())))
    options = (getattr(mj.opt, name) for name in (*_OPTIONS, *_OVERRIDES, *_TOLERANCES))
    with np.errstate(over="ignore", invalid="ignore"):
        return all(isfinite(np.add.reduce(values, axis=None)) for values in chain(arrays, options))


def fits(arrays: Mapping[str, np.ndarray], dtype: str) -> bool:
    """Whether a precision holds the real numbers of a model table. A range or cutoff beyond it is none, as is meant."""
    if dtype == "float64":
        return True
    tested = (values for name, values in arrays.items() if values.dtype.kind == "f" and not name.endswith(_UNBOUNDED))
    most, beyond = np.finfo(dtype).max, _beyond(dtype)
    # most arrays are known to fit by one comparison, which infinities and NaN do not pass
    return not any(beyond(values).any() for values in tested if not np.abs(values).max(initial=0.0) <= most)


def check_precision(name: str, mj: mujoco.MjModel, arrays: Mapping[str, np.ndarray], dtype: str) -> None:
    """Refuse a model with numbers that would be infinite in a precision, although MuJoCo's float64 holds them.

    Args:
        name: the model's name.
        mj: the compiled model.
        arrays: the model table, which is what a simulation needs of it.
        dtype: "float32" or "float64".

    Raises:
        ModelError: there are such numbers. The message names every array with one of its elements.
    """
    if fits(arrays, dtype):
        return
    bad = _lines(mj, _beyond(dtype), np.zeros_like, _OWNERS | _SEEN_BY) or ["what follows from its sizes and masses"]
    raise ModelError(
        f"model {name!r} has numbers that {dtype} cannot hold: {'; '.join(bad)}; correct the model, or simulate it "
        "with dtype='float64'"
    )


def _beyond(dtype: str) -> _Test:
    """A test for finite numbers that a precision does not hold."""
    return lambda values: np.isfinite(values) & (np.abs(values) > np.finfo(dtype).max)


def _lines(mj: mujoco.MjModel, test: _Test, of_unbounded: _Test, owners: Mapping[str, str] = _OWNERS) -> list[str]:
    """One line for each array of a model with an element for which a test holds; another one is for ranges."""
    found = []
    for name, owner in _arrays(tuple(owners.items())):
        values = np.asarray(getattr(mj, name))
        bad = (of_unbounded if name.endswith(_UNBOUNDED) else test)(values)
        if bad.any():
            place = np.unravel_index(int(bad.argmax()), values.shape)
            found.append(f"{name} of {_element(mj, name, owner, int(place[0]))} is {values[place]}")
    override = _OVERRIDES if mj.opt.enableflags & mujoco.mjtEnableBit.mjENBL_OVERRIDE else ()
    for name in (*_OPTIONS, *override, *_TOLERANCES):
        if (of_unbounded if name in _TOLERANCES else test)(np.asarray(getattr(mj.opt, name))).any():
            found.append(f"option {name} is {getattr(mj.opt, name)}")
    return found


def joints_without_inertia(mj: mujoco.MjModel, data: mujoco.MjData) -> list[str]:
    """Joints that move without inertia at qpos0, as in `joint 'hip'`, one for each singular tree of bodies.

    MuJoCo warns where a pivot of the factor is below mjMINVAL. This looks at the smallest eigenvalue of each tree's
    inertia, and names the joint that its eigenvector moves most. Trees whose inverse has a small trace have no small
    eigenvalue, and are not looked at: a library of linear algebra takes milliseconds to wake its threads.
    """
    found = []
    inverse = _inverse_diagonal(mj, data)
    for tree in range(mj.ntree):
        first, number = int(mj.tree_dofadr[tree]), int(mj.tree_dofnum[tree])
        dofs = slice(first, first + number)
        largest = data.M[mj.M_rowadr[dofs] + mj.M_rownnz[dofs] - 1].sum()  # no eigenvalue is above the trace
        smallest = 1.0 / inverse[dofs].sum()  # none is below, if the matrix is positive definite
        if (inverse[dofs] > 0).all() and smallest > _CERTAIN * max(mujoco.mjMINVAL, number * _EPSILON * largest):
            continue
        values, vectors = np.linalg.eigh(_inertia(mj, data, first, number))
        if values[0] < max(mujoco.mjMINVAL, number * _EPSILON * values[-1]):
            found.append(_element(mj, "dof", "joint", first + int(np.abs(vectors[:, 0]).argmax())))
    return found


def _inverse_diagonal(mj: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """(nv,) diagonal of the inverse of the inertia.

    Trees do not depend on each other, so one solution has a column of the inverse of each tree.
    """
    mujoco.mj_factorM(mj, data)
    column = np.arange(mj.nv) - np.repeat(mj.tree_dofadr, mj.tree_dofnum)
    units = (np.arange(mj.tree_dofnum.max(initial=0))[:, None] == column).astype(float)
    found = np.empty_like(units)
    if mj.nv:
        mujoco.mj_solveM(mj, data, found, units)
    return found[column, np.arange(mj.nv)]


def _inertia(mj: mujoco.MjModel, data: mujoco.MjData, first: int, number: int) -> np.ndarray:
    """Inertia of the dofs of a tree, (number, number), symmetric."""
    matrix = np.zeros((number, number))
    for row in range(first, first + number):
        begin = int(mj.M_rowadr[row])
        entries = slice(begin, begin + int(mj.M_rownnz[row]))
        columns = mj.M_colind[entries] - first
        matrix[row - first, columns] = matrix[columns, row - first] = data.M[entries]
    return matrix


@cache
def _arrays(owners: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """Names of the arrays of real numbers that a simulation depends on, each with what its elements belong to."""
    mj = mujoco.MjModel.from_xml_string("<mujoco/>")  # every model has the same arrays
    names = (name for name in dir(mj) if isinstance(getattr(mj, name), np.ndarray) and name[0] != "_")
    pairs = ((name, next((own for begin, own in owners if name.startswith(begin)), None)) for name in names)
    simulated = ((name, own) for name, own in pairs if own is not None and not name.endswith(_NOT_SIMULATED))
    return [(name, own) for name, own in simulated if getattr(mj, name).dtype.kind == "f"]


def _looks_through_a_camera(mj: mujoco.MjModel) -> bool:
    """Whether some sensor depends on a camera."""
    camera = int(mujoco.mjtObj.mjOBJ_CAMERA)
    return bool((np.asarray(mj.sensor_objtype) == camera).any() or (np.asarray(mj.sensor_reftype) == camera).any())


def _element(mj: mujoco.MjModel, name: str, owner: str, index: int) -> str:
    """What an element of an array belongs to, as in `joint 'hip'`."""
    if name.startswith("dof"):
        index = int(mj.dof_jntid[index])
    if name == "mesh_vert":
        index = int(np.searchsorted(mj.mesh_vertadr, index, side="right")) - 1
    if name == "hfield_data":
        index = int(np.searchsorted(mj.hfield_adr, index, side="right")) - 1
    if not owner:
        return f"number {index}"
    kind = getattr(mujoco.mjtObj, f"mjOBJ_{owner.upper()}")
    called = mujoco.mj_id2name(mj, kind, index)
    return f"{owner} {called!r}" if called else f"{owner} {index}"
