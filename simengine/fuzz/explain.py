"""Why a difference from MuJoCo is no error of the engine: rounding, ties, and sweeps that end early.

Each rule looks at the very states and steps that differ, and each of these must be explained by some rule.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field

import mujoco
import numpy as np

from simengine.check.check import comparable
from simengine.check.compare import forward_fields
from simengine.check.oracle import Oracle
from simengine.fuzz.drawn import Drawn
from simengine.fuzz.focus import Focus, Place
from simengine.fuzz.limits import nudged, slack_of
from simengine.fuzz.nearest import NEAREST, as_near
from simengine.fuzz.optimum import following
from simengine.fuzz.own_contacts import errors_after_steps
from simengine.fuzz.perturbed import Perturbed
from simengine.loading import load_model
from simengine.model.model import Model

_ROUNDINGS = 2.0  # times what moving all numbers by a few units does to MuJoCo's own result
_MOST = 16  # states of a field that are looked at: the worst
# Sizes of moves that break ties [m]; the part of a difference that may be left, and how many times the bound: near a
# tie, rounding is amplified. What a small move leaves as it was is no tie. In float32 edges that cross at 1e-4 may
# still count as parallel.
_LEFT = {
    "float64": {1e-4: (1e-2, 2.0), 1e-3: (1e-3, 1.0)},
    "float32": {1e-3: (1e-2, 2.0), 3e-3: (1e-3, 1.0)},
}
# Moves of each size, and how many of all may leave it: a move may make another tie.
_TURNS, _OTHER_TIES = 3, 1
_CONTACTS = "narrowphase"  # the stage of contacts
_MANY = 20_000  # sweeps after which PGS, or CG, has converged
_NEWTON = mujoco.mjtSolver.mjSOL_NEWTON


@dataclass
class Missed:
    """A field beyond its bound.

    Attributes:
        name: its name.
        stage: the stage that computes it; "step" for the state after a step.
        bound: largest relative error that counts as none.
        errors: relative errors by the number of the state or step, the largest first.
    """

    name: str
    stage: str
    bound: float
    errors: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """What is to be explained: one model in one precision.

    Attributes:
        mj: the model as it was drawn.
        model: the model that was compared, whose solvers converge.
        drawn: its states and steps.
        backend, dtype: the engine's backend and precision.
        seed: of the states.
    """

    mj: mujoco.MjModel
    model: Model
    drawn: Drawn
    backend: str
    dtype: str
    seed: int


def explain(question: Question, missed: list[Missed], explained: dict[str, int]) -> list[Missed]:
    """The fields and states that no rule explains. Nothing explains a result that is no number where MuJoCo's is one.

    Args:
        question: the model, its states, and where it is compared.
        missed: fields beyond their bounds.
        explained: counts fields by "FIELD in PRECISION, REASON".
    """
    missed = [Missed(m.name, m.stage, m.bound, dict(list(m.errors.items())[:_MOST])) for m in missed]
    for reason, rule in _RULES.items():
        if not missed:
            break
        found = rule(question, _focus(question, missed), missed)
        for m in missed:
            left = {i: error for i, error in m.errors.items() if (m.name, i) not in found or not np.isfinite(error)}
            if len(left) < len(m.errors):
                key = f"{m.name} in {question.dtype}, {reason}"
                explained[key] = explained.get(key, 0) + 1
            m.errors = left
        missed = [m for m in missed if m.errors]
    return missed


Rule = Callable[[Question, Focus, list[Missed]], set[Place]]


def _by_rounding(question: Question, focus: Focus, missed: list[Missed]) -> set[Place]:
    """MuJoCo's own result changes as much if its numbers are rounded as an engine must round them."""
    drawn, perturbed = question.drawn, Perturbed(question.model, question.drawn.oracle, question.dtype)
    changes: dict[Place, float] = {}
    for i in focus.states:
        of_state = perturbed.of_forward(drawn.evaluations[i])
        changes |= {(name, i): change for name, change in of_state.items()}
    for i, start in focus.starts.items():
        changes |= {(name, i): change for name, change in perturbed.of_step(start).items()}
    return {(m.name, i) for m in missed for i, error in m.errors.items() if error <= _ROUNDINGS * changes[m.name, i]}


