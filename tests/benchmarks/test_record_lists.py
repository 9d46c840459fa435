"""Simulations recorded as data: both emissions, an executor that cannot run, and predictions of the GPU model."""

from __future__ import annotations

from pathlib import Path

from benchmarks.gpu_model.data import load, predicted
from benchmarks.record_lists import main
from simengine_scheduler.gpu_model import GPUS
from simengine_scheduler.gpu_model.recording import read_json


def test_lists_and_times_are_written(tmp_path: Path) -> None:
    path = tmp_path / "lists.json.gz"
    command = ["--backend", "host", "--workloads", "half_cheetah+half_cheetah@2"]
    command += ["--steps", "2", "--rounds", "1", "--repeats", "2", "--executors", "serial", "device", "teleport"]
    assert main([*command, "--json", str(path)]) == 0
    (row,) = read_json(path)["rows"]
    assert [(m["executor"], m["emission"]) for m in row["measured"]] == [
        ("serial", "counted"),
        ("serial", "ahead"),
        ("device", "counted"),
        ("device", "ahead"),
    ]
    assert "cannot run on backend 'host'" in row["measured"][2]["error"]
    ((workload,), costs, about) = load(path)
    assert (workload.name, len(workload.measured), costs) == ("2 models x 2", 2, {})
    assert about["date"]
    counted, ahead = workload.lists["counted"], workload.lists["ahead"]
    assert (counted.fixed, ahead.fixed) == ((False, False), (True, True))
    assert all(sum(n < 0 for n in items) == 1 for items in counted.items)  # each shard awaits its counts once
    for recorded in (counted, ahead):
        touched = (segment for call in recorded.calls for segment in (*call.writes, *call.updates))
        assert {"totals", "qpos", "qvel"} <= {recorded.segments.buffer(segment) for segment in touched}
    assert all(call.seconds > 0 for call in counted.calls)
    assert predicted(ahead, "serial", GPUS["h200"], 2) > 1e6 * ahead.seconds()
