"""How a report judges errors, and when it says that no judgement is possible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simengine.check.compare import count_differing
from simengine.check.fields import FORWARD
from simengine.check.judged import judge
from simengine.check.report import CheckReport, Coverage, FieldResult, StepCoverage, relative_error, relative_errors

FIELD = FieldResult("solve", "qacc", 10, 0, 0.2, 0.001, 0.002, 3, "random")
STATES = Coverage({"random": 10}, 0, 5, 2, 20, 8, 0, {"plane-sphere": 5}, 0, 0, ())
REPORT = CheckReport(
    "ball", "host", "float32", 0, "4.0.0", (FIELD,), STATES, StepCoverage(10, 0, 5, 20, 8, 0, {"plane-sphere": 5})
)


def test_errors_are_relative_to_the_largest_entry_of_at_least_one() -> None:
    assert relative_error(np.array([1.0, 8.5]), np.array([1.0, 8.0])) == (0.5, 0.0625)
    assert relative_error(np.array([0.25]), np.array([0.5])) == (0.25, 0.25)
    assert relative_error(np.zeros((0, 3)), np.zeros(0)) == (0.0, 0.0)


@pytest.mark.parametrize("ours", [[np.nan, 1.0], [np.inf, 1.0], [1.0]])
def test_numbers_that_are_none_or_missing_are_infinitely_wrong(ours: list[float]) -> None:
    assert relative_error(np.array(ours), np.array([1.0, 1.0])) == (np.inf, np.inf)


def test_errors_of_many_states_are_those_of_each() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(size=(40, 3, 2)).astype(np.float32), rng.normal(scale=3, size=(40, 3, 2))
    theirs[rng.random(theirs.shape) < 0.2] = np.nan
    theirs[7], ours[3, 1, 1], ours[5, 0, 0], theirs[5, 0, 0], theirs[9, 0] = np.nan, np.inf, np.nan, 1.0, np.inf
    least = rng.uniform(0.1, 5, 40)
    absolute, relative = relative_errors(ours, theirs, least)
    each = [relative_error(a, b, by) for a, b, by in zip(ours, theirs, least, strict=True)]
    assert list(zip(absolute.tolist(), relative.tolist(), strict=True)) == each
    assert np.isinf(relative).sum() == 3
    assert relative_errors(ours[:, :0], theirs[:, :0])[1].tolist() == [0.0] * 40
    assert np.isinf(relative_errors(ours[:, :1], theirs)[1]).all()


def test_an_error_at_the_tolerance_holds_and_one_that_is_no_number_does_not() -> None:
    assert replace(FIELD, relative=FIELD.tolerance).holds
    assert not replace(FIELD, relative=np.nextafter(FIELD.tolerance, 1)).holds
    assert not replace(FIELD, relative=np.nan).holds


@pytest.mark.parametrize(
    ("ours", "theirs", "count"),
    [
        ([[0, 1], [0, 2]], [[0, 1], [0, 2]], 0),
        ([[0, 1]], [[0, 1], [0, 2]], 1),
        ([[0, 1], [0, 1]], [[0, 1], [0, 2]], 2),
        ([[0, 2], [0, 1]], [[0, 1], [0, 2]], 2),
        ([], [[0, 1], [0, 1]], 2),
        ([], [], 0),
    ],
)
def test_contacts_differ_in_number_geoms_or_order(ours: list[int], theirs: list[int], count: int) -> None:
    assert count_differing(np.array(ours, dtype=int), np.array(theirs, dtype=int)) == count


def judged(errors: list[float], effect: float, held: float = 0.0) -> FieldResult:
    """The verdict on relative errors of states where rounding the state does `effect`, and rounding what engines hold
    does `held`; the tolerance of qacc is 1e-6."""
    field = next(f for f in FORWARD if f.name == "qacc")
    states = [(i, 2 * e, e) for i, e in enumerate(errors)]
    return judge(field, states, "float64", ["random"] * len(errors), lambda state: effect, lambda state: held)


def test_a_few_differences_that_rounding_explains_are_left_out_and_counted() -> None:
    result = judged([1e-9, 3e-6, *[1e-8] * 38], effect=1e-6)
    assert result.holds
    assert (result.states, result.ill_conditioned) == (39, 1)
    assert (result.absolute, result.relative, result.worst_state, result.rounding) == (2e-8, 1e-8, 2, None)


@pytest.mark.parametrize(
    ("errors", "effect"),
    [
        ([1e-9, 3e-6, *[1e-8] * 38], 1e-8),  # rounding does too little
        ([1e-9, np.inf, *[1e-8] * 38], 1e-6),
        ([1e-9, *[3e-6] * 3, *[1e-8] * 36], 1e-6),  # too many states
        ([3e-6, 3e-6], 1e-6),
    ],
)
def test_other_differences_stand(errors: list[float], effect: float) -> None:
    result = judged(errors, effect)
    assert not result.holds
    assert (result.states, result.ill_conditioned, result.rounding) == (len(errors), 0, effect)
    assert result.relative == max(errors)


def test_passes_only_if_enough_could_be_compared() -> None:
    for enough in (REPORT, replace(REPORT, coverage=replace(STATES, left_out=30))):
        assert enough.passed
    assert "agrees with MuJoCo 4.0.0 in all 1 fields compared" in REPORT.verdict()
    for short in (
        replace(REPORT, coverage=replace(STATES, left_out=31)),
        replace(REPORT, coverage=replace(STATES, states={})),
        replace(REPORT, trajectory=replace(REPORT.trajectory, steps=0)),
    ):
        assert short.failures == ()
        assert not short.passed
        assert "could not be judged" in short.verdict()


def test_the_first_failing_stage_is_named() -> None:
    wrong = replace(FIELD, relative=0.5)
    report = replace(REPORT, fields=(FIELD, wrong, replace(wrong, stage="step", field="qvel")))
    assert [result.field for result in report.failures] == ["qacc", "qvel"]
    assert "DIFFERS from MuJoCo in 2 of 3 fields, first in qacc of stage solve" in report.verdict()
    assert [field["holds"] for field in report.as_dict()["fields"]] == [True, False, False]
    assert report.as_dict()["passed"] is False


def test_differences_that_rounding_what_engines_hold_explains_are_left_out_in_any_number() -> None:
    result = judged([1e-9, *[3e-6] * 38], effect=0.0, held=1e-6)
    assert result.holds
    assert (result.states, result.ill_conditioned, result.relative) == (1, 38, 1e-9)
    assert not judged([1e-9, *[3e-6] * 38], effect=0.0, held=5e-7).holds
    assert not judged([1e-9, *[3e-6] * 37, 5e-6], effect=0.0, held=1e-6).holds


def test_the_verdict_names_fields_that_are_ill_conditioned_in_most_states() -> None:
    report = replace(REPORT, fields=(replace(FIELD, states=4, ill_conditioned=6),))
    assert report.passed
    assert "rounding what every engine holds changes qacc as much" in report.verdict()
    assert "rounding" not in replace(REPORT, fields=(replace(FIELD, states=6, ill_conditioned=4),)).verdict()
