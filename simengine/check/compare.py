"""The comparison: the engine and MuJoCo on the same states, field by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import mujoco
import numpy as np

from simengine.check.fields import AFTER_ROWS, FORWARD, STEPPED, Compared, as_exact_as_convex, as_exact_as_search
from simengine.check.oracle import Evaluation, Oracle
from simengine.check.order import contact_order, row_order
from simengine.check.report import FieldResult, relative_error
from simengine.check.rounding import Rounding
from simengine.check.states import STATE_ARRAYS
from simengine.check.trajectory import Trajectory
from simengine.model.model import Model
from simengine.simulation import Simulation

WORLDS = 1024  # worlds per simulation; JAX would compile again for another number
# A difference counts as ill-conditioned if it is at most _ROUNDINGS times the effect of rounding the state (each joint
# of a chain rounds again), in at most the fraction _FEW of the states; or at most _HELD times the effect of rounding
# the values that every engine stores between its stages.
_ROUNDINGS = 16.0
_FEW = 0.05
_HELD = 4.0
_NEAREST = (mujoco.mjtSensor.mjSENS_GEOMDIST, mujoco.mjtSensor.mjSENS_GEOMNORMAL, mujoco.mjtSensor.mjSENS_GEOMFROMTO)

Errors = list[tuple[int, float, float]]
"""(state, absolute error, relative error) for every state at which a field was compared."""


def compare_forward(
    model: Model, oracle: Oracle, evaluations: Sequence[Evaluation], backend: str, dtype: str
) -> list[FieldResult]:
    """Compare every field after `forward()`; returns one result per field of `FORWARD`."""
    errors: dict[str, Errors] = {field.name: [] for field in FORWARD}
    reordered: set[int] = set()
    for first in range(0, len(evaluations), WORLDS):
        part = evaluations[first : first + WORLDS]
        sim = Simulation(model, num_worlds=len(part), backend=backend, dtype=dtype, on_nonfinite="freeze")
        sim.set_state(**{name: np.array([getattr(e.state, name) for e in part]) for name in STATE_ARRAYS})
        sim.forward()
        for field in FORWARD:
            if field.space == "world":
                ours = as_numpy(sim.field(field.name))
                if ours.size:
                    errors[field.name] += [
                        (first + i, *world_error(model, field.name, ours[i], e.fields)) for i, e in enumerate(part)
                    ]
        for i, evaluation in enumerate(part):
            for name, error in _arena_errors(sim, i, evaluation).items():
                errors[name].append((first + i, *error))
            if _is_reordered(sim, i, evaluation.fields["contact_geom"], evaluation.fields["contact_pos"]):
                reordered.add(first + i)
        sim.close()
    kinds = [e.state.kind for e in evaluations]
    rounding = Rounding(oracle, dtype)
    forward = as_exact_as_convex(FORWARD, model.table.has_adhesion) if model.table.has_convex else FORWARD
    if np.isin(model.mj.sensor_type, _NEAREST).any():
        forward = as_exact_as_search(forward)

    def effect(field: Compared) -> Callable[[int], float]:
        by_order = reordered if field.stage in AFTER_ROWS and _heeds_order(model) else ()
        return lambda i: np.inf if i in by_order else rounding.of_forward(evaluations[i].state, field.name)

    def held(field: Compared) -> Callable[[int], float]:
        return lambda i: rounding.of_held(evaluations[i].state, field.name)

    return [judge(field, errors[field.name], dtype, kinds, effect(field), held(field)) for field in forward]


def world_error(model: Model, name: str, ours: np.ndarray, fields: dict[str, np.ndarray]) -> tuple[float, float]:
    """Absolute and relative error of a world field.

    Forces between bodies are differences of the forces on them, and zero for free bodies, so they are no more accurate
    than these. Their errors are therefore relative to the forces on bodies, and so are those of the sensors that read
    them.
    """
    theirs = fields[name]
    scale = max(1.0, float(np.abs(fields["cfrc_ext"]).max(initial=0.0)))
    if name != "sensordata":
        return relative_error(ours, theirs, scale if name == "cfrc_int" else 1.0)
    between = np.isin(model.mj.sensor_type, (mujoco.mjtSensor.mjSENS_FORCE, mujoco.mjtSensor.mjSENS_TORQUE))
    by = np.where(np.repeat(between, model.mj.sensor_dim), scale, 1.0)
    return relative_error(ours, theirs)[0], relative_error(ours.astype(np.float64) / by, theirs / by)[1]


def compare_steps(model: Model, oracle: Oracle, steps: Trajectory, backend: str, dtype: str) -> list[FieldResult]:
    """Compare the state after one step from each state of a trajectory; returns one result per field of `STEPPED`."""
    errors: dict[str, Errors] = {field.name: [] for field in STEPPED}
    reordered: set[int] = set()
    for first in range(0, len(steps.touched), WORLDS):
        before = {name: values[first : first + WORLDS] for name, values in steps.before.items()}
        count = len(before["qpos"])
        sim = Simulation(model, num_worlds=count, backend=backend, dtype=dtype, on_nonfinite="freeze")
        sim.set_state(**before)
        sim.step()
        for field in STEPPED:
            ours, theirs = as_numpy(sim.field(field.name)), steps.after[field.name][first:]
            if ours.size:
                errors[field.name] += [(first + i, *relative_error(ours[i], theirs[i])) for i in range(count)]
        if _heeds_order(model):
            sim.set_state(**before)
            sim.forward()
            contacts = (oracle.contacts({name: v[i] for name, v in before.items()}) for i in range(count))
            reordered |= {first + i for i, listed in enumerate(contacts) if _is_reordered(sim, i, *listed)}
        sim.close()
    kinds = ["trajectory"] * len(steps.touched)
    rounding = Rounding(oracle, dtype)

    def effect(name: str) -> Callable[[int], float]:
        before = steps.before.items()
        return lambda i: np.inf if i in reordered else rounding.of_step({k: v[i] for k, v in before}, name)

    stepped = as_exact_as_convex(STEPPED, model.table.has_adhesion) if model.table.has_convex else STEPPED
    return [judge(field, errors[field.name], dtype, kinds, effect(field.name)) for field in stepped]


def _arena_errors(sim: Simulation, world: int, evaluation: Evaluation) -> dict[str, tuple[float, float]]:
    """Errors of a world's contacts and rows; errors of their fields only if both engines list the same ones."""
    theirs = evaluation.fields
    contacts, rows = sim.contacts(world), sim.constraints(world)
    geoms = np.column_stack((contacts.geom1, contacts.geom2))
    differing = float(count_differing(geoms, theirs["contact_geom"]))
    missing = float(abs(rows.nefc - int(theirs["nefc"])))
    out = {"contact_geom": (differing, differing), "nefc": (missing, missing)}
    if differing:
        return out
    order = contact_order(geoms, as_numpy(contacts.pos), theirs["contact_pos"])
    if contacts.ncon:
        for field in ("dist", "pos", "frame"):
            out[f"contact_{field}"] = relative_error(
                as_numpy(getattr(contacts, field)), theirs[f"contact_{field}"][order]
            )
    if not missing and rows.nefc:
        wanted = row_order(order, theirs["contact_efc_address"], theirs["efc_id"])
        for field in rows._fields:
            values = wanted.id if field == "id" else theirs[f"efc_{field}"][wanted.order]
            out[f"efc_{field}"] = relative_error(as_numpy(getattr(rows, field)), values)
    return out


