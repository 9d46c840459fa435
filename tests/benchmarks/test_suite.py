"""Results of the suite of trainings: what is collected from its folder, and the table that the guide shows."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import suite
from simengine_configs import load_suite

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A suite with one training, which reaches the threshold in its second evaluation, and not mjlab's return."""
    run = tmp_path / "walker2d"
    run.mkdir()
    (run / "summary.json").write_text(json.dumps({"arguments": {"seed": 0}, "env_steps": 300}))
    (run / "curve.csv").write_text("update,env_steps,return_mean\n1,100,nan\n2,200,5.5\n3,300,7.25\n")
    (run / "evaluations.csv").write_text("update,env_steps,return_mean\n1,100,10.0\n2,200,5200.0\n3,300,4000.0\n")
    (run / "times.csv").write_text("update,evaluation,seconds\n1,0,1.0\n1,1,1.5\n2,0,2.0\n2,1,2.5\n3,0,3.0\n3,1,3.5\n")
    (tmp_path / "evaluations").mkdir()
    found = {"return_mean": 5100.0, "return_std": 3.0, "episodes": 100}
    evaluation = {"hardware": {}, "versions": {}, "date": "2026-01-01", "simengine": found, "mujoco": found}
    (tmp_path / "evaluations" / "walker2d.json").write_text(json.dumps(evaluation))
    return tmp_path


def test_times_and_steps_are_those_of_the_evaluation_that_reached_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, drawn = tmp_path / "out.json", tmp_path / "out.png"
    monkeypatch.setattr(sys, "argv", ["suite", str(folder), "--json", str(out), "--picture", str(drawn)])
    assert suite.main() == 0
    result = json.loads(out.read_text())
    (row,) = result["rows"]
    assert row["to_threshold"] == {"seconds": 2.5, "env_steps": 200}
    assert row["to_mjlabs_return"] is None
    assert (row["seconds"], row["return_in_mujoco"]) == (3.5, 5100.0)
    assert row["curve"] == [[200, 2.0, 5.5], [300, 3.0, 7.25]]
    assert drawn.read_bytes().startswith(b"\x89PNG")
    assert (
        "| walker2d | 5,100.0 ± 3.0 | 5,100.0 | 4 | 5,000 in 2 | 7,046 | 7.8 | 127.9 | not reached |  |"
        in suite.markdown(result)
    )
    row["to_mjlabs_return"] = {"seconds": 2.5, "env_steps": 20480}
    assert suite.markdown(result).endswith("| 2 | 0.02 |")


def test_a_return_below_its_threshold_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "evaluations" / "walker2d.json"
    path.write_text(path.read_text().replace("5100.0", "4900.0"))
    monkeypatch.setattr(sys, "argv", ["suite", str(folder)])
    assert suite.main() == 1


def test_mjlab_has_a_row_for_every_task() -> None:
    assert set(suite.MJLAB) == set(load_suite())


@pytest.mark.parametrize("name", ["suite_h200", "suite_cpu_xeon_2_cores"])
def test_the_guide_shows_the_committed_result(name: str) -> None:
    table = suite.markdown(json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")))
    assert table in (ROOT / "docs" / "guide" / "training.md").read_text(encoding="utf-8")


def test_the_readme_says_what_the_result_says() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    cpu, cold = (
        json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"]
        for name in ("suite_cpu_xeon_2_cores", "training_cold_h200")
    )
    (cheetah,) = (row for row in cpu if row["task"] == "half_cheetah")
    assert f"# {cheetah['seconds']:.0f} s on two CPU cores" in text
    assert f"{cheetah['return_in_mujoco']:,.0f} in MuJoCo" in text
    for row in cold:
        last = row["reached"][-1]
        assert last["mujoco"]["return_mean"] >= last["target"]
        assert f"{last['target']:,.0f} in {last['seconds']:.0f} s" in text
