"""What a report says of errors, and when it says that nothing can be said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simengine.check.compare import _differing
from simengine.check.report import CheckReport, Coverage, FieldResult, StepCoverage, relative_error

FIELD = FieldResult("solve", "qacc", 10, 0.2, 0.001, 0.002, 3, "random")
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
    assert _differing(np.array(ours, dtype=int), np.array(theirs, dtype=int)) == count


def test_passes_only_if_enough_could_be_compared() -> None:
    assert REPORT.passed
    assert "agrees with MuJoCo 4.0.0 in all 1 fields" in REPORT.verdict()
    for short in (
        replace(REPORT, coverage=replace(STATES, left_out=11)),
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