def _heeds_order(model: Model) -> bool:
    """Whether forces depend on the order of the rows, as they do if sweeps stop before they converge."""
    option = model.mj.opt
    return bool(option.noslip_iterations > 0 or option.solver == mujoco.mjtSolver.mjSOL_PGS)


def _is_reordered(sim: Simulation, world: int, geoms: np.ndarray, pos: np.ndarray) -> bool:
    """Whether the other engine has the contacts of a world in another order within geom pairs; rounding decides it."""
    contacts = sim.contacts(world)
    ours = np.column_stack((contacts.geom1, contacts.geom2))
    if count_differing(ours, geoms):
        return False
    return bool((np.diff(contact_order(ours, as_numpy(contacts.pos), pos)) != 1).any())


def count_differing(ours: np.ndarray, theirs: np.ndarray) -> int:
    """Number of contacts that only one engine lists, or that both list in a different order."""
    first, second = ([tuple(pair) for pair in pairs.reshape(-1, 2).tolist()] for pairs in (ours, theirs))
    count, other = Counter(first), Counter(second)
    only_one = sum(((count - other) + (other - count)).values())
    return only_one or sum(a != b for a, b in zip(first, second, strict=True))


def judge(
    field: Compared,
    errors: Errors,
    dtype: str,
    kinds: Sequence[str],
    effect: Callable[[int], float],
    held: Callable[[int], float] = lambda state: 0.0,
) -> FieldResult:
    """The largest of a field's errors.

    `effect` gives the effect of rounding a state; `held` that of rounding the values that engines store between stages.
    """
    tolerance = field.tolerance.of(dtype)
    beyond = [e for e in errors if not e[2] <= tolerance]
    rounded = {state for state, _, relative in beyond if relative <= _HELD * held(state)}
    rest = [e for e in beyond if e[0] not in rounded]
    if len(rest) <= max(1.0, _FEW * len(errors)):
        rounded |= {state for state, _, relative in rest if relative <= _ROUNDINGS * effect(state)}
    kept = [e for e in errors if e[0] not in rounded]
    state, _, relative = max(kept, key=lambda e: e[2], default=(-1, 0.0, 0.0))
    return FieldResult(
        stage=field.stage,
        field=field.name,
        states=len(kept),
        ill_conditioned=len(rounded),
        absolute=max((e[1] for e in kept), default=0.0),
        relative=relative,
        tolerance=tolerance,
        worst_state=state,
        worst_kind=kinds[state] if kept else "",
        rounding=None if relative <= tolerance else effect(state),
    )


def as_numpy(array: Any) -> np.ndarray:
    """Copy of any backend's array as a NumPy array."""
    return array.get() if hasattr(array, "get") else np.asarray(array)
