"""The solver with the model's own iterations and tolerance, on both sides.

The other comparisons let both solvers converge. With a model's own budget they may stop short of the optimum, each at
another point.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import mujoco
import numpy as np

from simengine.check.compare import WORLDS
from simengine.check.fields import FORWARD, as_exact_as_convex
from simengine.check.oracle import Evaluation
from simengine.check.report import BudgetResult, relative_error
from simengine.check.states import STATE_ARRAYS, as_numpy
from simengine.model.model import Model
from simengine.simulation import Simulation

_FIELDS = ("qacc", "qfrc_constraint")
_OPTIONS = ("tolerance", "ls_tolerance", "noslip_tolerance", "iterations", "ls_iterations")


def with_budget_of(model: Model, given: Model) -> Model:
    """A copy of a model with the solver's iterations and tolerances of another one."""
    own = copy(model)
    own.table = copy(model.table)
    own.table.mj = copy(model.mj)
    for name in _OPTIONS:
        setattr(own.mj.opt, name, getattr(given.mj.opt, name))
    names = [f"opt_{name}" for name in _OPTIONS]
    own.table.arrays = {**model.table.arrays, **{n: given.table.arrays[n] for n in names if n in given.table.arrays}}
    own.table.options = {
        **model.table.options,
        **{n: given.table.options[n] for n in names if n in given.table.options},
    }
    return own


def compare_budget(own: Model, evaluations: Sequence[Evaluation], backend: str, dtype: str) -> tuple[BudgetResult, ...]:
    """Compare accelerations and constraint forces, with the budget of `own`, at evaluated states.

    Args:
        own: the model with its own budget.
        evaluations: states, with MuJoCo's converged values.
        backend: backend that is compared.
        dtype: "float32" or "float64".
    """
    tolerance = {f.name: f.tolerance for f in (as_exact_as_convex(FORWARD, False) if own.table.has_convex else FORWARD)}
    errors: dict[str, list[tuple[float, float]]] = {name: [] for name in _FIELDS}
    data = mujoco.MjData(own.mj)
    for first in range(0, len(evaluations), WORLDS):
        part = evaluations[first : first + WORLDS]
        sim = Simulation(own, num_worlds=len(part), backend=backend, dtype=dtype, on_nonfinite="freeze")
        sim.set_state(**{name: np.array([getattr(e.state, name) for e in part]) for name in STATE_ARRAYS})
        sim.forward()
        ours = {name: as_numpy(sim.field(name)) for name in _FIELDS}
        sim.close()
        for i, evaluation in enumerate(part):
            evaluation.state.put_into(own.mj, data)
            mujoco.mj_forward(own.mj, data)
            for name in _FIELDS:
                theirs = np.array(getattr(data, name))
                error = relative_error(ours[name][i], theirs)[1]
                errors[name].append((error, relative_error(theirs, evaluation.fields[name])[1]))
    return tuple(_result(name, errors[name], tolerance[name].of(dtype)) for name in _FIELDS)


def _result(name: str, errors: list[tuple[float, float]], tolerance: float) -> BudgetResult:
    return BudgetResult(
        field=name,
        states=len(errors),
        relative=max((ours for ours, _ in errors), default=0.0),
        unfinished=max((theirs for _, theirs in errors), default=0.0),
        beyond=sum(ours > max(tolerance, theirs) for ours, theirs in errors),
    )
