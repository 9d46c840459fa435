"""Whether the engine's solver ends as near to the optimum as MuJoCo's own, given the engine's constraint rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

import mujoco
import numpy as np

from simengine.check.check import comparable
from simengine.check.fields import AFTER_ROWS, FORWARD, STEPPED, Compared
from simengine.check.oracle import Evaluation, Oracle, collect, dense_jacobian
from simengine.check.report import relative_error
from simengine.check.search import find_states
from simengine.check.solved import Solved, solve
from simengine.check.states import Sampler
from simengine.fuzz.limits import is_sane, slack_of
from simengine.loading import load_model
from simengine.model.model import Model

_FOLLOWING = frozenset(field.name for field in FORWARD if field.stage in AFTER_ROWS) | {field.name for field in STEPPED}
_SENSORS = "sensordata"  # of them, only some follow from forces

_EQUAL = 1.01  # distances from the least cost that are equal
_SAME_ROWS = 1e-5  # largest relative error of rows that are the other engine's, within the tolerance of convex contacts
_TRIES = 2  # for each pair type and limit that the states miss
_SOLVED: Compared = next(field for field in FORWARD if field.name == "qacc")


def following(
    mj: mujoco.MjModel, fields: Mapping[str, float], backend: str, dtype: str, states: int, seed: int
) -> set[str]:
    """The fields that differ because the engine's solver ends elsewhere than MuJoCo's, but as near to the optimum.

    Both solve the engine's rows. These agree with MuJoCo's own to the tolerance at which rows are compared, but forces
    of many times what they leave over make large differences of small ones. Sweeps over elliptic cones may end
    anywhere: they improve one contact at a time. So the solvers' end points are compared by the cost that both
    minimise, MuJoCo's primal cost of the acceleration: the engine's must be no higher after as many iterations, in
    every state. An end point within the tolerance of the optimum, which MuJoCo's Newton solver finds, is as near as
    any. The engine's forces must be those that give its acceleration. Sensors may measure what does not follow from
    forces, so MuJoCo's own readings must be off by as much at its end point.

    Args:
        mj: the model.
        fields: relative error of each field that differs, by names such as "qacc in float64".
        backend: "cuda", "host", "jax" or "auto".
        dtype: "float32" or "float64"; only fields in this precision are returned.
        states: states that are drawn, before the search for pair types and limits that they miss.
        seed: of the states.
    """
    model, _ = comparable(load_model(mj), seed)
    best = copy(model.mj)
    best.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    optimum, own = Oracle(best, dtype), Oracle(model.mj, dtype)
    drawn = find_states(model, optimum, Sampler(best, seed), states, _TRIES).evaluations
    sane = [evaluation for evaluation in drawn if is_sane(evaluation, dtype)]
    bound = slack_of(mj, dtype, _SOLVED.stage) * _SOLVED.tolerance.of(dtype)
    if not sane or not _all_as_near(model, own, optimum, sane, backend, dtype, bound):
        return set()
    found = {f"{name} in {dtype}" for name in _FOLLOWING} & set(fields)
    read = f"{_SENSORS} in {dtype}"
    return found - {read} if fields.get(read, 0.0) > _off(own, sane, _SENSORS) else found


def _off(own: Oracle, evaluations: Sequence[Evaluation], name: str) -> float:
    """Largest relative error of a field at MuJoCo's own end points."""
    errors = [0.0]
    for evaluation in evaluations:
        own.forward(evaluation.state)
        errors.append(relative_error(collect(own.mj, own.data)[name], evaluation.fields[name])[1])
    return max(errors)


def _all_as_near(
    model: Model, own: Oracle, best: Oracle, sane: Sequence[Evaluation], backend: str, dtype: str, bound: float
) -> bool:
    for evaluation, ours in zip(sane, solve(model, sane, backend, dtype), strict=True):
        summed = ours.efc_force @ ours.efc_J
        moved = evaluation.fields["qM"] @ (ours.qacc - ours.qacc_smooth)
        if any(relative_error(made, ours.qfrc_constraint)[1] > bound for made in (summed, moved)):
            return False
        least = _solution(best, evaluation, ours)
        if relative_error(ours.qacc, least)[1] <= bound:
            continue
        ends = (ours.qacc, _solution(own, evaluation, ours), least)
        ours_costs, theirs_costs, least_costs = (_cost(own, evaluation, qacc) for qacc in ends)
        if ours_costs - least_costs > _EQUAL * (theirs_costs - least_costs):
            return False
    return True


def _solution(oracle: Oracle, evaluation: Evaluation, ours: Solved) -> np.ndarray:
    """MuJoCo's qacc (nv,) for the engine's rows, if they are its own to some digits; `oracle.data` holds the rows."""
    mj, data = oracle.mj, oracle.data
    oracle.forward(evaluation.state)
    rows = ((data.efc_J, ours.efc_J.ravel()), (data.efc_D, ours.efc_D), (data.efc_aref, ours.efc_aref))
    if all(a.shape == b.shape and relative_error(b, a)[1] <= _SAME_ROWS for a, b in rows):
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
