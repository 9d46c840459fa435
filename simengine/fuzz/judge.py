"""Is a model computed as MuJoCo computes it? The comparison of `simengine check`, for models that may be absurd."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import mujoco

from simengine.check.check import comparable
from simengine.check.compare import Errors, forward_errors, forward_fields, step_errors, step_fields
from simengine.check.fields import AFTER_ROWS
from simengine.errors import ModelError, UnsupportedModelError
from simengine.fuzz.drawn import Drawn, draw
from simengine.fuzz.explain import Missed, Question, explain
from simengine.fuzz.limits import blur, slack_of, too_many_sweeps, without_comparison
from simengine.loading import load_model
from simengine.model.model import Model

_AFTER_INERTIA = AFTER_ROWS | {"acceleration", "step"}
_MOST_SLOTS = 40


@dataclass
class Outcome:
    """What became of one model.

    Attributes:
        kind: "invalid" (MuJoCo refuses it), "refused" (the engine refuses it), "undecided" (no state can be compared),
            "agrees" or "differs"; and what only a parent process sees: "raises", "crashes" or "hangs".
        reasons: why it is invalid or refused; which fields differ; the exception, the signal or the time limit.
        states: number of states and steps that were compared.
        left_out: number of states and steps that rounding decides, or whose forces are not definite.
        worst: the largest relative error of each field that was compared.
        explained: number of values beyond a field's tolerance that rounding explains, by field.
        fields: the fields that differ, and their relative errors.
    """

    kind: str
    reasons: list[str] = field(default_factory=list)
    states: int = 0
    left_out: int = 0
    worst: dict[str, float] = field(default_factory=dict)
    explained: dict[str, int] = field(default_factory=dict)
    fields: dict[str, float] = field(default_factory=dict)

    @property
    def is_finding(self) -> bool:
        """Whether nothing explains it."""
        return self.kind in FINDINGS

    def as_dict(self) -> dict[str, Any]:
        """The outcome as a dictionary for JSON."""
        return asdict(self)


FINDINGS = ("differs", "raises", "crashes", "hangs")
"""Kinds of outcomes that the engine should not have."""


def judge(text: str, *, backend: str, dtypes: Sequence[str], states: int, seed: int) -> Outcome:
    """Compare a model with MuJoCo.

    Args:
        text: MJCF.
        backend: "cuda", "host", "jax" or "auto".
        dtypes: "float32", "float64" or both.
        states: states that are drawn, before the search for pair types and limits that they miss.
        seed: of the states.
    """
    try:
        mj = mujoco.MjModel.from_xml_string(text)
    except ValueError as error:
        return Outcome("invalid", [_first_line(error)])
    if reason := without_comparison(mj) or too_many_sweeps(mj):
        return Outcome("undecided", [reason])
    try:
        if backend == "jax" and load_model(mj).table.sizes["nslot"] > _MOST_SLOTS:
            return Outcome("undecided", [f"JAX takes minutes to compile more than {_MOST_SLOTS} contact slots"])
        found = _compared(mj, backend, dtypes, states, seed)
    except UnsupportedModelError as error:
        return Outcome("refused", sorted({_without_element(feature) for feature in error.features}))
    except ModelError as error:
        return Outcome("refused", [_without_names(error)])
    if found.fields:
        found.kind = "differs"
    elif not found.states:
        found.kind, found.reasons = "undecided", ["no state can be compared"]
    return found


def draw_alone(text: str, *, backend: str, dtypes: Sequence[str], states: int, seed: int) -> Outcome:
    """Draw the states of `judge`, with the same arguments, and let MuJoCo alone evaluate and step them."""
    mj = mujoco.MjModel.from_xml_string(text)
    if too_many_sweeps(mj):
        return Outcome("undecided")
    draw(comparable(load_model(mj), seed)[0], dtypes, states, seed)
    return Outcome("agrees")


def _compared(mj: mujoco.MjModel, backend: str, dtypes: Sequence[str], states: int, seed: int) -> Outcome:
    """Compare in every precision, and explain what can be explained."""
    model, _ = comparable(load_model(mj), seed)
    found = Outcome("agrees")
    for dtype, drawn in draw(model, dtypes, states, seed).items():
        missed = _missed(model, drawn, backend, dtype, found)
        question = Question(mj, model, drawn, backend, dtype, seed)
        for left in explain(question, missed, found.explained):
            i, error = next(iter(left.errors.items()))
            found.fields[f"{left.name} in {dtype}"] = error
            kind = "trajectory" if left.stage == "step" else drawn.evaluations[i].state.kind
            found.reasons.append(
                f"{left.name} in {dtype} of stage {left.stage} is off by {error:.2g}, tolerance {left.bound:g}, "
                f"in state {i} ({kind})"
            )
    return found


def _missed(model: Model, drawn: Drawn, backend: str, dtype: str, found: Outcome) -> list[Missed]:
    """The fields that are beyond their bounds in one precision. Counts, and errors within bounds, go to an outcome."""
    sane, steps, errors, reordered = drawn.evaluations, drawn.steps, dict[str, Errors](), set[int]()
    if sane:
        errors |= forward_errors(model, drawn.oracle, sane, backend, dtype)
    if steps.touched:
        of_steps, reordered = step_errors(model, drawn.oracle, steps, backend, dtype)
        errors |= {name: [error for error in each if error[0] not in reordered] for name, each in of_steps.items()}
    found.states += len(sane) + len(steps.touched) - len(reordered)
    found.left_out += drawn.left_out + len(reordered)
    blurred, missed = blur(sane, dtype), []
    for compared in (*forward_fields(model), *step_fields(model)):
        bound = slack_of(model.mj, dtype, compared.stage) * compared.tolerance.of(dtype)
        if compared.stage in _AFTER_INERTIA:
            bound = max(bound, blurred)
        of_field = sorted(errors.get(compared.name, ()), key=lambda error: -error[2])
        beyond = {i: relative for i, _, relative in of_field if not relative <= bound}
        within = next((relative for _, _, relative in of_field if relative <= bound), None)
        if within is not None:
            name = f"{compared.name} in {dtype}"
            found.worst[name] = max(found.worst.get(name, 0.0), within)
        if beyond:
            missed.append(Missed(compared.name, compared.stage, bound, beyond))
    return missed


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]


def _without_names(error: Exception) -> str:
    """The first part of a sentence without what is in quotes, so that models can be counted by reason."""
    return re.sub(r"'[^']*' ", "", _first_line(error)).partition(":")[0]


def _without_element(feature: str) -> str:
    """A feature without the name of its element, so that models can be counted by feature."""
    return feature.partition(" of ")[0]
