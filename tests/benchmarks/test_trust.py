"""The page on trust has the figures of the committed results, and the files that it names are there."""

from __future__ import annotations

import json

import pytest

from benchmarks.trust import PAGE, PARTS, RESULTS, fuzz_figures, written


def test_the_page_has_the_figures_of_the_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page, "run python -m benchmarks.trust"


def test_nothing_wrong_is_in_the_results() -> None:
    results = {
        name: json.loads((RESULTS / name).read_text(encoding="utf-8")) for names, _ in PARTS.values() for name in names
    }
    for name, result in results.items():
        if name.startswith("fuzz"):
            assert result["passed"], (name, result["findings"])
            assert result["states"] > 100, name
        if name.startswith("faults"):
            assert not any(row["wrong"] for row in result["rows"]), name
    for name in PARTS["soak"][0]:
        assert all(row["flat"] for row in results[name]["rows"]), name


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="has no part <!-- fuzz -->"):
        written("# Trust")


def test_runs_on_one_machine_and_day_are_one_sentence() -> None:
    first = json.loads((RESULTS / PARTS["fuzz"][0][0]).read_text(encoding="utf-8"))
    other = {**first, "hardware": {**first["hardware"], "cores": 3}, "complete": False}
    figures = fuzz_figures(first, other, {**first, "seed": 1})
    assert figures.count("backend, on") == 2
    assert f"{2 * first['states']:,}" in figures.replace("\n", " ")
    assert f"{2 * first['drawn']:,} models in" in figures
    assert "of 2 runs" in figures
    assert figures.count("ended early") == 1
