"""The performance page and its chart show exactly what the committed results say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.performance import __main__ as performance
from benchmarks.performance import chart, heaps, lists, mixed, results
from benchmarks.performance.markdown import NONE, ratio, speed, table, three_digits
from benchmarks.performance.page import PAGE, fill, page
from benchmarks.performance.results import RESULTS, origin, scheduler_rows


def lines_of(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]


def test_the_page_in_the_docs_is_current() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "run: python -m benchmarks.performance"


def test_the_chart_in_the_docs_shows_the_committed_figures() -> None:
    assert performance.stale() == []


def test_check_sees_what_is_out_of_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performance, "PAGE", tmp_path / "performance.md")
    monkeypatch.setattr(chart, "CHART", tmp_path / "speed.svg")
    assert performance.main(["--check"]) == 1
    assert performance.main([]) == 0
    assert performance.main(["--check"]) == 0
    monkeypatch.setattr(chart, "points", lambda: [chart.Point("panel", "row", 1, 2.0)])
    assert performance.stale() == ["performance.md", "speed.svg"]  # the page counts the cases


def test_the_chart_is_the_same_text_each_time_and_holds_every_case() -> None:
    points = chart.points()
    assert chart.svg(points) == chart.svg(points)
    panels = {point.panel: sum(of.panel == point.panel and of.ratio is not None for of in points) for point in points}
    assert [len(axes.collections) for axes in chart.figure(points).axes] == list(panels.values())
    lost = [point for point in points if point.ratio is not None and point.ratio < 1]
    assert any("heap" in point.row for point in lost)
    shown = {(point.panel, point.row.rpartition(" (")[0]) for point in points}
    assert {(panel, what) for panel, what, *_ in chart.SETS} <= shown


def test_the_page_holds_every_file_that_it_names_and_every_lost_case() -> None:
    text = PAGE.read_text(encoding="utf-8")
    peers = "peers/gymnasium_mujoco_warp_h200", "peers/mujoco_rollout_2_cores", "peers/kinds_mujoco_warp_h200"
    for name in (*peers, "mixed_h200", "scheduler_h200", "piles_256_h200", "prisms_h200"):
        assert f"`benchmarks/results/{name}.json`" in text
        assert json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["date"] in text
    lost = sum(point.ratio < 1 for point in chart.points() if point.ratio is not None)
    assert f"in {lost} of them, left of the line, the peer is faster" in text


def test_commands_that_differ_only_in_models_are_one_with_all_of_these(monkeypatch: pytest.MonkeyPatch) -> None:
    peers = "simengine bench peers"
    commands = [f"{peers} --set gymnasium --worlds 64", f"{peers} a b --worlds 64 --json f", f"{peers} c --worlds 8"]
    commands += [f"{peers} c b --worlds 64 --json f --append", "make figures"]
    hardware = {"cpu": "some"}
    file = {"hardware": hardware, "date": "2026-01-01", "command": " && ".join(commands), "rows": []}
    monkeypatch.setattr(results, "load", lambda name: file)
    shown = results.origin("f").splitlines()[3:-1]
    assert shown == [commands[0], f"{peers} a b c --worlds 64 --json f", commands[2], "make figures"]


def test_models_in_one_batch_name_the_list_of_each_row() -> None:
    row: dict[str, Any] = {"worlds_each": 64, "one_after_another_us": 700.0, "peer_us": 8000.0, "over_peer": 33.3}
    rows = [
        row | {"executor": "graph-cached", "emission": "whole", "us_per_step": 240.4, "kernels_per_step": 12},
        row | {"executor": "streams", "emission": "ahead", "us_per_step": 800.0, "kernels_per_step": 149},
        row | {"executor": "pipeline", "emission": "ahead", "us_per_step": 700.0, "kernels_per_step": 298},
        row | {"executor": "serial", "emission": "counted", "us_per_step": 2500.0, "kernels_per_step": 147},
    ]
    again = [row | {"executor": "streams", "emission": "ahead", "us_per_step": 750.0}]
    assert lines_of(mixed.six_table({"rows": rows}, {"rows": again}))[2:] == [
        ["`graph-cached`", "whole steps", "12", "240"],
        ["`pipeline`", "fixed, two shards of each model", "298", "700"],
        ["`streams`", "fixed", "149", "750 to 800"],
        ["`serial`", "waits for counts", "147", "2,500"],
        ["simengine, the models one after another", NONE, NONE, "700"],
        ["MuJoCo Warp, the models one after another", NONE, NONE, "8,000"],
        ["MuJoCo Warp's time over the first row", NONE, NONE, "33.3x"],
    ]


def test_lists_show_spreads_and_mark_the_fastest() -> None:
    rows = [
        {"workload": "ant", "executor": "serial", "us_per_step": 361.4, "spread": 0.02},
        {"workload": "ant", "executor": "streams", "us_per_step": 300.0, "spread": 0.114},
        {"workload": "wired", "executor": "serial", "us_per_step": 1019.2, "spread": 0.0},
    ]
    found = lines_of(lists.executors_table(rows, {"ant": "ant", "network": "wired"}))
    assert found[2:] == [["`serial`", "361 (2 %)", "**1,019** (0 %)"], ["`streams`", "**300** (11 %)", NONE]]


def test_splitting_is_compared_with_unsplit_serial() -> None:
    found = {line[0]: line for line in lines_of(lists.shards_table(scheduler_rows()))}
    assert found["ant"][-1] == "0.77"
    slower = [float(found[name][-1]) < 1 for name in lists.FIVE]
    assert lists.lost_by_shards(scheduler_rows()) == f"{sum(slower)} of 5 models"


def test_heaps_beside_both_peers() -> None:
    row = {"bodies": 10, "worlds": 1, "step": 2e-3, "contacts": 23, "executor": "streams", "mujoco": {"step": 1e-3}}
    peer = {"worlds": 1, "contacts_per_world": 22.0}
    warps = [
        {**peer, "model": "pile:mixed:10", "us_per_step": 500.0},
        {**peer, "model": "pile:mixed:100", "error": "no room"},
    ]
    results = [{"rows": [row]}, {"rows": [row | {"step": 3e-3}, row | {"bodies": 100, "mujoco": {}}]}]
    found = lines_of(heaps.heaps_table(results, {"rows": warps}))
    assert found[2] == ["10", "1", "`streams`", "2.00 to 3.00", "0.50", "1.00", "23 / 22"]
    assert found[3] == ["100", "1", "`streams`", "2.00", "no memory", NONE, f"23 / {NONE}"]
    assert heaps.ratios(results, {"rows": warps}) == {
        ("MuJoCo Warp", (10, 1)): pytest.approx(0.25),
        ("MuJoCo C", (10, 1)): pytest.approx(0.5),
        ("MuJoCo Warp", (100, 1)): None,
    }
    assert heaps.failure({"rows": warps}) == "no room"
    assert heaps.lost(results, {"rows": warps}) == "10 bodies in 1 world"


@pytest.mark.parametrize(
    ("number", "shown"),
    [(999, "999"), (1234, "1.23 k"), (99_940, "99.9 k"), (100_500, "100 k"), (12_340_000, "12.3 M")],
)
def test_speeds_have_three_digits(number: float, shown: str) -> None:
    assert speed(number) == shown


def test_small_and_large_figures() -> None:
    assert [three_digits(number) for number in (0.368, 9.996, 99.96, 15391.4)] == ["0.37", "10.0", "100", "15,391"]
    assert [ratio(number) for number in (0.0776, 1.5, 1068.9)] == ["0.08x", "1.50x", "1,069x"]


def test_a_table_refuses_a_row_of_another_length() -> None:
    with pytest.raises(ValueError, match="3 cells stands in a table of 2 columns"):
        table(["a", "b"], [["1", "2", "3"]])


@pytest.mark.parametrize("values", [{}, {"a": "1", "b": "2"}])
def test_a_template_needs_one_value_for_each_name(values: dict[str, str]) -> None:
    assert fill("x {{a}} y", {"a": "1"}) == "x 1 y"
    with pytest.raises(ValueError, match="give each name one value"):
        fill("x {{a}} y", values)


def test_an_origin_names_file_machine_versions_date_and_command() -> None:
    text = origin("hazard_check_h200_host")
    assert text.splitlines()[0] == (
        "`benchmarks/results/hazard_check_h200_host.json`: Intel(R) Xeon(R) Processor, the host of an NVIDIA H200; "
        "python 3.12.3; 2026-11-20."
    )
    assert "python3 benchmarks/hazard_check.py --json" in text
    assert "presets that were chosen on it" in " ".join(origin("suite_h200").partition("```\n\n")[2].split())
