"""Cells of the benchmark of piles: each has a result or says why not, and is written as soon as it is measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import piles


def run(monkeypatch: pytest.MonkeyPatch, file: Path, *more: str) -> None:
    """The program with these arguments."""
    common = ("--kinds", "sphere", "--settle", "60", "--seconds", "0.01", "--limit", "5", "--json", str(file))
    monkeypatch.setattr("sys.argv", ["piles", *common, *more])
    piles.main()


@pytest.mark.slow
def test_cells_are_measured_one_after_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "out" / "piles.json"
    run(monkeypatch, file, "--cells", "12x2", "12x1", "--settle-by", "engine", "--mujoco-up-to", "11")
    found = json.loads(file.read_text())
    assert {"hardware", "versions", "date", "command"} < set(found)
    assert [(row["bodies"], row["worlds"]) for row in found["rows"]] == [(12, 2), (12, 1)]
    for row in found["rows"]:
        assert row["settled_steps"] == 60
        assert row["contacts"] > 0
        assert row["step"] > 0
        assert sum(row["phases"].values()) > 0
        assert row["mujoco"] == {}


def test_a_cell_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(bodies: int, *_: object) -> dict[str, object]:
        if bodies == 2:
            raise piles.simengine.BackendError("no room")
        return {"kind": "sphere", "bodies": bodies, "worlds": 1, "error": "measured"}

    monkeypatch.setattr(piles, "measure", fail)
    run(monkeypatch, tmp_path / "piles.json", "--cells", "2x1", "3x1")
    rows = json.loads((tmp_path / "piles.json").read_text())["rows"]
    assert [row["error"] for row in rows] == ["no room", "measured"]


def test_settling_by_the_engine_ends_in_time() -> None:
    pile = piles.settled_by_engine(4, "sphere", 10**6, 0.05, "host", "float64")
    assert 1 < pile.steps < 10**6
    assert pile.state["qpos"].shape == (28,)


@pytest.mark.parametrize("text", ["12", "0x4", "3x-1", "axb"])
def test_a_cell_is_two_positive_numbers(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        piles.cell(text)


@pytest.mark.parametrize(
    ("kernel", "phase"),
    [
        *(("poses_general", "position"), ("position_general", "position"), ("only_kinematics", "position")),
        *(("find_pairs", "broadphase"), ("scan", "broadphase"), ("only_collision_general", "broadphase")),
        *(("collide", "narrowphase"), ("copy_contacts", "narrowphase"), ("box_box", "narrowphase")),
        *(("inertia", "smooth"), ("forces_fluid", "smooth"), ("smooth", "smooth"), ("only_crb_blocks", "smooth")),
        *(("only_constraint_blocks", "rows"), ("only_scan_islands", "islands"), ("only_gather", "islands")),
        *(
            ("solve_large_islands_huge", "solver"),
            ("finish_euler_bounded", "solver"),
            ("only_euler_general", "integration"),
        ),
    ],
)
def test_kernels_belong_to_the_phase_of_their_stages(kernel: str, phase: str) -> None:
    assert piles.phase_of(kernel) == phase