def _by_ties(question: Question, focus: Focus, missed: list[Missed]) -> set[Place]:
    """It goes if bodies and geoms are moved a little, so that no two distances are equal: of six moves, in five."""
    held: dict[Place, int] = {}
    seen: dict[Place, int] = {}
    for turn, (size, (part, times)) in itertools.product(range(_TURNS), _LEFT[question.dtype].items()):
        model, _ = comparable(load_model(nudged(question.mj, size, turn)), question.seed)
        errors = focus.errors(model, Oracle(model.mj, question.dtype), question.backend, question.dtype)
        for m in missed:
            for i in (i for i in m.errors if (m.name, i) in errors):
                seen[m.name, i] = seen.get((m.name, i), 0) + 1
                if errors[m.name, i] > max(times * m.bound, part * m.errors[i]):
                    held[m.name, i] = held.get((m.name, i), 0) + 1
    return {place for place, often in seen.items() if often > _TURNS and held.get(place, 0) <= _OTHER_TIES}


def _by_nearest(question: Question, focus: Focus, missed: list[Missed]) -> set[Place]:
    """The engine's contacts have MuJoCo's distance, along their own normals and between points of the shapes."""
    bounds = {m.name: m.bound for m in missed if m.name in NEAREST}
    states = {i for m in missed if m.name in NEAREST for i in m.errors}
    evaluations = {i: question.drawn.evaluations[i] for i in focus.states if i in states}
    near = as_near(question.model, question.drawn.oracle, evaluations, bounds, question.backend, question.dtype)
    return {(name, i) for name in bounds for i in near}


def _by_contacts(question: Question, focus: Focus, missed: list[Missed]) -> set[Place]:
    """MuJoCo, given the engine's contacts, gives the same. The contacts themselves are right, or explained before.

    Faces that touch have many nearest points, of which each engine takes some. Forces may be many times larger than the
    differences of the points. Those before a step must be MuJoCo's, or as near.
    """
    model, backend, dtype, oracle = question.model, question.backend, question.dtype, question.drawn.oracle
    wrong = {i for m in missed if m.stage == _CONTACTS for i in m.errors}
    clear = Focus({i: state for i, state in focus.states.items() if i not in wrong}, {})
    errors = clear.forward_errors(model, oracle, backend, dtype, with_own_contacts=True)
    of_contacts = [field for field in forward_fields(model) if field.name in NEAREST]
    bounds = {f.name: slack_of(model.mj, dtype, f.stage) * f.tolerance.of(dtype) for f in of_contacts}
    return _within(missed, errors | errors_after_steps(model, oracle, focus.starts, bounds, backend, dtype))


def _by_early_ends(question: Question, focus: Focus, missed: list[Missed]) -> set[Place]:
    """It goes if the engine's solver makes many sweeps, and MuJoCo's is Newton's."""
    if question.mj.opt.solver == _NEWTON:
        return set()
    model, _ = comparable(load_model(_patient(question.mj)), question.seed)
    best = copy(model.mj)
    best.opt.solver = _NEWTON
    errors = focus.errors(model, Oracle(best, question.dtype), question.backend, question.dtype)
    return _within(missed, errors)


def _by_optimum(question: Question, focus: Focus, missed: list[Missed]) -> set[Place]:
    """The engine's solver ends as near to the optimum as MuJoCo's own."""
    model, _ = comparable(load_model(_patient(question.mj)), question.seed)
    places = {(m.name, i): error for m in missed for i, error in m.errors.items()}
    return following(model, question.model, focus, places, question.backend, question.dtype)


_RULES: Mapping[str, Rule] = {
    "rounding": _by_rounding,
    "points that are as near": _by_nearest,
    "a tie of round numbers": _by_ties,
    "MuJoCo makes the same of the engine's contacts": _by_contacts,
    "sweeps that end early": _by_early_ends,
    "MuJoCo is no nearer to the optimum": _by_optimum,
}


def _focus(question: Question, missed: list[Missed]) -> Focus:
    """The states and steps that are left to be explained."""
    drawn = question.drawn
    states = sorted({i for m in missed if m.stage != "step" for i in m.errors})
    steps = sorted({i for m in missed if m.stage == "step" for i in m.errors})
    return Focus({i: drawn.evaluations[i].state for i in states}, {i: drawn.steps.start(i) for i in steps})


def _within(missed: list[Missed], errors: Mapping[Place, float]) -> set[Place]:
    places = {(m.name, i): m.bound for m in missed for i in m.errors}
    return {place for place, bound in places.items() if errors.get(place, bound + 1.0) <= bound}


def _patient(mj: mujoco.MjModel) -> mujoco.MjModel:
    patient = copy(mj)
    patient.opt.iterations = _MANY
    return patient
