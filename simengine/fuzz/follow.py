"""What MuJoCo makes of the engine's solution, where it differs from MuJoCo's own: forces between bodies, and a step.

Two solutions may be as near to the optimum, and then what follows from them differs, too. By how much is told without
the engine: MuJoCo goes on from the engine's accelerations and forces as it goes on from its own. The engine may differ
by no more, so an error of what comes after the solver is not excused by the solver's.
"""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from simengine.check.compare import world_errors
from simengine.check.fields import FORWARD, STEPPED
from simengine.check.oracle import Evaluation, Oracle, collect, dense_jacobian
from simengine.check.report import relative_error
from simengine.check.solved import Solved, solve
from simengine.fuzz.focus import Place, put
from simengine.model.model import Model

_TIMES = 2.0  # times the difference that MuJoCo makes: contacts may have another order in it
# A step of Runge-Kutta goes on from four solutions. One of Euler's method tells how much a difference in one makes.
_TIMES_OF_FOUR = 4.0
_FORCES = frozenset(field.name for field in FORWARD if field.stage in ("rne_post", "body_forces"))
_STEP = frozenset(field.name for field in STEPPED)
_IMPLICIT = (int(mujoco.mjtIntegrator.mjINT_IMPLICIT), int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST))


def as_mujoco_goes_on(
    model: Model,
    starts: Mapping[int, Mapping[str, np.ndarray]],
    evaluations: Mapping[int, Evaluation],
    errors: Mapping[Place, float],
    backend: str,
    dtype: str,
) -> set[Place]:
    """Those of the fields that differ by no more than MuJoCo makes of the two solutions.

    Args:
        model: the model that was compared.
        starts: states before steps by their numbers, if the fields are those after a step.
        evaluations: the same states, or those in which forces between bodies differ.
        errors: relative errors of the fields.
        backend: "cuda", "host", "jax" or "auto".
        dtype: "float32" or "float64".
    """
    numbers = sorted({i for _, i in errors})
    if not numbers:
        return set()
    warm = [starts[i]["qacc_warmstart"] for i in numbers] if starts else None
    solved = solve(model, [evaluations[i] for i in numbers], backend, dtype, warm)
    oracle, found = Oracle(model.mj, dtype), set[Place]()
    in_four = bool(starts) and model.mj.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    times = _TIMES_OF_FOUR if in_four else _TIMES
    for i, ours in zip(numbers, solved, strict=True):
        made = _of_step(oracle, starts[i], ours) if starts else _of_forces(model, oracle, evaluations[i], ours)
        found |= {(name, k) for (name, k), error in errors.items() if k == i and error <= times * made.get(name, 0.0)}
    return found


def _of_forces(model: Model, oracle: Oracle, evaluation: Evaluation, ours: Solved) -> dict[str, float]:
    """Relative differences of the forces between bodies that MuJoCo makes of two solutions."""
    mj, data = oracle.mj, oracle.data
    oracle.forward(evaluation.state)
    own = evaluation._replace(fields=collect(mj, data))
    data.qacc[:] = ours.qacc
    same = _same_rows(ours, dense_jacobian(mj, data), data.efc_aref)
    if same is not None:
        data.efc_force[:] = ours.efc_force[same]
    oracle.complete()
    fields = collect(mj, data)
    return {name: float(world_errors(model, name, fields[name][None], [own])[1][0]) for name in _FORCES}


def _same_rows(ours: Solved, jacobian: np.ndarray, aref: np.ndarray) -> np.ndarray | None:
    """The engine's row for each of MuJoCo's, whose contacts may have another order; None if that cannot be said."""
    if ours.efc_J.shape != jacobian.shape or not len(aref):
        return None
    own, other = (np.column_stack(rows) for rows in ((jacobian, aref), (ours.efc_J, ours.efc_aref)))
    apart = np.abs(own[:, None] - other[None]).max(axis=2)
    nearest = apart.argmin(axis=1)
    if len(set(nearest.tolist())) < len(nearest):
        return None
    return nearest


def _of_step(oracle: Oracle, start: Mapping[str, np.ndarray], ours: Solved) -> dict[str, float]:
    """Relative differences of the state after a step that MuJoCo makes of two solutions."""
    own, other = (_after(oracle, start, solution) for solution in (None, ours))
    return {name: relative_error(other[name], own[name])[1] for name in _STEP}


def _after(oracle: Oracle, start: Mapping[str, np.ndarray], solution: Solved | None) -> dict[str, np.ndarray]:
    """MuJoCo's state after a step with its own solution, or with another one."""
    mj, data = oracle.mj, oracle.data
    put(oracle, start)
    mujoco.mj_forward(mj, data)
    if solution is not None:
        data.qacc[:], data.qfrc_constraint[:] = solution.qacc, solution.qfrc_constraint
    (mujoco.mj_implicit if mj.opt.integrator in _IMPLICIT else mujoco.mj_Euler)(mj, data)
    return {name: np.array(getattr(data, name)) for name in _STEP}
