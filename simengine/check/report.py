"""The report of a check: errors by field, and what the states cover."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

LEAST_MARGIN = 1e-9
"""Margin with which MuJoCo finds the least penetration of boxes and meshes in height fields [m]."""

_MOST_LIE = "most states lie on one"
_NOT_LEAST = "MuJoCo does not find the least penetration of boxes and meshes in height fields without one"


def relative_error(ours: np.ndarray, theirs: np.ndarray, least: float = 1.0) -> tuple[float, float]:
    """Error of one field at one state.

    Returns:
        max|ours - theirs|, and that divided by max(least, max|theirs|); infinite if ours is not finite or has another
        size. Entries where theirs is nan do not count.
    """
    if ours.size != theirs.size:
        return np.inf, np.inf
    if not theirs.size:
        return 0.0, 0.0
    ours, largest = ours.reshape(theirs.shape), float(np.abs(theirs).max())
    if math.isnan(largest):
        counts = ~np.isnan(theirs)
        return relative_error(ours[counts], theirs[counts], least)
    absolute = float(np.abs(np.subtract(ours, theirs, dtype=np.float64)).max())
    if not math.isfinite(absolute):
        return np.inf, np.inf
    return absolute, absolute / max(least, largest)


def relative_errors(
    ours: np.ndarray, theirs: np.ndarray, least: np.ndarray | float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Errors of one field at many states: `relative_error` of each, at once.

    Args:
        ours, theirs: (n, ...) each.
        least: least magnitude that errors are relative to, one or (n,).

    Returns:
        absolute and relative errors, each (n,).
    """
    n = len(theirs)
    if ours.size != theirs.size:
        return np.full(n, np.inf), np.full(n, np.inf)
    if not theirs.size:
        return np.zeros(n), np.zeros(n)
    theirs = theirs.reshape(n, -1)
    difference = np.abs(np.subtract(ours.reshape(n, -1), theirs, dtype=np.float64))
    uncounted = np.isnan(theirs)
    difference[uncounted] = 0.0
    largest = np.abs(np.where(uncounted, 0.0, theirs)).max(axis=1)
    absolute = difference.max(axis=1)
    wrong = ~np.isfinite(absolute)
    absolute[wrong] = np.inf
    relative = absolute / np.where(wrong, 1.0, np.maximum(least, largest))
    return absolute, relative


