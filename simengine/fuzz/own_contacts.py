"""The engine's steps beside what MuJoCo makes of the engine's contacts.

Each evaluation of a step is given the contacts that the engine lists there, if they are MuJoCo's or as near. A step of
Runge-Kutta has four evaluations, each in a state that the one before it leads to.
"""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from simengine.check.fields import STEPPED
from simengine.check.oracle import Evaluation, Oracle
from simengine.check.order import contact_order, marks
from simengine.check.reordered import forward_in_order, step_in_order
from simengine.check.report import relative_error
from simengine.check.runge_kutta import RungeKutta
from simengine.check.solved import Listed, contacts, stepped
from simengine.fuzz.focus import Focus, Place
from simengine.fuzz.nearest import as_near
from simengine.model.model import Model

_EVALUATIONS = 4  # of a step of Runge-Kutta
_STEP = tuple(field.name for field in STEPPED)
_TOLD_BY = ("dist", "pos", "frame")

Start = Mapping[str, np.ndarray]
"""A state before a step, by MuJoCo's names, with `qacc_warmstart`."""


def errors_after_steps(
    model: Model, oracle: Oracle, starts: Mapping[int, Start], bounds: Mapping[str, float], backend: str, dtype: str
) -> dict[Place, float]:
    """Relative errors of the state after those of the steps whose contacts are MuJoCo's or as near.

    Args:
        model: the model.
        oracle: MuJoCo on it.
        starts: states before steps, by their numbers.
        bounds: as for `as_near`, for every field of a contact.
        backend: "cuda", "host", "jax" or "auto".
        dtype: "float32" or "float64".
    """
    of_four = model.mj.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    wanted = (_of_four if of_four else _of_one)(model, oracle, starts, bounds, backend, dtype)
    if not wanted:
        return {}
    ours = stepped(model, [starts[i] for i in wanted], backend, dtype)
    return {
        (name, i): relative_error(values[k], wanted[i][name])[1]
        for name, values in ours.items()
        for k, i in enumerate(wanted)
    }


def _of_one(
    model: Model, oracle: Oracle, starts: Mapping[int, Start], bounds: Mapping[str, float], backend: str, dtype: str
) -> dict[int, dict[str, np.ndarray]]:
    """MuJoCo's states after steps with one evaluation."""
    evaluations = Focus({}, starts).before_steps(oracle.mj).everywhere(oracle)
    found = {}
    for i, ours in _near(model, oracle, evaluations, bounds, backend, dtype).items():
        data = step_in_order(oracle, starts[i], *_given(ours, evaluations[i]))
        assert data is not None
        found[i] = {name: np.array(getattr(data, name)) for name in _STEP}
    return found


def _of_four(
    model: Model, oracle: Oracle, starts: Mapping[int, Start], bounds: Mapping[str, float], backend: str, dtype: str
) -> dict[int, dict[str, np.ndarray]]:
    """MuJoCo's states after steps of Runge-Kutta."""
    evaluations = Focus({}, starts).before_steps(oracle.mj).everywhere(oracle)
    steps = {
        i: RungeKutta(oracle.mj, start["qpos"], start["qvel"], start.get("act", np.zeros(oracle.mj.na)))
        for i, start in starts.items()
    }
    for k in range(_EVALUATIONS):
        near = _near(model, oracle, evaluations, bounds, backend, dtype)
        evaluations = {i: evaluations[i] for i in near}
        for i, ours in near.items():
            fields = forward_in_order(oracle, evaluations[i].state, *_given(ours, evaluations[i]))
            steps[i].advance(fields["qacc"], fields["act_dot"])
        if k < _EVALUATIONS - 1:
            states = {
                i: e.state._replace(qpos=steps[i].qpos, qvel=steps[i].qvel, act=steps[i].act)
                for i, e in evaluations.items()
            }
            evaluations = Focus(states, {}).everywhere(oracle)
    return {i: {name: getattr(steps[i], name) for name in _STEP} for i in evaluations}


def _near(
    model: Model,
    oracle: Oracle,
    evaluations: Mapping[int, Evaluation],
    bounds: Mapping[str, float],
    backend: str,
    dtype: str,
) -> dict[int, Listed]:
    """The engine's contacts in those of the states in which they are MuJoCo's or as near."""
    near = as_near(model, oracle, evaluations, bounds, backend, dtype)
    chosen = {i: evaluation for i, evaluation in evaluations.items() if i in near}
    if not chosen:
        return {}
    return dict(zip(chosen, contacts(model, list(chosen.values()), backend, dtype), strict=True))


def _given(ours: Listed, evaluation: Evaluation) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """MuJoCo's index of each of the engine's contacts, and what takes the place of MuJoCo's own."""
    theirs = marks(*(evaluation.fields[f"contact_{name}"] for name in _TOLD_BY))
    order = contact_order(evaluation.fields["contact_geom"], ours.marks, theirs)
    return order, {name: getattr(ours, name) for name in _TOLD_BY}
