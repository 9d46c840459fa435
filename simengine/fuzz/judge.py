"""Is a model computed as MuJoCo computes it? The comparison of `simengine check`, for models that may be absurd."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass, field
from typing import Any

import mujoco
import numpy as np

from simengine.check.check import comparable
from simengine.check.compare import compare_forward, compare_steps
from simengine.check.fields import AFTER_ROWS
from simengine.check.oracle import Oracle
from simengine.check.search import find_states
from simengine.check.states import Sampler
from simengine.check.trajectory import follow
from simengine.errors import ModelError, UnsupportedModelError
from simengine.fuzz.limits import blur, is_rounding, is_sane, nudged, slack_of, without_comparison
from simengine.fuzz.optimum import following
from simengine.loading import load_model
from simengine.model.model import Model

STEPS = 4
"""Steps of a trajectory that are compared for each model."""

_TRIES = 2  # for each pair type and limit that the states miss
_AFTER_INERTIA = AFTER_ROWS | {"acceleration", "step"}
_LEFT = 1e-4  # of a difference that goes with a tie; near a tie, rounding is amplified
_MOST_SLOTS = 40
_MANY = 20_000  # sweeps after which PGS, or CG, has converged
_NEWTON = mujoco.mjtSolver.mjSOL_NEWTON


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
    if reason := without_comparison(mj):
        return Outcome("undecided", [reason])
    try:
        if backend == "jax" and load_model(mj).table.sizes["nslot"] > _MOST_SLOTS:
            return Outcome("undecided", [f"JAX takes minutes to compile more than {_MOST_SLOTS} contact slots"])
        found = _compared(mj, mj.opt.solver, backend, dtypes, states, seed)
    except UnsupportedModelError as error:
        return Outcome("refused", sorted({_without_element(feature) for feature in error.features}))
    except ModelError as error:
        return Outcome("refused", [_without_names(error)])
    if found.fields:
        other = _compared(nudged(mj), mj.opt.solver, backend, dtypes, states, seed)
        other.fields = {
            name: error for name, error in other.fields.items() if error > _LEFT * found.fields.get(name, 0)
        }
        _explain_by(found, "a tie of round numbers", other)
    patient = copy(mj)
    patient.opt.iterations = _MANY
    if found.fields and mj.opt.solver != _NEWTON:
        _explain_by(found, "sweeps that end early", _compared(patient, _NEWTON, backend, dtypes, states, seed))
    if found.fields:
        other = Outcome("agrees", fields=dict(found.fields))
        for dtype in {name.rpartition(" in ")[2] for name in found.fields}:
            for name in following(patient, found.fields, backend, dtype, states, seed):
                del other.fields[name]
        _explain_by(found, "MuJoCo is no nearer to the optimum", other)
    if found.fields:
        found.kind = "differs"
    elif not found.states:
        found.kind, found.reasons = "undecided", ["no state can be compared"]
    return found


def _explain_by(found: Outcome, what: str, other: Outcome) -> None:
    """Keep the fields that differ in another comparison, too. What is found again is told by its first reasons."""
    for name in [name for name in found.fields if name not in other.fields]:
        key = f"{name}, {what}"
        found.explained[key] = found.explained.get(key, 0) + 1
        del found.fields[name]
    found.reasons = [reason for reason in found.reasons if reason.partition(" of stage")[0] in found.fields]


def _compared(mj: mujoco.MjModel, solver: int, backend: str, dtypes: Sequence[str], states: int, seed: int) -> Outcome:
    """Compare with MuJoCo, which uses the given solver, in every precision."""
    model, _ = comparable(load_model(mj), seed)
    theirs = copy(model.mj)
    theirs.opt.solver = solver
    found = Outcome("agrees")
    for dtype in dtypes:
        _compare(model, theirs, backend, dtype, states, seed, found)
    return found


def _compare(
    model: Model, mj: mujoco.MjModel, backend: str, dtype: str, states: int, seed: int, found: Outcome
) -> None:
    """Compare in one precision, and add what comes out to an outcome."""
    sampler, oracle = Sampler(mj, seed), Oracle(mj, dtype)
    drawn = find_states(model, oracle, sampler, states, _TRIES)
    sane = [evaluation for evaluation in drawn.evaluations if is_sane(evaluation, dtype)]
    steps = follow(oracle, sampler, STEPS)
    results = compare_forward(model, oracle, sane, backend, dtype) if sane else []
    calm = bool(sane) and (dtype == "float64" or len(sane) == len(drawn.evaluations))
    calm &= all(np.isfinite(values).all() for values in steps.before.values())
    if steps.touched and calm:
        results += compare_steps(model, oracle, steps, backend, dtype)
    found.states += len(sane) + len(steps.touched) * calm
    found.left_out += (
        drawn.left_out + len(drawn.evaluations) - len(sane) + steps.left_out + len(steps.touched) * (not calm)
    )
    explained, blurred = Counter(found.explained), blur(sane, dtype)
    for result in results:
        name, bound = f"{result.field} in {dtype}", slack_of(mj, dtype, result.stage) * result.tolerance
        if result.stage in _AFTER_INERTIA:
            bound = max(bound, blurred)
        explained[name] += result.ill_conditioned
        if result.relative <= bound:
            found.worst[name] = max(found.worst.get(name, 0.0), result.relative)
        elif is_rounding(result):
            explained[name] += 1
        else:
            found.fields[name] = result.relative
            found.reasons.append(
                f"{name} of stage {result.stage} is off by {result.relative:.2g}, tolerance {bound:g}, "
                f"in state {result.worst_state} ({result.worst_kind})"
            )
    found.explained = {name: number for name, number in explained.items() if number}


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]


def _without_names(error: Exception) -> str:
    """The first part of a sentence without what is in quotes, so that models can be counted by reason."""
    return re.sub(r"'[^']*' ", "", _first_line(error)).partition(":")[0]


def _without_element(feature: str) -> str:
    """A feature without the name of its element, so that models can be counted by feature."""
    return feature.partition(" of ")[0]
