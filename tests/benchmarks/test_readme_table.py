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
        {"model": "ant", "worlds": 1, "backend": "jax", "executor": "none", "steps_per_s": 10},
    ],
}


def test_rows_show_speed_peer_and_error() -> None:
    text = readme_table.render([RESULT])
    assert "2 cores of Some CPU; mujoco 4.0.0; 2026-01-02; `simengine bench stepping`" in text
    ours = "| ant | 64 | host, threads, float32 | 123,456 | 35.5 |"
    row = f"{ours} mujoco.rollout, 2 threads, float64 | 50,000 | 2.47 | 1e-04 |"
    assert row in text.splitlines()
    assert "| ant | 1 | jax, none | 10 |  |  |  |  |  |" in text.splitlines()


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(RESULT))
    (tmp_path / "b.json").write_text(json.dumps({"machine": {}}))
    (tmp_path / "c.json").write_text("[1]")
    (tmp_path / "d.json").write_text(json.dumps({**RESULT, "rows": [{"name": "other benchmark"}]}))
    assert readme_table.stepping_results(tmp_path) == [RESULT]


def test_no_results_say_so() -> None:
    assert readme_table.render([]) == readme_table.NONE_YET


def test_replace_block_keeps_the_rest() -> None:
    text = f"before\n{readme_table.BEGIN}\nold\n{readme_table.END}\nafter\n"
    assert readme_table.replace_block(text, "fresh") == text.replace("old", "fresh")


@pytest.mark.parametrize("text", ["nothing", readme_table.BEGIN, f"{readme_table.END}{readme_table.BEGIN}"])
def test_missing_markers_are_named(text: str) -> None:
    with pytest.raises(ValueError, match="put them back"):
        readme_table.replace_block(text, "x")


def test_check_sees_a_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.json").write_text(json.dumps(RESULT))
    (tmp_path / "README.md").write_text(f"{readme_table.BEGIN}\n{readme_table.END}\n")
    monkeypatch.setattr(readme_table, "README", tmp_path / "README.md")
    monkeypatch.setattr(readme_table, "RESULTS", tmp_path / "results")
    assert readme_table.main(["--check"]) == 1
    assert readme_table.main([]) == 0
    assert readme_table.main(["--check"]) == 0
    assert "123,456" in (tmp_path / "README.md").read_text()


def test_the_table_of_executors_is_the_committed_result() -> None:
    """Rounded microseconds of `scheduler_h200.json`; and its lists were all legal, with the bits of serial."""
    rows = json.loads((ROOT / "benchmarks/results/scheduler_h200.json").read_text(encoding="utf-8"))["rows"]
    assert all(row["legal"] and row["equal"] and not row["error"] for row in rows)
    measured = {(row["executor"], row["workload"]): row["us_per_step"] for row in rows}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = text.split("<!-- executors -->\n")[1].split("<!-- end of executors -->")[0].splitlines()
    heading, _, *table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    lists = [f"{name}:emission=ahead" if name != "wired network" else "wired" for name in heading[2:]]
    assert len(table) == len({row["executor"] for row in rows})
    for executor, _, *shown in table:
        wanted = [measured[executor.strip("`"), name] for name in lists]
        assert [int(cell) for cell in shown] == [pytest.approx(us, abs=0.51) for us in wanted], executor
