"""What follows from a solution may differ by what MuJoCo makes of it, and by no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from simengine import load_model
from simengine.check.oracle import Evaluation, Oracle, collect, dense_jacobian
from simengine.check.solved import Solved
from simengine.check.states import Sampler, State
from simengine.fuzz import follow
from simengine.model import Model

BALL = """
<mujoco><option integrator="{}"/><worldbody><geom type="plane" size="1 1 1" condim="1"/>
  <body pos="0 0 0.095"><freejoint/><geom size="0.1" condim="1"/></body></worldbody></mujoco>"""
OFF = 0.5  # of the acceleration along x [m/s^2]


def at_rest(integrator: str) -> tuple[Model, Oracle, Evaluation]:
    """A ball in the floor, and MuJoCo's results."""
    model = load_model(BALL.format(integrator))
    mj, oracle = model.mj, Oracle(model.mj)
    forces = {"qfrc_applied": np.zeros(mj.nv), "xfrc_applied": np.zeros((mj.nbody, 6))}
    start = {**Sampler(mj, 0).random()._asdict(), **forces, "qpos": mj.qpos0.copy(), "qvel": np.zeros(mj.nv)}
    state = State(**start)
    oracle.forward(state)
    assert oracle.data.ncon == 1
    return model, oracle, Evaluation(state, collect(mj, oracle.data), oracle.touched())


def all_of(states: Mapping[int, Evaluation]) -> set[int]:
    return set(states)


def explained(
    integrator: str, errors: dict[str, float], monkeypatch: pytest.MonkeyPatch, near: follow.Near = all_of
) -> set[str]:
    """The fields whose errors follow from an acceleration that is off, in state 3 or in a step from it."""
    model, oracle, evaluation = at_rest(integrator)
    data, moved = oracle.data, np.zeros(model.nv)
    moved[0] = OFF

    def solution(_: Model, evaluations: Sequence[Evaluation], *__: Any) -> list[Solved]:
        oracle.forward(evaluations[0].state)
        forces = data.qfrc_constraint + evaluation.fields["qM"] @ moved
        rows = (dense_jacobian(model.mj, data), data.efc_D, data.efc_aref, data.efc_force)
        return [Solved(*(np.array(values) for values in (data.qacc + moved, data.qacc_smooth, forces, *rows)))]

    monkeypatch.setattr(follow, "solve", solution)
    state, places = evaluation.state, {(name, 3): error for name, error in errors.items()}
    start = {"qpos": state.qpos, "qvel": state.qvel, "qacc_warmstart": np.zeros(model.nv)}
    starts = {3: start} if "qvel" in errors else {}
    found = follow.as_mujoco_goes_on(model, starts, {3: evaluation}, places, near, "host", "float64")
    return {name for name, _ in found}


@pytest.mark.parametrize(("integrator", "moves"), [("Euler", 1.0), ("implicitfast", 1.0), ("RK4", 0.5)])
@pytest.mark.parametrize(("part", "wanted"), [(0.99, {"qpos", "qvel"}), (1.01, set())])
def test_a_step_may_differ_by_what_an_acceleration_makes_of_it(
    integrator: str, moves: float, part: float, wanted: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of Euler's method moves by the velocity at its end, and one of Runge-Kutta by that in its middle."""
    step = 0.002
    errors = {"qvel": part * 2.0 * OFF * step, "qpos": part * 2.0 * moves * OFF * step**2, "act": 1e-9}
    assert explained(integrator, errors, monkeypatch) == wanted


@pytest.mark.parametrize("worse", [1, 2, 3])
def test_a_step_of_runge_kutta_is_not_excused_if_one_of_its_solutions_is_worse(
    worse: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = iter(range(1, 4))

    def near(states: Mapping[int, Evaluation]) -> set[int]:
        return set() if next(asked) == worse else set(states)

    assert explained("RK4", {"qvel": 1e-4}, monkeypatch, near) == set()


@pytest.mark.parametrize(("part", "wanted"), [(0.99, {"cacc"}), (1.01, set())])
def test_forces_between_bodies_may_differ_by_what_an_acceleration_makes_of_them(
    part: float, wanted: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forces of contacts are the same here, so those on the body may not differ."""
    _, _, evaluation = at_rest("Euler")
    errors = {"cacc": part * 2.0 * OFF / np.abs(evaluation.fields["cacc"]).max(), "cfrc_ext": 1e-3}
    assert explained("Euler", errors, monkeypatch) == wanted
