"""The README's results block is made from result files, and only from those."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import readme_table

ROOT = Path(__file__).resolve().parents[2]
RESULT = {
    "hardware": {"cpu": "Some CPU", "cores": 2},
    "versions": {"mujoco": "4.0.0", "numpy": "2.0"},
    "date": "2026-01-02",
    "command": "simengine bench stepping",
    "rows": [
        {
            "model": "ant",
            "worlds": 64,
            "backend": "host",
            "executor": "threads",
            "dtype": "float32",
            "steps_per_s": 123456,
            "kernels_per_step": 35.5,
            "peer": "mujoco.rollout, 2 threads, float64",
            "peer_steps_per_s": 50000,
            "ratio": 2.469,
            "qacc_error": 1.2e-4,
        },
        {
            "model": "ant",
            "worlds": 512,
            "backend": "host",
            "executor": "threads",
            "dtype": "float32",
            "steps_per_s": 9_994_000,
            "qacc_error": 2e-3,
        },
        {"model": "ant", "worlds": 1, "backend": "jax", "executor": "none", "steps_per_s": 10},
        {"model": "ant", "worlds": 64, "backend": "jax", "executor": "none", "error": "NonFiniteError: world 3"},
    ],
}


def test_tables_show_speed_ratio_and_worst_error() -> None:
    text = readme_table.render([RESULT])
    assert "2 cores of Some CPU; mujoco 4.0.0; 2026-01-02; `simengine bench stepping`" in text
    lines = text.splitlines()
    assert "| model | backend, executor | 1 worlds | 64 worlds | 512 worlds | (ratio to) | error |" in lines
    peer = "mujoco.rollout, 2 threads, float64"
    assert f"| ant | host, threads, float32 |  | 123 k (2.47) | 9.99 M | {peer} | 2e-03 |" in lines
    assert "| ant | jax, none | 10 | NonFiniteError |  |  |  |" in lines


@pytest.mark.parametrize(
    ("speed", "shown"), [(999, "999"), (1234, "1.23 k"), (99_940, "99.9 k"), (100_500, "100 k"), (12_340_000, "12.3 M")]
)
def test_speeds_have_three_digits(speed: float, shown: str) -> None:
    assert readme_table._speed({"steps_per_s": speed}) == shown


def test_executors_in_microseconds() -> None:
    rows = [
        {"workload": "ant:emission=ahead", "executor": "serial", "us_per_step": 361.4},
        {"workload": "ant:emission=whole", "executor": "graph-cached", "us_per_step": 142.0},
        {"workload": "wired", "executor": "serial", "us_per_step": 1019.2},
        {"workload": "grasp:emission=ahead", "executor": "serial", "us_per_step": None},
    ]
    lines = readme_table.executors([{"rows": rows[:2]}, {"rows": rows[2:]}]).splitlines()
    assert "| `serial` | one stream | 361 |  |  |  |  |  | 1019 |" in lines
    assert lines[-1].startswith(f"| {readme_table.WHOLE} | a kernel for each model | 142 |")


def test_a_model_without_whole_steps_shows_none() -> None:
    row = {"executor": "graph-cached", "us_per_step": 120.0}
    rows = [
        row | {"workload": f"{name}:emission={emission}", "kernels_per_step": kernels}
        for name, of_list, whole in (("ant", 32, 2), ("grasp", 13, 13))
        for emission, kernels in (("ahead", of_list), ("whole", whole))
    ]
    last = readme_table.executors([{"rows": rows}]).splitlines()[-1]
    assert last == f"| {readme_table.WHOLE} | a kernel for each model | 120 |  |  |  |  |  |  |"


def test_models_in_one_batch_by_executor() -> None:
    row = {"worlds_each": 64, "executor": "graph-cached", "emission": "whole", "us_per_step": 240.4}
    row |= {"kernels_per_step": 12, "one_after_another_us": 700.0, "peer_us": 8000.0}
    rows = [
        row,
        row | {"emission": "ahead", "us_per_step": 400.0, "kernels_per_step": 149, "one_after_another_us": 1300.0},
        row | {"executor": "serial", "emission": "counted", "us_per_step": 2500.0},
        {"worlds_each": 64, "executor": "device", "error": "CallError: stuck"},
        row | {"worlds_each": 8, "executor": "streams", "emission": "counted", "us_per_step": 1000.0},
    ]
    many = row | {"worlds_each": 1024, "kernels_per_step": 149}  # no model has whole steps
    rows += [many, many | {"emission": "ahead", "us_per_step": 250.0}]
    lines = readme_table.mixed({"rows": rows}).splitlines()
    assert lines[2] == "| 8 |  | 1000 |  |  |  |  |  | 700 | 8000 | 8.0 |"
    assert lines[3] == "| 64 | 2500 |  |  |  |  | 400 | 240 | 700 | 8000 | 33.3 |"
    assert lines[4] == "| 1024 |  |  |  |  |  | 250 |  | 700 | 8000 | 32.0 |"


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(RESULT))
    (tmp_path / "b.json").write_text(json.dumps({"machine": {}}))
    (tmp_path / "c.json").write_text("[1]")
    (tmp_path / "d.json").write_text(json.dumps({**RESULT, "rows": [{"name": "other benchmark"}]}))
    assert readme_table.stepping_results(tmp_path) == [RESULT]


def test_no_results_say_so() -> None:
    assert readme_table.render([]) == readme_table.NONE_YET


def test_replace_block_keeps_the_rest() -> None:
    text = "before\n<!-- x -->\nold\n<!-- end of x -->\nafter\n"
    assert readme_table.replace_block(text, "x", "fresh") == text.replace("old", "fresh")


@pytest.mark.parametrize("text", ["nothing", "<!-- x -->", "<!-- end of x --><!-- x -->"])
def test_missing_markers_are_named(text: str) -> None:
    with pytest.raises(ValueError, match="put them back"):
        readme_table.replace_block(text, "x", "y")


def test_check_sees_a_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.json").write_text(json.dumps(RESULT))
    for name in ("scheduler_h200", "scheduler_large_h200"):
        (tmp_path / "results" / f"{name}.json").write_text(json.dumps({"benchmark": "scheduler", "rows": []}))
    (tmp_path / "results" / "mixed_h200.json").write_text(json.dumps({"benchmark": "mixed", "rows": []}))
    markers = [f"<!-- {name} -->\n<!-- end of {name} -->\n" for name in ("results", "mixed", "executors")]
    (tmp_path / "README.md").write_text("".join(markers))
    monkeypatch.setattr(readme_table, "README", tmp_path / "README.md")
    monkeypatch.setattr(readme_table, "RESULTS", tmp_path / "results")
    assert readme_table.main(["--check"]) == 1
    assert readme_table.main([]) == 0
    assert readme_table.main(["--check"]) == 0
    assert "123 k" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("name", ["scheduler_h200", "scheduler_large_h200"])
def test_committed_lists_were_legal_with_the_bits_of_serial(name: str) -> None:
    rows = json.loads((ROOT / f"benchmarks/results/{name}.json").read_text(encoding="utf-8"))["rows"]
    assert rows
    assert all(row["legal"] and row["equal"] and not row["error"] for row in rows)
