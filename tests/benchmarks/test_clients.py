"""The benchmark of clients runs, and results have the same bits in every mode that it measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import clients


@pytest.mark.slow
def test_a_small_measurement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "out.json"
    arguments = ["--clients", "2", "--lists", "3", "--calls", "8", "--work", "50", "--repeats", "1"]
    assert clients.main([*arguments, "--json", str(file)]) == 0
    (row,) = json.loads(file.read_text())["rows"]
    assert row["equal"]
    assert row["calls"] == 2 * 3 * 8
    assert min(row["alone_s"], row["at_once_s"], row["owner_s"], row["round_trip_us"]) > 0
    assert "us/call" in capsys.readouterr().out
