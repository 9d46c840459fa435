"""What the CUDA backend says of its choice of executor is what the committed results say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simengine.backends.cuda import _MEASURED

RESULT = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "scheduler_h200.json"
MODELS = ("ant", "half_cheetah", "walker2d", "grasp", "humanoid")


def times(workload: str) -> dict[str, float]:
    """Microseconds a step, by executor."""
    rows = json.loads(RESULT.read_text(encoding="utf-8"))["rows"]
    return {row["executor"]: row["us_per_step"] for row in rows if row["workload"] == workload}


def test_cached_graphs_are_within_3_percent_of_the_fastest_for_steps_ahead_of_counts() -> None:
    assert "of eleven executors" in _MEASURED["graph-cached"]
    for model in MODELS:
        measured = times(f"{model}:emission=ahead")
        del measured["auto"]  # is one of the others
        assert len(measured) == 11
        assert measured["graph-cached"] <= 1.03 * min(measured.values())


def test_whole_steps_of_few_worlds_take_half_of_that_but_for_one_model() -> None:
    ratios = [
        times(f"{model}:emission=whole")["graph-cached"] / times(f"{model}:emission=ahead")["graph-cached"]
        for model in MODELS
    ]
    assert "took 0.5 to 0.6 of that on four of them" in _MEASURED["graph-cached"]
    assert sum(0.45 <= ratio <= 0.65 for ratio in ratios) == 4


def test_cached_graphs_take_longer_than_streams_for_steps_that_wait_for_counts() -> None:
    ratios = sorted(times(model)["graph-cached"] / times(model)["streams"] for model in MODELS)
    assert "2.8 to 3.6 times as long on three of five models" in _MEASURED["streams"]
    assert "0.7 and 0.9 times on the others" in _MEASURED["streams"]
    assert ratios == pytest.approx([0.66, 0.94, 2.82, 3.28, 3.62], abs=0.06)
