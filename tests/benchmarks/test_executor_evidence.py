"""What the CUDA backend says of its choice of executor is what the committed results say."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

from simengine.backends.cuda import _MEASURED

ROOT = Path(__file__).resolve().parents[2]
RESULTS = [ROOT / "benchmarks" / "results" / f"scheduler{kind}_h200.json" for kind in ("", "_large")]
ROWS = [row for path in RESULTS for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]
MODELS = ("ant", "half_cheetah", "walker2d", "grasp", "humanoid")
PAGE = (ROOT / "docs" / "executors.md").read_text(encoding="utf-8")


def times(workload: str) -> dict[str, float]:
    """Microseconds a step, by executor."""
    return {row["executor"]: row["us_per_step"] for row in ROWS if row["workload"] == workload}


def over(other: str, executor: str, workload: str) -> float:
    """How many times as fast an executor is as another one."""
    return times(workload)[other] / times(workload)[executor]


def test_cached_graphs_are_within_4_percent_of_the_fastest_for_steps_ahead_of_counts() -> None:
    assert "of eleven executors" in _MEASURED["graph-cached"]
    for model in MODELS:
        measured = times(f"{model}:emission=ahead")
        del measured["auto"]  # is one of the others
        assert len(measured) == 11
        assert measured["graph-cached"] <= 1.04 * min(measured.values())


def test_whole_steps_of_few_worlds_take_half_of_that_but_for_one_model() -> None:
    ratios = [
        times(f"{model}:emission=whole")["graph-cached"] / times(f"{model}:emission=ahead")["graph-cached"]
        for model in MODELS
    ]
    assert "took 0.5 to 0.6 of that on four of them" in _MEASURED["graph-cached"]
    assert sum(0.45 <= ratio <= 0.65 for ratio in ratios) == 4


def test_cached_graphs_take_longer_than_streams_for_steps_that_wait_for_counts() -> None:
    ratios = sorted(times(model)["graph-cached"] / times(model)["streams"] for model in MODELS)
    assert "1.3 to 2.9 times as long on three of five models" in _MEASURED["streams"]
    assert "0.8 times on the others" in _MEASURED["streams"]
    assert ratios == pytest.approx([0.79, 0.83, 1.34, 1.75, 2.87], abs=0.006)


def test_the_page_has_the_ratios_to_serial() -> None:
    lines = [line for line in PAGE.splitlines() if "| `" in line]
    assert len(lines) == 10
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        executor, shown = cells[1].split("`")[1], cells[3:]
        base = "device:tiled=false" if cells[0] == "cuSync" else "serial"
        mean = statistics.fmean(over(base, executor, f"{model}:emission=ahead") for model in MODELS)
        wanted = [mean, over(base, executor, "mixed:emission=ahead"), over(base, executor, "wired")]
        assert [float(cell) for cell in shown] == [pytest.approx(ratio, abs=0.0051) for ratio in wanted], line


def test_auto_is_never_far_behind() -> None:
    tried = {row["workload"] for row in ROWS if row["executor"] == "auto"}
    assert len(tried) >= 20
    assert all(over("graph-cached", "auto", workload) >= 0.95 for workload in tried)
    assert all(over("serial", "auto", workload) >= 0.985 for workload in tried if "shards" not in workload)


def test_whole_steps_over_the_best_serial() -> None:
    gained = []
    for model in (*MODELS, "mixed"):
        lists = [name for name in (model, f"{model}:emission=ahead", f"{model}:shards=4") if times(name)]
        best = min(times(name)["serial"] for name in lists)
        gained.append(best / times(f"{model}:emission=whole")["graph-cached"])
    assert statistics.fmean(gained[:-1]) == pytest.approx(2.30, abs=0.0051)
    assert gained[-1] == pytest.approx(4.84, abs=0.0051)


def test_over_graphs_that_are_built_anew() -> None:
    fixed = [over("graph", "auto", f"{model}:emission=ahead") for model in MODELS]
    counted = [over("graph", "auto", model) for model in MODELS]
    whole = [
        times(f"{model}:emission=ahead")["graph"] / times(f"{model}:emission=whole")["graph-cached"] for model in MODELS
    ]
    for ratios, shown in ((fixed, "1.8 to 4.0 on fixed"), (counted, "1.7 to 3.0, mean"), (whole, "2.4 to 7.8, mean")):
        assert f"{min(ratios):.1f} to {max(ratios):.1f}" in shown
        assert shown in PAGE
    means = [statistics.fmean(ratios) for ratios in (fixed, counted, whole)]
    assert means == pytest.approx([2.6, 2.3, 4.7], abs=0.051)
