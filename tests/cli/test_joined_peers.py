"""Runs of `bench peers` that are added to one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simengine.cli.bench.peers.joined import earlier_result, joined
from simengine.cli.options.errors import UsageError


def result(command: str, *cases: tuple[str, int], speed: int = 1, cores: int = 2) -> dict[str, Any]:
    named = [{"model": model, "worlds": worlds} for model, worlds in cases]
    return {
        **{"benchmark": "peers", "hardware": {"cores": cores}, "versions": {}, "backend": "host", "device": "cpu"},
        **{"command": command, "absent": {}, "changes": [], "models": named},
        "rows": [{**case, "steps_per_s": speed} for case in named],
    }


def test_a_case_that_is_measured_again_replaces_the_earlier_one(tmp_path: Path) -> None:
    path, now = tmp_path / "result.json", result("second", ("ant", 64), ("dog", 64), speed=2)
    assert joined(earlier_result(path, now), now) == now
    path.write_text(json.dumps(result("first", ("ant", 64), ("ant", 1024))))
    both = joined(earlier_result(path, now), now)
    assert [(row["model"], row["worlds"], row["steps_per_s"]) for row in both["rows"]] == [
        ("ant", 1024, 1),
        ("ant", 64, 2),
        ("dog", 64, 2),
    ]
    assert both["command"] == "first && second"
    assert len(both["models"]) == 3


def test_runs_of_another_machine_are_not_joined(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result("first", ("ant", 64), cores=8)))
    with pytest.raises(UsageError, match="has other hardware than this run"):
        earlier_result(path, result("second", ("ant", 64)))
