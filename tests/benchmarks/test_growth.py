"""Curves of the time of a step, memory of a world and start: what is measured, and what the page says of it."""

from __future__ import annotations

import json
from pathlib import Path

import mujoco
import pytest

from benchmarks import memory, one_world, scaling, scaling_gpus, start
from benchmarks.performance import growth
from benchmarks.performance.results import load
from benchmarks.scaling_models import crowded_arm, furnished_room, hanging_chain, standing_table


def stepped(source: str, steps: int = 20) -> tuple[mujoco.MjModel, mujoco.MjData]:
    mj = mujoco.MjModel.from_xml_string(source)
    data = mujoco.MjData(mj)
    mujoco.mj_step(mj, data, steps)
    return mj, data


@pytest.mark.parametrize("size", [1, 8, 24])
def test_models_have_the_size_that_they_are_asked_for(size: int) -> None:
    mj, data = stepped(hanging_chain(size))
    assert (mj.nv, data.ncon) == (size, 0)
    mj, data = stepped(standing_table(size))
    assert (mj.nv, mj.ngeom) == (6, size + 2)
    assert data.ncon == size or size < 3  # one or two spheres do not hold the slab upright
    mj, data = stepped(crowded_arm(8 * size))
    assert (mj.nv, mj.ngeom, data.ncon) == (8, 8 * size, 0)
    mj, _ = stepped(furnished_room(size))
    assert (mj.nv, mj.ngeom, mj.nu) == (7, 7 + size, 7)


def test_a_curve_bends_where_it_stays_steep() -> None:
    flat_then_steep = [(1, 10.0), (2, 11.0), (4, 12.0), (8, 24.0), (16, 48.0)]
    assert [None if slope is None else round(slope, 1) for slope in scaling.exponents(flat_then_steep)] == [
        None,
        0.1,
        0.1,
        1.0,
        1.0,
    ]
    assert scaling.bend(flat_then_steep) == 4
    assert scaling.bend([(1, 1.0), (2, 2.0), (4, 4.0)]) == 1
    assert scaling.bend([(1, 1.0), (2, 1.0)]) is None


def test_the_page_shows_times_exponents_and_bends() -> None:
    rows = [{"curve": "dofs", "value": size, "us_per_step": time} for size, time in ((4, 10.0), (8, 10.0), (16, 40.0))]
    line = growth.scaling_table({"rows": rows}).splitlines()[-1]
    assert line == "| dofs | 4: 10.0; 8: 10.0 (0.0); 16: 40.0 (2.0) | 8 |"


def test_the_page_shows_the_batch_that_does_not_fit() -> None:
    rows = [
        {"model": "ant", "worlds": 8192, "bytes_per_world": 8192, "gib": 0.06, "steps_per_s": 1_000_000},
        {"model": "ant", "worlds": 16384, "error": "too little memory"},
    ]
    lines = growth.memory_table({"rows": rows}).splitlines()
    assert lines[-2].startswith("| ant | 8,192 | 8.0 |")
    assert "does not fit" in lines[-1]


def test_the_page_shows_speeds_and_the_note_once_each_where_there_are_any() -> None:
    """A column without numbers, and a sentence that stands twice, tell nothing."""
    row = {"model": "ant", "worlds": 8192, "bytes_per_world": 8192, "gib": 0.06}
    assert "steps a second" not in growth.memory_table({"rows": [row]})
    assert "steps a second" in growth.memory_table({"rows": [{**row, "steps_per_s": 1_000_000}]})
    assert " ".join(growth.growth().split()).count(load(growth.START)["note"]) == 1


def test_memory_is_measured_until_a_batch_is_refused(tmp_path: Path) -> None:
    found = tmp_path / "memory.json"
    arguments = ["--models", "inverted_pendulum", "--backend", "host", "--first", "64", "--most", "200"]
    assert memory.main([*arguments, "--json", str(found)]) == 0
    rows = json.loads(found.read_text())["rows"]
    assert [row["worlds"] for row in rows] == [64, 128]
    assert all(0 < row["bytes_per_world"] < 4096 for row in rows)
    (refused,) = memory.grow(memory.Model(mujoco.MjModel.from_xml_string(hanging_chain(2))), "host", 1, [10**12])
    assert "error" in refused


def test_a_cold_start_compiles_and_a_warm_one_does_not(tmp_path: Path) -> None:
    found = tmp_path / "start.json"
    arguments = ["--models", "inverted_pendulum", "--random", "--backend", "host", "--worlds", "1"]
    assert start.main([*arguments, "--json", str(found)]) == 0
    cold, warm = json.loads(found.read_text())["rows"]
    assert (cold["start"], warm["start"]) == ("cold", "warm")
    assert warm["step_s"] < cold["step_s"]


def test_a_curve_is_measured_and_drawn(tmp_path: Path) -> None:
    found, picture = tmp_path / "scaling.json", tmp_path / "scaling.svg"
    curve = scaling.Curve("dofs", "dofs", hanging_chain, (2, 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scaling, "CURVES", (curve,))
        given = ["--backend", "host", "--worlds", "4", "--seconds", "0.001", "--repeats", "1"]
        assert scaling.main([*given, "--json", str(found), "--plot", str(picture)]) == 0
    rows = json.loads(found.read_text())["rows"]
    assert [(row["value"], row["worlds"]) for row in rows] == [(2, 4), (4, 4)]
    assert "<svg" in picture.read_text()


@pytest.mark.slow
def test_gpus_are_timed_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the host backend, whose processes need no GPU."""
    found = tmp_path / "gpus.json"
    given = ["--models", "inverted_pendulum", "--gpus", "1", "2", "--worlds", "4", "--shared", "8", "--backend", "host"]
    assert scaling_gpus.main([*given, "--steps", "10", "--repeats", "2", "--json", str(found)]) == 0
    rows = json.loads(found.read_text())["rows"]
    assert [(row["value"], row["worlds"]) for row in rows] == [(1, 4), (2, 8), (1, 8), (2, 8)]
    lines = growth.gpus_table({"rows": rows}).splitlines()
    assert lines[2].startswith("| GPUs with 4 worlds of inverted_pendulum each | 1 |")
    assert lines[2].endswith("| 1.00x |")
    with pytest.raises(RuntimeError, match="ended with code"):
        scaling_gpus.measure("no such model", 4, 1, "host", 1, 1)


def test_a_step_of_one_world_is_timed_beside_that_of_mujoco(tmp_path: Path) -> None:
    found = tmp_path / "one_world.json"
    assert one_world.main(["inverted_pendulum", "--steps", "20", "--repeats", "2", "--json", str(found)]) == 0
    (row,) = json.loads(found.read_text())["rows"]
    assert row["ratio"] == round(row["us_per_step"] / row["mj_step_us"], 2)
    head, _, line = growth.one_world_table({"rows": [row]}).splitlines()
    assert head.startswith("| model | simengine | mj_step |")
    assert line.startswith("| inverted_pendulum | ")
    assert f"({min(row['all_mj_step_us']):.1f} to {max(row['all_mj_step_us']):.1f})" in line
