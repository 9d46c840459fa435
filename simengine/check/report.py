"""What a check found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

LEAST_MARGIN = 1e-9
"""With which MuJoCo finds the least penetration of boxes and meshes in height fields [m]."""

_MOST_LIE = "most states lie on one"
_NOT_LEAST = "MuJoCo does not find the least penetration of boxes and meshes in height fields without one"


def relative_error(ours: np.ndarray, theirs: np.ndarray, least: float = 1.0) -> tuple[float, float]:
    """Error of one field in one state.

    Returns:
        max|ours - theirs|, and that over max(least, max|theirs|); infinite where ours is not finite or of another size.
        Entries count where theirs are not nan.
    """
    if ours.size != theirs.size:
        return np.inf, np.inf
    counts = ~np.isnan(theirs)
    if not counts.any():
        return 0.0, 0.0
    ours, theirs = ours.reshape(theirs.shape)[counts], theirs[counts]
    absolute = float(np.abs(ours.astype(np.float64) - theirs).max())
    if not np.isfinite(absolute):
        return np.inf, np.inf
    return absolute, absolute / max(least, float(np.abs(theirs).max()))


@dataclass(frozen=True)
class FieldResult:
    """The worst disagreement of one field.

    Attributes:
        stage: the stage that computes the field.
        field: MuJoCo's name of it.
        states: in how many states it was compared; contact and row fields only where both engines list the same
            ones, and fields without entries, such as those of contacts where there are none, not at all.
        ill_conditioned: in how many further states it is beyond its tolerance for reasons that no engine of this
            precision escapes; they are left out of the errors. Either rounding what all engines hold between their
            stages (poses and velocities, the inertia matrix, rows and forces) by one unit in the last place does at
            least a fourth as much to MuJoCo's own value. Or, as long as these are few, it is beyond by no more than a
            few times what rounding the state alone or MuJoCo's own convex collisions do; or rounding decides what
            touches, or puts the contacts of a pair in another order and sweeps over them end early, or corners of
            meshes lie off a face by no more than it.
        absolute: largest max|a - b| of a state, b being MuJoCo's, in the field's own unit.
        relative: largest max|a - b| / max(1, max|b|) of a state.
        tolerance: bound of the relative error.
        worst_state: number of the state with the largest relative error, -1 if none was compared.
        worst_kind: how that state came about.
        rounding: of a field beyond its tolerance: how much MuJoCo's own value changes, relatively, when the worst
            state's numbers move one unit in the last place.
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
    """What the compared states touch.

    Attributes:
        states: number of states by kind.
        left_out: states left out because a contact or limit was within 1e-6 of its margin.
        contacts, contacts_max: contacts in all states, and in the fullest.
        rows, rows_max: active constraint rows in all states, and in the fullest.
        limit_rows: rows of joint and tendon limits.
        pairs: contacts that exert a force by pair type, for every pair type the model has.
        limits: number of joint limits that are active in some state.
        limits_total: number of joint limits of the model, a hinge's or slide's two sides counted apart.
        unreached: pair types that touch in no state, and limits that are active in none, in words.
        readings_left_out: readings that rounding decides: of touch sensors where a force's line meets the edge of the
            site, and of nearest points where others are as near.
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

    @property
    def num_states(self) -> int:
        """Number of states that were compared."""
        return sum(self.states.values())


@dataclass(frozen=True)
class StepCoverage:
    """What the compared steps of the trajectory touch; names as in `Coverage`."""

    steps: int
    left_out: int
    contacts: int
    rows: int
    rows_max: int
    limit_rows: int
    pairs: dict[str, int]


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
        coverage: what the states touch in which fields were compared after `forward()`.
        trajectory: what the steps touch.
        widened: by how much all margins were widened for the comparison [m, rad]: because most states lie on one, or
            only by LEAST_MARGIN because boxes or meshes touch height fields without a margin.
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
        """Whether every field holds, and enough could be compared to say so."""
        return self.enough and not self.failures

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
        return f"{where} agrees with MuJoCo {self.mujoco} in all {len(self.fields) - empty} fields compared{rest}"

    def as_dict(self) -> dict[str, Any]:
        """Everything by name, for JSON, with `holds` for each field and `passed` for the whole."""
        values = asdict(self)
        values["fields"] = [{**asdict(result), "holds": result.holds} for result in self.fields]
        return {**values, "passed": self.passed, "verdict": self.verdict()}
