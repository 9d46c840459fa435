"""The comparison: the engine and MuJoCo on the same states, field by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import mujoco
import numpy as np

from simengine.check.fields import AFTER_ROWS, FORWARD, STEPPED, Compared, as_exact_as_convex, as_exact_as_search
from simengine.check.judged import Errors, judge
from simengine.check.oracle import Evaluation, Oracle
from simengine.check.order import contact_order, marks, row_order
from simengine.check.readings import force_readings
from simengine.check.reordered import forward_in_order, step_in_order
from simengine.check.report import FieldResult, relative_error, relative_errors
from simengine.check.rounding import Rounding
from simengine.check.states import STATE_ARRAYS, as_numpy
from simengine.check.touching import touching_elsewhere
from simengine.check.trajectory import Trajectory
from simengine.model.model import Model
from simengine.simulation import Simulation

WORLDS = 1024  # worlds per simulation; JAX would compile again for another number
_TOLD_BY = ("dist", "pos", "frame")
_NEAREST = (mujoco.mjtSensor.mjSENS_GEOMDIST, mujoco.mjtSensor.mjSENS_GEOMNORMAL, mujoco.mjtSensor.mjSENS_GEOMFROMTO)


def compare_forward(
    model: Model, oracle: Oracle, evaluations: Sequence[Evaluation], backend: str, dtype: str
) -> list[FieldResult]:
    """Compare every field after `forward()`; returns one result per field of `FORWARD`."""
    errors = forward_errors(model, oracle, evaluations, backend, dtype)
    elsewhere = _elsewhere(model, oracle, evaluations, errors, backend, dtype)
    kinds = [e.state.kind for e in evaluations]
    rounding = Rounding(oracle, dtype)

    def effect(field: Compared) -> Callable[[int], float]:
        return lambda i: rounding.of_forward(evaluations[i].state, field.name)

    def held(field: Compared) -> Callable[[int], float]:
        return lambda i: rounding.of_held(evaluations[i].state, field.name)

    return [
        judge(field, errors[field.name], dtype, kinds, effect(field), held(field), elsewhere.get(field.name, set()))
        for field in forward_fields(model)
    ]


def _elsewhere(
    model: Model,
    oracle: Oracle,
    evaluations: Sequence[Evaluation],
    errors: dict[str, Errors],
    backend: str,
    dtype: str,
) -> dict[str, set[int]]:
    """Where contacts have other points of the same features as MuJoCo's, compare with what MuJoCo makes of these.

    Returns the states in which the points themselves are not compared; `errors` are changed.
    """
    bounds = {field.name: field.tolerance.of(dtype) for field in forward_fields(model)}
    after = {field.name for field in FORWARD if field.space == "row" or field.stage in AFTER_ROWS} | {"contact_pos"}
    beyond = {i for name in after for i, _, relative in errors[name] if not relative <= bounds[name]}
    told = [bounds[f"contact_{name}"] for name in _TOLD_BY]
    found = touching_elsewhere(model, oracle, {i: evaluations[i] for i in beyond}, told, backend, dtype)
    numbers = sorted(found)
    if numbers:
        chosen = [evaluations[i] for i in numbers]
        own = forward_errors(model, oracle, chosen, backend, dtype, with_own_contacts=True)
        for name in after - {"contact_pos"}:
            errors[name] = [error for error in errors[name] if error[0] not in found]
            errors[name] += [(numbers[k], absolute, relative) for k, absolute, relative in own[name]]
    return {"contact_pos": found}


def forward_fields(model: Model) -> tuple[Compared, ...]:
    """The fields of `FORWARD`, with the tolerances that a model has."""
    fields = as_exact_as_convex(FORWARD, model.table.has_adhesion) if model.table.has_convex else FORWARD
    return as_exact_as_search(fields) if np.isin(model.mj.sensor_type, _NEAREST).any() else fields


def forward_errors(
    model: Model,
    oracle: Oracle,
    evaluations: Sequence[Evaluation],
    backend: str,
    dtype: str,
    *,
    with_own_contacts: bool = False,
) -> dict[str, Errors]:
    """Errors of every field after `forward()`, by its name.

    With `with_own_contacts`, they are errors against what MuJoCo makes of the engine's own contacts, where both list
    the same ones.
    """
    errors: dict[str, Errors] = {field.name: [] for field in FORWARD}
    for first in range(0, len(evaluations), WORLDS):
        part = list(evaluations[first : first + WORLDS])
        sim = Simulation(model, num_worlds=len(part), backend=backend, dtype=dtype, on_nonfinite="freeze")
        sim.set_state(**{name: np.array([getattr(e.state, name) for e in part]) for name in STATE_ARRAYS})
        sim.forward()
        for i, evaluation in enumerate(part if heeds_order(model) or with_own_contacts else ()):
            told = marks(*(evaluation.fields[f"contact_{name}"] for name in _TOLD_BY))
            order = _order(sim, i, evaluation.fields["contact_geom"], told)
            if order is not None and (with_own_contacts or _is_other(order)):
                contacts = sim.contacts(i)
                given = {name: as_numpy(getattr(contacts, name)) for name in _TOLD_BY if with_own_contacts}
                part[i] = evaluation._replace(fields=forward_in_order(oracle, evaluation.state, order, given))
        for field in FORWARD:
            if field.space == "world":
                ours = as_numpy(sim.field(field.name))
                if ours.size:
                    errors[field.name] += _listed(first, *world_errors(model, field.name, ours, part))
        for i, evaluation in enumerate(part):
            for name, error in _arena_errors(sim, i, evaluation).items():
                errors[name].append((first + i, *error))
        sim.close()
    return errors


def world_errors(
    model: Model, name: str, ours: np.ndarray, evaluations: Sequence[Evaluation]
) -> tuple[np.ndarray, np.ndarray]:
    """Absolute and relative errors of a world field (n, ...) at n states, each (n,).

    Forces between bodies are differences of the forces on them, and zero for free bodies, so they are no more accurate
    than these. Their errors are therefore relative to the forces on bodies, and so are those of the sensors that read
    them. Torques of contacts about the point at which they act are such differences, too.
    """
    theirs = np.array([evaluation.fields[name] for evaluation in evaluations])
    if name not in ("cfrc_int", "sensordata"):
        return relative_errors(ours, theirs)
    on_bodies = [np.abs(evaluation.fields["cfrc_ext"]).max(initial=0.0) for evaluation in evaluations]
    scale = np.maximum(1.0, np.array(on_bodies))
    if name == "cfrc_int":
        return relative_errors(ours, theirs, scale)
    by = np.where(force_readings(model.mj), scale[:, None], 1.0)
    return relative_errors(ours, theirs)[0], relative_errors(ours.astype(np.float64) / by, theirs / by)[1]


def _listed(first: int, absolute: np.ndarray, relative: np.ndarray) -> Errors:
    """Errors of states from number `first` on."""
    return list(zip(range(first, first + len(absolute)), absolute.tolist(), relative.tolist(), strict=True))


def compare_steps(model: Model, oracle: Oracle, steps: Trajectory, backend: str, dtype: str) -> list[FieldResult]:
    """Compare the state after one step from each state of a trajectory; returns one result per field of `STEPPED`."""
    errors, reordered = step_errors(model, oracle, steps, backend, dtype)
    kinds = ["trajectory"] * len(steps.touched)
    rounding = Rounding(oracle, dtype)

    def effect(name: str) -> Callable[[int], float]:
        return lambda i: np.inf if i in reordered else rounding.of_step(steps.start(i), name)

    fields = step_fields(model)
    return [judge(field, errors[field.name], dtype, kinds, effect(field.name)) for field in fields]


def step_fields(model: Model) -> tuple[Compared, ...]:
    """The fields of `STEPPED`, with the tolerances that a model has."""
    return as_exact_as_convex(STEPPED, model.table.has_adhesion) if model.table.has_convex else STEPPED


def step_errors(
    model: Model, oracle: Oracle, steps: Trajectory, backend: str, dtype: str
) -> tuple[dict[str, Errors], set[int]]:
    """Errors of every field after a step, by its name; and the steps whose contacts have an order of the engine's own
    that MuJoCo cannot be given."""
    errors: dict[str, Errors] = {field.name: [] for field in STEPPED}
    reordered: set[int] = set()
    for first in range(0, len(steps.touched), WORLDS):
        before = {name: values[first : first + WORLDS] for name, values in steps.before.items()}
        after = {name: values[first : first + WORLDS].copy() for name, values in steps.after.items()}
        count = len(before["qpos"])
        sim = Simulation(model, num_worlds=count, backend=backend, dtype=dtype, on_nonfinite="freeze")
        sim.set_state(**before)
        sim.step()
        ours = {field.name: as_numpy(sim.field(field.name)).copy() for field in STEPPED}
        if heeds_order(model):
            sim.set_state(**before)
            sim.forward()
            reordered |= {first + i for i in range(count) if not _as_ordered(sim, i, oracle, before, after)}
        sim.close()
        for name, values in ours.items():
            if values.size:
                errors[name] += _listed(first, *relative_errors(values, after[name]))
    return errors, reordered


def _as_ordered(
    sim: Simulation, world: int, oracle: Oracle, before: dict[str, np.ndarray], after: dict[str, np.ndarray]
) -> bool:
    """Put into `after` what MuJoCo makes of a world's contacts in the engine's order; False if it cannot be said."""
    start = {name: values[world] for name, values in before.items()}
    order = _order(sim, world, *oracle.contacts(start))
    if order is None or not _is_other(order):
        return True
    data = step_in_order(oracle, start, order)
    for name, values in after.items() if data is not None else ():
        values[world] = getattr(data, name)
    return data is not None


def _arena_errors(sim: Simulation, world: int, evaluation: Evaluation) -> dict[str, tuple[float, float]]:
    """Errors of a world's contacts and rows."""
    contacts, rows = sim.contacts(world), sim.constraints(world)
    ours = {f"contact_{name}": as_numpy(getattr(contacts, name)) for name in _TOLD_BY}
    ours["contact_geom"] = np.column_stack((contacts.geom1, contacts.geom2))
    ours |= {f"efc_{name}": as_numpy(getattr(rows, name)) for name in rows._fields}
    return arena_errors(ours, evaluation.fields)


