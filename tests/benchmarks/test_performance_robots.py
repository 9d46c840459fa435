"""What the performance page says of robots beside a peer, also where rows are missing."""

from __future__ import annotations

from typing import Any

from benchmarks.performance.markdown import NONE
from benchmarks.performance.results import ROOT, load
from benchmarks.performance.robots import BATCH, OURS, WARP, Beside, alone

PEER = WARP.engine


def row(model: str, worlds: int, engine: str, speed: float, error: float = 1e-6, agrees: bool = True) -> dict[str, Any]:
    case = {"model": model, "worlds": worlds, "engine": engine}
    return case | {"steps_per_s": speed, "qacc_error_median": error, "agrees": agrees}


RESULT: dict[str, Any] = {
    "absent": {PEER: "no package"},
    "rows": [
        row("arm", 512, OURS, 4000.0, 2e-6),
        row("arm", 512, PEER, 1000.0, 3e-4, agrees=False),
        row("arm", 8192, OURS, 40_000.0, 1e-6),
        row("arm", 8192, PEER, 10_000.0),
        row("dog", 512, OURS, 1500.0, agrees=False),
        row("dog", 512, PEER, 2000.0, agrees=False),
        row("dog", 8192, OURS, 250_000.0),
        row("dog", 8192, PEER, 100_000.0),
        row("pot", 512, OURS, 7000.0),
        {"model": "pot", "worlds": 512, "engine": PEER, "error": "OverflowedError: 99 contacts"},
        row("pot", 8192, OURS, 70_000.0),
    ],
}
TIMES = {"solve_cg_islands": 100.0, "plane_box": 40.0, "forces": 30.0, "only_collision_touch": 20.0, "inertia": 10.0}
KERNELS: dict[str, Any] = {
    "rows": [
        {"model": "dog", "worlds": 512, "kernels_us": TIMES},
        {"model": "dog", "worlds": 8192, "error": "it failed"},
    ]
}


def test_one_table_has_every_number_of_worlds_and_begins_with_the_least_ratio() -> None:
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in Beside(RESULT, WARP).table().splitlines()
    ]
    assert lines[0] == ["model", "512 worlds", "8,192 worlds", "error", "error of MuJoCo Warp"]
    assert [line[0] for line in lines[2:]] == ["dog", "arm", "pot"]
    assert lines[3] == ["arm", "4.00x (4.00 k, 1.00 k)", "4.00x (40.0 k, 10.0 k)", "2e-06", "3e-04"]
    assert lines[4] == ["pot", f"{NONE} (7.00 k, {NONE})", f"{NONE} (70.0 k, {NONE})", "1e-06", NONE]


def test_sentences_count_cases_that_have_a_ratio() -> None:
    beside = Beside(RESULT, WARP)
    assert beside.held() == "1 of 2 models"
    assert beside.lost() == "dog at 512 worlds"
    assert (beside.outside(OURS), beside.outside(PEER)) == ("1 of 6 cases", "2 of 4 cases")


def test_a_case_without_a_result_says_why() -> None:
    assert Beside(RESULT, WARP).without_result().splitlines() == [
        "These cases have no result:",
        "",
        '- MuJoCo Warp, pot, 512 worlds: "OverflowedError: 99 contacts"',
        '- MuJoCo Warp, pot, 8,192 worlds: "no package"',
    ]
    whole = {"rows": RESULT["rows"][:4]}
    assert Beside(whole, WARP).without_result() == ""
    assert "8,192 worlds: the command ended before" in Beside({"rows": RESULT["rows"][:3]}, WARP).without_result()


def test_cases_that_are_not_fast_enough_name_their_kernels() -> None:
    assert Beside(RESULT, WARP).missed(KERNELS).splitlines() == [
        "- dog, 512 worlds, 0.75x: solvers 50 %, contacts 30 %, dynamics 20 %; `solve_cg_islands` 50 %",
        "- dog, 8,192 worlds, 2.50x",
    ]
    assert Beside({"rows": RESULT["rows"][:4]}, WARP).missed(KERNELS) == "- none"


def test_speeds_without_a_peer_are_of_all_worlds_together() -> None:
    rows = [{"model": "arm", "worlds": worlds, "us_per_step": 500.0} for worlds in (512, 8192)]
    found = alone({"rows": [*rows, {"model": "leg", "worlds": 512, "us_per_step": 1000.0}]})
    assert [line.strip("| ").split(" | ") for line in found.splitlines()[2:]] == [
        ["arm", "1.02 M", "16.4 M"],
        ["leg", "512 k", NONE],
    ]


def test_the_readme_has_the_least_and_the_largest_ratio() -> None:
    speeds: dict[tuple[str, int], dict[str, float]] = {}
    for case in load("peers/robots_mujoco_warp_h200")["rows"]:
        if "steps_per_s" in case:
            speeds.setdefault((case["model"], case["worlds"]), {})[case["engine"]] = case["steps_per_s"]
    ratios = [both[OURS] / both[PEER] for both in speeds.values() if len(both) == 2]
    models = len({model for model, _ in speeds})
    said = f"{models} robots step {min(ratios):.1f} to {max(ratios):.0f} times as fast as in MuJoCo Warp on an H200"
    assert said in (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_peer_without_a_table_has_a_sentence_if_it_was_measured() -> None:
    assert Beside(RESULT, BATCH).also() == ""
    rows = [*RESULT["rows"], *(row("arm", worlds, BATCH.engine, 2000.0) for worlds in (512, 8192))]
    said = Beside({"rows": rows}, BATCH).also()
    assert "at least 1.5 times as fast for 1 of 1 models" in said
    assert said.endswith("by the median of all cases 11.0x.")