@dataclass(frozen=True)
class FieldResult:
    """The largest errors of one field.

    Attributes:
        stage: the stage that computes the field.
        field: MuJoCo's name of the field.
        states: number of states at which it was compared. Contact and row fields are compared only where both engines
            list the same contacts and rows; fields without entries are not compared.
        ill_conditioned: number of further states at which the error is beyond the tolerance for reasons that affect
            every engine of this precision; they are left out of the errors. The first reason is that MuJoCo's own value
            changes by at least a fourth of the error if the values that all engines store between their stages (poses,
            velocities, inertia matrix, rows, forces) are rounded by one unit in the last place. The other reasons hold
            as long as such states are few: the error is at most a few times the effect of rounding the state or of
            MuJoCo's own convex collisions; rounding decides what touches; in a step of Runge-Kutta, rounding changes
            the order of the contacts of a pair, and sweeps over them stop early; or corners of meshes are off a face by
            no more than rounding.
        absolute: largest max|a - b| over the states, where b is MuJoCo's, in the field's unit.
        relative: largest max|a - b| / max(1, max|b|) over the states.
        tolerance: bound of the relative error.
        worst_state: index of the state with the largest relative error, -1 if none was compared.
        worst_kind: kind of that state.
        rounding: for a field beyond its tolerance: relative change of MuJoCo's own value when the numbers of the worst
            state move by one unit in the last place.
    """

    stage: str
    field: str
    states: int
    ill_conditioned: int
    absolute: float
    relative: float
    tolerance: float
    worst_state: int
    worst_kind: str
    rounding: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the error is within the tolerance."""
        return self.relative <= self.tolerance


@dataclass(frozen=True)
class Coverage:
    """What the compared states cover.

    Attributes:
        states: number of states by kind.
        left_out: states left out because rounding decides a contact or limit.
        contacts, contacts_max: contacts in all states together, and most in one state.
        rows, rows_max: active constraint rows in all states together, and most in one state.
        limit_rows: rows of joint and tendon limits.
        pairs: contacts that exert a force, by pair type, for every pair type of the model.
        limits: number of joint limits that are active in some state.
        limits_total: number of joint limits of the model; the two sides of a hinge or slide count as two.
        unreached: pair types that touch in no state, and limits that are active in none, in words.
        readings_left_out: readings that rounding decides: of touch sensors where the line of a force passes the edge of
            the site, and of nearest points where other points are as near.
        by_rounding: of the states left out, those without a contact or limit within 1e-6 of its margin, in which
            rounding chooses among contacts.
    """

    states: dict[str, int]
    left_out: int
    contacts: int
    contacts_max: int
    rows: int
    rows_max: int
    limit_rows: int
    pairs: dict[str, int]
    limits: int
    limits_total: int
    unreached: tuple[str, ...]
    readings_left_out: int = 0
    by_rounding: int = 0

    @property
    def num_states(self) -> int:
        """Number of states that were compared."""
        return sum(self.states.values())


@dataclass(frozen=True)
class StepCoverage:
    """What the compared steps of the trajectory cover; names as in `Coverage`."""

    steps: int
    left_out: int
    contacts: int
    rows: int
    rows_max: int
    limit_rows: int
    pairs: dict[str, int]
    by_rounding: int = 0


@dataclass(frozen=True)
class BudgetResult:
    """How a field compares with the model's own iterations and tolerance of the solver. It does not decide whether a
    check passes, because solvers that stop short of the optimum stop at different points.

    Attributes:
        field: MuJoCo's name of the field.
        states: number of states at which it was compared.
        relative: largest max|a - b| / max(1, max|b|) over the states, where b is MuJoCo's with the same budget.
        unfinished: the same of MuJoCo with that budget against MuJoCo converged.
        beyond: states at which the engines differ by more than the field's tolerance, and by more than MuJoCo stops
            short of the optimum.
    """

    field: str
    states: int
    relative: float
    unfinished: float
    beyond: int


@dataclass(frozen=True)
class CheckReport:
    """Result of `check_model`.

    Attributes:
        model: name of the model.
        backend: backend that was compared, never "auto".
        dtype: "float32" or "float64".
        seed: seed of the states.
        mujoco: version of MuJoCo.
        fields: a result per field, in the order of the stages.
        coverage: what the states cover at which fields were compared after `forward()`.
        trajectory: what the steps cover.
        widened: by how much all margins were widened for the comparison [m, rad]: because most states were on a margin,
            or by LEAST_MARGIN only, because boxes or meshes touch height fields without a margin.
        budget: the solution with the model's own budget of the solver.
        knife_edges: pairs of geoms that are at their margin up to rounding where the model starts, in words.
    """

    model: str
    backend: str
    dtype: str
    seed: int
    mujoco: str
    fields: tuple[FieldResult, ...]
    coverage: Coverage
    trajectory: StepCoverage
    widened: float = 0.0
    budget: tuple[BudgetResult, ...] = ()
    knife_edges: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[FieldResult, ...]:
        """Fields beyond their tolerance, in the order of the stages: the first is the likely culprit."""
        return tuple(result for result in self.fields if not result.holds)

    @property
    def enough(self) -> bool:
        """Whether at least a quarter of the states and of the steps could be compared."""
        return all(
            compared > 0 and left_out <= 3 * compared
            for compared, left_out in (
                (self.coverage.num_states, self.coverage.left_out),
                (self.trajectory.steps, self.trajectory.left_out),
            )
        )

    @property
    def passed(self) -> bool:
        """Whether every field is within its tolerance, and enough states and steps could be compared."""
        return self.enough and not self.failures

    @property
    def share_left_out(self) -> tuple[float, float]:
        """Share of the states, and of the steps, that were left out because rounding decides their contacts."""
        counts = (
            (self.coverage.num_states, self.coverage.left_out),
            (self.trajectory.steps, self.trajectory.left_out),
        )
        return counts[0][1] / max(1, sum(counts[0])), counts[1][1] / max(1, sum(counts[1]))

    def verdict(self) -> str:
        """The outcome in one sentence."""
        where = f"{self.model!r} on {self.backend} in {self.dtype}"
        if self.widened:
            why = _MOST_LIE if self.widened > LEAST_MARGIN else _NOT_LEAST
            where += f" with all margins {self.widened:g} wider, since {why},"
        if self.failures:
            first = self.failures[0]
            return (
                f"{where} DIFFERS from MuJoCo in {len(self.failures)} of {len(self.fields)} fields, first in "
                f"{first.field} of stage {first.stage}: relative error {first.relative:.1e}, "
                f"tolerance {first.tolerance:.1e}, effect of rounding the state alone {first.rounding or 0.0:.1e}"
            )
        if not self.enough:
            return (
                f"{where} could not be judged: too many states lie on a contact's or limit's margin, or have contacts "
                "that rounding chooses; try another seed, or float64"
            )
        empty = sum(result.states == 0 for result in self.fields)
        rest = f"; {empty} have no entries" if empty else ""
        mostly = [result.field for result in self.fields if result.ill_conditioned > result.states]
        if mostly:
            rest += (
                f"; in most states rounding what every engine holds changes {', '.join(mostly)} as much as they differ"
            )
        if any(self.share_left_out):
            states, steps = (f"{100 * share:.2g} %" for share in self.share_left_out)
            rest += f"; rounding decides what touches in {states} of the states and {steps} of the steps, left out"
        return f"{where} agrees with MuJoCo {self.mujoco} in all {len(self.fields) - empty} fields compared{rest}"

    def as_dict(self) -> dict[str, Any]:
        """The report as a dictionary for JSON, with `holds` for each field, and `passed` and `verdict`."""
        values = asdict(self)
        values["fields"] = [{**asdict(result), "holds": result.holds} for result in self.fields]
        return {**values, "passed": self.passed, "verdict": self.verdict()}
