"""Whether the engine's solver ends as near to the optimum as MuJoCo's own, given the engine's constraint rows."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

import mujoco
import numpy as np

from simengine.check.fields import AFTER_ROWS, FORWARD, STEPPED, Compared
from simengine.check.oracle import Evaluation, Oracle, collect, dense_jacobian
from simengine.check.report import relative_error
from simengine.check.solved import Solved, solve
from simengine.fuzz.focus import Focus, Place
from simengine.fuzz.follow import as_mujoco_goes_on
from simengine.fuzz.limits import slack_of
from simengine.model.model import Model

_AFTER_FORWARD = frozenset(field.name for field in FORWARD if field.stage in AFTER_ROWS)
_AFTER_STEP = frozenset(field.name for field in STEPPED)
_SOLUTION = frozenset(field.name for field in FORWARD if field.stage == "solve")
_SENSORS = "sensordata"  # of them, only some follow from forces

_EQUAL = 1.01  # distances from the least cost that are equal
# Largest relative error of rows that are the other engine's: the tolerances of convex contacts, and of rows in float32.
_SAME_ROWS = {"float64": 1e-5, "float32": 1e-3}
_SOLVED: Compared = next(field for field in FORWARD if field.name == "qacc")


def following(
    model: Model, given: Model, focus: Focus, places: Mapping[Place, float], backend: str, dtype: str
) -> set[Place]:
    """The fields that differ because the engine's solver ends elsewhere than MuJoCo's, but as near to the optimum.

    Both solve the engine's rows. These agree with MuJoCo's own to the tolerance at which rows are compared, but forces
    of many times what they leave over make large differences of small ones. Sweeps over elliptic cones may end
    anywhere: they improve one contact at a time. So the solvers' end points are compared by the cost that both
    minimise, MuJoCo's primal cost of the acceleration: the engine's must be no higher after as many iterations, in
    every state. An end point within the tolerance of the optimum, which MuJoCo's Newton solver finds, is as near as
    any. The engine's forces must be those that give its acceleration. What follows from a solution must differ by no
    more than MuJoCo makes of the two solutions; see `as_mujoco_goes_on`. Sensors may measure what does not follow from
    forces, so MuJoCo's own readings must be off by as much at its end point.

    Args:
        model: the model, with as many iterations as the end points may take.
        given: the model that was compared.
        focus: the states and steps that differ. Of a step, the solution in the state before it counts.
        places: relative errors of the fields that differ.
        backend: "cuda", "host", "jax" or "auto".
        dtype: "float32" or "float64".

    Returns:
        Those of the places that are explained.
    """
    best = copy(model.mj)
    best.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    optimum, own = Oracle(best, dtype), Oracle(model.mj, dtype)
    bound = slack_of(model.mj, dtype, _SOLVED.stage) * _SOLVED.tolerance.of(dtype)

    def as_near(states: Mapping[int, Evaluation]) -> set[int]:
        return _as_near(model, own, optimum, states, backend, dtype, bound)

    found: set[Place] = set()
    before_steps = focus.before_steps(best).evaluated(optimum, dtype)
    parts = ((_AFTER_FORWARD, focus.evaluated(optimum, dtype)), (_AFTER_STEP, before_steps))
    for fields, evaluations in parts:
        here = {place for place in places if place[0] in fields and place[1] in evaluations}
        near = as_near({i: evaluations[i] for _, i in here})
        explained = {(name, i) for name, i in here if i in near and name in _SOLUTION}
        explained |= {
            (name, i)
            for name, i in here
            if i in near and name == _SENSORS and places[name, i] <= _off(own, evaluations[i], name)
        }
        others = {place: places[place] for place in here - explained if place[1] in near and place[0] != _SENSORS}
        starts = focus.starts if fields is _AFTER_STEP else {}
        explained |= as_mujoco_goes_on(given, starts, evaluations, others, as_near, backend, dtype)
        found |= explained
    return found


def _off(own: Oracle, evaluation: Evaluation, name: str) -> float:
    """Relative error of a field at MuJoCo's own end point."""
    own.forward(evaluation.state)
    return relative_error(collect(own.mj, own.data)[name], evaluation.fields[name])[1]


def _as_near(
    model: Model,
    own: Oracle,
    best: Oracle,
    evaluations: Mapping[int, Evaluation],
    backend: str,
    dtype: str,
    bound: float,
) -> set[int]:
    """Those of the states in which the engine ends as near to the optimum as MuJoCo."""
    if not evaluations:
        return set()
    solved = solve(model, list(evaluations.values()), backend, dtype)
    pairs = zip(evaluations.items(), solved, strict=True)
    return {i for (i, evaluation), ours in pairs if _is_as_near(own, best, evaluation, ours, bound, dtype)}


def _is_as_near(own: Oracle, best: Oracle, evaluation: Evaluation, ours: Solved, bound: float, dtype: str) -> bool:
    summed = ours.efc_force @ ours.efc_J
    moved = evaluation.fields["qM"] @ (ours.qacc - ours.qacc_smooth)
    if any(relative_error(made, ours.qfrc_constraint)[1] > bound for made in (summed, moved)):
        return False
    same = _SAME_ROWS[dtype]
    least = _solution(best, evaluation, ours, same)
    if relative_error(ours.qacc, least)[1] <= bound:
        return True
    ends = (ours.qacc, _solution(own, evaluation, ours, same), least)
    ours_costs, theirs_costs, least_costs = (_cost(own, evaluation, qacc) for qacc in ends)
    return ours_costs - least_costs <= _EQUAL * (theirs_costs - least_costs)


def _solution(oracle: Oracle, evaluation: Evaluation, ours: Solved, same: float) -> np.ndarray:
    """MuJoCo's qacc (nv,) for the engine's rows, if their relative errors are at most `same`; `oracle.data` holds the
    rows."""
    mj, data = oracle.mj, oracle.data
    oracle.forward(evaluation.state)
    rows = ((data.efc_J, ours.efc_J.ravel()), (data.efc_D, ours.efc_D), (data.efc_aref, ours.efc_aref))
    if all(a.shape == b.shape and relative_error(b, a)[1] <= same for a, b in rows):
        for theirs, values in rows:
            theirs[:] = values
        data.efc_R[:] = 1 / ours.efc_D
        mujoco.mj_projectConstraint(mj, data)
        mujoco.mj_fwdConstraint(mj, data)
    return np.array(data.qacc)


def _cost(oracle: Oracle, evaluation: Evaluation, qacc: np.ndarray) -> float:
    """MuJoCo's primal cost of an acceleration (nv,), in the state in the oracle's data."""
    mj, data = oracle.mj, oracle.data
    off = qacc - evaluation.fields["qacc_smooth"]
    cost = np.zeros(1)
    if data.nefc:
        mujoco.mj_constraintUpdate(mj, data, dense_jacobian(mj, data) @ qacc - data.efc_aref, cost, 0)
    return float(cost[0] + 0.5 * off @ evaluation.fields["qM"] @ off)
