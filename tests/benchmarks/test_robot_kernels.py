"""The kernels of robots that `benchmarks.robot_kernels` finds, on the host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import robot_kernels
from simengine.cli.bench.peers.ours import Simengine


def test_kernels_of_a_case_stand_in_the_order_of_their_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kernels.json"
    effort = ["--backend", "host", "--warmup", "2", "--steps", "2", "--traces", "1", "--json", str(file)]
    assert robot_kernels.main(["ant", "--worlds", "2", "3", *effort]) == 0
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == rows
    assert [(row["model"], row["worlds"]) for row in rows] == [("ant", 2), ("ant", 3)]
    for row in rows:
        times = list(row["kernels_us"].values())
        assert len(times) > 2
        assert times == sorted(times, reverse=True)
        assert row["us_per_step"] > 0


def test_a_robot_that_fails_is_a_row_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(engine: Simengine, steps: int) -> float:
        raise MemoryError("no room for the worlds")

    monkeypatch.setattr(Simengine, "step", fails)
    assert robot_kernels.main(["ant", "--worlds", "2", "--backend", "host"]) == 0
    (row,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert row == {"model": "ant", "worlds": 2, "error": "MemoryError: no room for the worlds"}
