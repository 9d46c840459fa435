"""The page on trust has the figures of the committed results, and the files that it names are there."""

from __future__ import annotations

import json

import pytest

from benchmarks.trust import PAGE, PARTS, RESULTS, written


def test_the_page_has_the_figures_of_the_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page, "run python -m benchmarks.trust"


def test_nothing_wrong_is_in_the_results() -> None:
    results = {mark: json.loads((RESULTS / name).read_text(encoding="utf-8")) for mark, (name, _) in PARTS.items()}
    for finding in results["fuzz"]["findings"]:
        assert finding["kind"] == "differs", finding
    assert not any(row["wrong"] for row in results["faults"]["rows"])
    assert all(row["flat"] for row in results["soak"]["rows"])


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="has no part <!-- fuzz -->"):
        written("# Trust")