def arena_errors(ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]) -> dict[str, tuple[float, float]]:
    """Errors of a state's contacts and rows; errors of their fields only if both list the same ones.

    Args:
        ours: arrays by the names of `FORWARD`.
        theirs: MuJoCo's fields.
    """
    differing = float(count_differing(ours["contact_geom"], theirs["contact_geom"]))
    missing = float(abs(len(ours["efc_type"]) - int(theirs["nefc"])))
    out = {"contact_geom": (differing, differing), "nefc": (missing, missing)}
    if differing:
        return out
    own, other = (marks(*(of[f"contact_{name}"] for name in _TOLD_BY)) for of in (ours, theirs))
    order = contact_order(ours["contact_geom"], own, other)
    if len(order):
        for name in (f"contact_{part}" for part in _TOLD_BY):
            out[name] = relative_error(ours[name], theirs[name][order])
    if not missing and len(ours["efc_type"]):
        wanted = row_order(order, theirs["contact_efc_address"], theirs["efc_id"])
        for name in (name for name in ours if name.startswith("efc_")):
            values = wanted.id if name == "efc_id" else theirs[name][wanted.order]
            out[name] = relative_error(ours[name], values)
    return out


def heeds_order(model: Model) -> bool:
    """Whether forces depend on the order of the rows, as they do if sweeps stop before they converge."""
    option = model.mj.opt
    return bool(option.noslip_iterations > 0 or option.solver == mujoco.mjtSolver.mjSOL_PGS)


def _order(sim: Simulation, world: int, geoms: np.ndarray, other: np.ndarray) -> np.ndarray | None:
    """MuJoCo's index of each of the engine's contacts, if both list contacts of the same geom pairs; else None."""
    contacts = sim.contacts(world)
    ours = np.column_stack((contacts.geom1, contacts.geom2))
    if count_differing(ours, geoms):
        return None
    return contact_order(ours, marks(*(as_numpy(getattr(contacts, name)) for name in _TOLD_BY)), other)


def _is_other(order: np.ndarray) -> bool:
    return bool((np.diff(order) != 1).any())


def count_differing(ours: np.ndarray, theirs: np.ndarray) -> int:
    """Number of contacts that only one engine lists, or that both list in a different order."""
    first, second = ([tuple(pair) for pair in pairs.reshape(-1, 2).tolist()] for pairs in (ours, theirs))
    count, other = Counter(first), Counter(second)
    only_one = sum(((count - other) + (other - count)).values())
    return only_one or sum(a != b for a, b in zip(first, second, strict=True))
