"""What MuJoCo makes of the engine's solution, where it differs from MuJoCo's own: forces between bodies, and a step.

Two solutions may be as near to the optimum, and then what follows from them differs, too. By how much is told without
the engine: MuJoCo goes on from the engine's accelerations and forces as it goes on from its own. The engine may differ
by no more, so an error of what comes after the solver is not excused by the solver's. A step of Runge-Kutta goes on
from four solutions, each in a state that the one before it leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import mujoco
import numpy as np

from simengine.check.compare import world_errors
from simengine.check.fields import FORWARD, STEPPED
from simengine.check.oracle import Evaluation, Oracle, collect, dense_jacobian
from simengine.check.report import relative_error
from simengine.check.runge_kutta import RungeKutta
from simengine.check.solved import Solved, solve
from simengine.check.states import State
from simengine.fuzz.focus import Place, put
from simengine.model.model import Model

_TIMES = 2.0  # times the difference that MuJoCo makes: contacts may have another order in it
_FORCES = frozenset(field.name for field in FORWARD if field.stage in ("rne_post", "body_forces"))
_STEP = frozenset(field.name for field in STEPPED)
_IMPLICIT = (int(mujoco.mjtIntegrator.mjINT_IMPLICIT), int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST))
_EVALUATIONS = 4  # of a step of Runge-Kutta

Near = Callable[[Mapping[int, Evaluation]], set[int]]
"""Gives those of some states, by their numbers, in which the engine ends as near to the optimum as MuJoCo."""


def as_mujoco_goes_on(
    model: Model,
    starts: Mapping[int, Mapping[str, np.ndarray]],
    evaluations: Mapping[int, Evaluation],
    errors: Mapping[Place, float],
    near: Near,
    backend: str,
    dtype: str,
) -> set[Place]:
    """Those of the fields that differ by no more than MuJoCo makes of the two solutions.

    Args:
        model: the model that was compared.
        starts: states before steps by their numbers, if the fields are those after a step.
        evaluations: the same states, or those in which forces between bodies differ. In these the engine ends as near
            to the optimum as MuJoCo.
        errors: relative errors of the fields.
        near: tells that of further states.
        backend: "cuda", "host", "jax" or "auto".
        dtype: "float32" or "float64".
    """
    numbers = sorted({i for _, i in errors})
    if not numbers:
        return set()
    oracle = Oracle(model.mj, dtype)
    if starts:
        of_four = model.mj.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
        first = {i: evaluations[i] for i in numbers}
        made = (_of_four if of_four else _of_steps)(model, oracle, starts, first, near, backend, dtype)
    else:
        solved = solve(model, [evaluations[i] for i in numbers], backend, dtype)
        each = zip(numbers, solved, strict=True)
        made = {i: _of_forces(model, oracle, evaluations[i], ours) for i, ours in each}
    return {(name, i) for (name, i), error in errors.items() if error <= _TIMES * made.get(i, {}).get(name, 0.0)}


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


def _of_steps(
    model: Model,
    oracle: Oracle,
    starts: Mapping[int, Mapping[str, np.ndarray]],
    evaluations: Mapping[int, Evaluation],
    _: Near,
    backend: str,
    dtype: str,
) -> dict[int, dict[str, float]]:
    """Relative differences of the state after a step that MuJoCo makes of two solutions."""
    warm = [starts[i]["qacc_warmstart"] for i in evaluations]
    solved = solve(model, list(evaluations.values()), backend, dtype, warm)
    return {
        i: _apart(_after(oracle, starts[i], None), _after(oracle, starts[i], ours))
        for i, ours in zip(evaluations, solved, strict=True)
    }


def _apart(own: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> dict[str, float]:
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


def _of_four(
    model: Model,
    oracle: Oracle,
    starts: Mapping[int, Mapping[str, np.ndarray]],
    evaluations: Mapping[int, Evaluation],
    near: Near,
    backend: str,
    dtype: str,
) -> dict[int, dict[str, float]]:
    """Relative differences of the state after a step of Runge-Kutta that MuJoCo makes of the solutions of each engine.

    A step is left out if the engine does not end as near to the optimum as MuJoCo in each of the four states. The
    engine's solver starts where its step lets it: PGS from the acceleration of the step before, others from the latest.
    """
    own, other = ({i: _begun(oracle.mj, starts[i]) for i in evaluations} for _ in range(2))
    warm = {i: starts[i]["qacc_warmstart"] for i in evaluations}
    for k in range(_EVALUATIONS):
        if k:
            evaluations = {i: _evaluated(oracle, evaluations[i].state, other[i]) for i in evaluations}
            kept = near(evaluations)
            evaluations = {i: evaluation for i, evaluation in evaluations.items() if i in kept}
        if not evaluations:
            return {}
        solved = solve(model, list(evaluations.values()), backend, dtype, [warm[i] for i in evaluations])
        for (i, evaluation), ours in zip(evaluations.items(), solved, strict=True):
            other[i].advance(ours.qacc, evaluation.fields["act_dot"])
            _evaluated(oracle, evaluation.state, own[i], starts[i]["qacc_warmstart"])
            own[i].advance(oracle.data.qacc, oracle.data.act_dot)
            if model.mj.opt.solver != mujoco.mjtSolver.mjSOL_PGS:
                warm[i] = ours.qacc
    return {i: _apart(vars(own[i]), vars(other[i])) for i in evaluations}


def _begun(mj: mujoco.MjModel, start: Mapping[str, np.ndarray]) -> RungeKutta:
    return RungeKutta(mj, start["qpos"], start["qvel"], start.get("act", np.zeros(mj.na)))


def _evaluated(oracle: Oracle, state: State, step: RungeKutta, warm: np.ndarray | None = None) -> Evaluation:
    """MuJoCo's results at the point that a step has reached; without a warm start unless one is given."""
    state = state._replace(qpos=step.qpos, qvel=step.qvel, act=step.act)
    if warm is None:
        oracle.forward(state)
    else:
        state.put_into(oracle.mj, oracle.data)
        oracle.data.qacc_warmstart[:] = warm
        mujoco.mj_forward(oracle.mj, oracle.data)
    return Evaluation(state, oracle.fields(), oracle.touched())
