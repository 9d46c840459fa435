"""The benchmark of the GPU model: predictions and rankings from recorded files, and a fit that finds known values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_model import fit, paper, workers
from benchmarks.gpu_model.data import REPEATS, Measurement, Workload, load, predicted, together, with_host
from benchmarks.gpu_model.report import plot, table, validation_table
from benchmarks.gpu_model.validation import kendall, order_reproduced, validate_workload
from benchmarks.gpu_model.whatif import faster_launches, larger, what_if
from benchmarks.launch_costs import _SOURCE
from benchmarks.record_lists import options_of
from simengine_scheduler import AwaitCounts
from simengine_scheduler.gpu_model import GPUS, GpuSpec, RecordedList
from simengine_scheduler.gpu_model.recording import write_json
from tests.scheduler.gpu_model.machines import US, Lists, shaped

EXECUTORS = ("serial", "streams", "streams:completion=polling", "graph", "graph-cached")
H200 = GPUS["h200"]


def steps(fixed: bool, us: float = 4.0) -> RecordedList:
    """Two chains that a last call joins; one call is awaited where the list is not fixed."""
    lists = Lists()
    for n in range(4):
        number = lists.add("", "x" if n % 2 else "y", us, shaped(64, 64))
    lists.add("xy", "z", 2 * us, shaped(200))
    if not fixed:
        lists.wait(number)
    return lists.build(fixed)


def workload(gpu: GpuSpec, us: float = 4.0, executors: Sequence[str] = EXECUTORS, repeats: int = REPEATS) -> Workload:
    """A workload whose measurements are what a machine does."""
    lists = {"counted": steps(False, us), "ahead": steps(True, us)}
    found = [Measurement(e, x, predicted(lists[e], x, gpu, repeats)) for e in lists for x in executors]
    return Workload("made x 1", lists, tuple(found))


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    measured: list[dict[str, Any]] = [
        {"executor": "streams:completion=polling", "emission": "counted", "us_per_step": 80.0},
        {"executor": "graph", "emission": "ahead", "error": "RuntimeError: none"},
        {"executor": "teleport", "emission": "ahead", "us_per_step": 1.0},
    ]
    lists = {"counted": steps(False).to_data(), "ahead": steps(True).to_data()}
    rows = [{"models": ["suite/ant"], "worlds": 64, "lists": lists, "measured": measured}]
    rows.append({"models": ["a", "b"], "worlds": 2, "lists": lists, "measured": []})
    about = dict.fromkeys(("hardware", "versions", "date", "command"), "")
    write_json(tmp_path / "lists.json.gz", {**about, "rows": rows, "costs": {"launch": 3e-6}})
    workloads, costs, _ = load(tmp_path / "lists.json.gz")
    assert [w.name for w in workloads] == ["suite ant x 64", "2 models x 2"]
    assert workloads[0].measured == (Measurement("counted", "streams:completion=polling", 80.0),)
    assert costs == {"launch": 3e-6}
    (emitter,) = workloads[0].lists["counted"].emitters()
    assert sum(isinstance(item, AwaitCounts) for item in emitter) == 1


def test_options_of_executors() -> None:
    assert options_of("graph-cached") == ("graph-cached", {})
    assert options_of("streams:completion=polling,window=8") == ("streams", {"completion": "polling", "window": 8})


def test_a_step_of_a_fixed_list_is_what_the_device_needs_for_it() -> None:
    """In the steady state the host is ahead of a cached graph; its first launch and the last wait are spread out."""
    gpu = GpuSpec("usual", multiprocessors=132)
    us = predicted(steps(True, 30.0), "graph-cached", gpu, 200)
    assert us == pytest.approx(120.0 + 1e6 * (2 * gpu.node + gpu.crossing), rel=0.01)


def test_the_order_counts_pairs_that_are_apart() -> None:
    assert order_reproduced([(1.0, 10.0), (2.0, 20.0), (2.02, 15.0), (4.0, 18.0)]) == (4, 5)
    assert (kendall(5, 5), kendall(0, 5), kendall(0, 0)) == (1.0, -1.0, 1.0)


def test_a_machine_that_made_the_measurements_is_validated_and_another_is_not(tmp_path: Path) -> None:
    found = validate_workload(workload(H200), H200, fitted=True)
    assert found["rms_log"] < 1e-3
    assert (found["tau"], found["fastest_measured"]) == (1.0, found["fastest_predicted"])
    slow = with_host(H200, launch=20e-6)
    other = validate_workload(workload(H200), slow, fitted=False)
    assert other["rms_log"] > 0.3
    plot([found, other], tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 5000
    lines = validation_table([found, other]).splitlines()
    assert len(lines) == 4
    assert lines[2].startswith("| made x 1 | yes | 0.0 | 1.0 |")


def test_a_fit_finds_the_costs_that_measurements_tell() -> None:
    truth = with_host(H200, emit=3e-6, keep=1.5e-6, track=4e-6)
    seen: list[str] = []
    short, long = (workload(truth, us, ("serial", "streams"), 2) for us in (2.0, 8.0))
    found = fit.fit(H200, [short], 2, seen.append)
    first = fit.with_free(H200, fit.FIRST)
    assert fit.rms(fit.residuals(found, [long], 2)) < 0.05 < fit.rms(fit.residuals(first, [short], 2))
    assert found.host.emit + found.host.keep == pytest.approx(4.5e-6, rel=0.2)
    assert len(seen) > 5


def test_costs_that_were_measured_take_their_places() -> None:
    costs = {"launch": 2e-6, "record": 1e-7, "wait": 2e-7, "query": 3e-7, "chain": 1e-6, "marked_chain": 1.5e-6}
    costs |= {"crossing": 3e-6, "turnaround": 8e-6, "graph_build": 4e-6, "graph_launch": 12e-6, "graph_chain": 7e-7}
    costs |= {"graph_wide": 2e-7, "graph_turnaround": 9e-6}
    gpu = fit.from_costs(H200, costs)
    assert (gpu.host.launch, gpu.host.launch_graph, gpu.chain, gpu.node) == (2e-6, 2e-6, 1e-6, 7e-7)
    assert (gpu.host.build_node, gpu.crossing) == (H200.host.build_node, H200.crossing)  # which are fitted
    assert gpu.mark == pytest.approx(0.25e-6)
    assert gpu.dispatch + gpu.visible == pytest.approx(5.85e-6)  # half a query passes before it is seen
    assert gpu.host.launch_node == pytest.approx(10e-6 / 200)
    assert fit.from_costs(H200, {}) == H200


def test_the_papers_ratios_agree_for_lists_of_parallelism_two() -> None:
    """ACS-SW 1.80, ACS-HW near 2.0 and graphs at 0.85 come out of one list; a chain gives none of them."""
    depths, real = (6, 6, 1), paper.synchronising(GPUS["rtx3060"], 5.0)
    assert paper.parallelism(depths) == 2.0
    found = paper.ratios(paper.braided(depths, 33.8), real, GPUS["rtx3070"])
    assert found.inside() == ["acs_sw", "acs_hw", "graph"]
    assert paper.ratios(paper.braided((6,), 33.8), real, GPUS["rtx3070"]).inside() == []


def test_the_papers_duration_is_found_or_said_to_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "STAGES", 1)
    real = paper.synchronising(GPUS["rtx3060"], 5.0)
    us = paper.sought((6, 6, 6), real)
    assert us is not None
    found = paper.ratios(paper.braided((6, 6, 6), us), real, GPUS["rtx3070"])
    assert found.acs_sw == pytest.approx(paper.SOUGHT, rel=0.03)
    assert paper.sought((6,), real) is None
    assert paper.slowed(steps(True), 10.0).calls[0].seconds == pytest.approx(10 * US)


def test_simulations_side_by_side_do_not_wait_for_each_other() -> None:
    both = together([workload(H200, 40.0, ()), workload(H200, 40.0, ())])
    recorded = both.lists["ahead"]
    assert (both.name, len(recorded.calls), recorded.fixed) == ("2 models side by side", 10, (True, True))
    alone, beside = (predicted(one, "graph-cached", H200, 20) for one in (steps(True, 40.0), recorded))
    assert beside < 1.2 * alone
    assert predicted(recorded, "serial", H200, 20) > 1.9 * alone


def test_the_preset_stands_against_what_was_measured() -> None:
    """Of a list that no constant was fitted to: times of a step, and the order of the executors."""
    workloads, _, _ = load(Path(__file__).parents[2] / "benchmarks" / "results" / "lists_h200.json.gz")
    found = validate_workload(next(w for w in workloads if w.name == "walker2d_v5 x 64"), H200, fitted=False)
    assert found["rms_log"] < 0.15
    assert found["tau"] > 0.8
    assert all("graph-cached" in found[f"fastest_{how}"] for how in ("measured", "predicted"))
    ratios = {(row["executor"], row["emission"]): row["ratio"] for row in found["rows"]}
    assert all(abs(ratios["serial", e] - 1) < 0.1 for e in ("counted", "ahead"))
    assert all(abs(ratios[x, "ahead"] - 1) < 0.1 for x in ("graph-cached", "pipeline"))


def test_workers_are_fitted_to_what_the_bench_measured_over_graphs(tmp_path: Path) -> None:
    truth = replace(H200, worker=1.6)
    made = [replace(workload(truth, us, ()), name=f"{name} x 64") for name, us in (("ant", 9.0), ("humanoid", 20.0))]
    rows = []
    for one in made:
        for executor in ("device", "graph-cached"):
            us = 1.3 * predicted(one.lists["ahead"], executor, truth)  # from states in which all takes longer
            name = one.name.removesuffix(" x 64")
            rows.append({"workload": f"{name}:emission=ahead", "executor": executor, "us_per_step": us})
    rows.append({"workload": "walker2d:emission=ahead", "executor": "device", "error": "none"})
    (tmp_path / "bench.json").write_text(json.dumps({"rows": rows}))
    times = workers.measured([tmp_path / "bench.json"])
    assert set(times) == {"ant", "humanoid"}
    found = workers.fit_worker(made, H200, times, ["ant x 64"])
    assert found.worker == pytest.approx(1.6, abs=0.02)
    ant, humanoid = workers.compared(made, found, times, ["ant x 64"])
    assert (ant["fitted"], humanoid["fitted"]) == ("yes", "")
    assert humanoid["predicted_over_graph"] == pytest.approx(humanoid["over_graph"], rel=0.02)
    assert humanoid["us"] == pytest.approx(1.3 * humanoid["predicted_us"], rel=0.02)
    assert workers.fit_worker(made, H200, times, []) == H200
    assert workers.compared(made[:1], found, {"mixed": (2.0, 1.0)}, []) == []


def test_questions_are_answered() -> None:
    rows = what_if(workload(H200), H200, ("streams", "acs-hw"))
    assert {row["what"] for row in rows} == {"window", "streams", "multiprocessors", "launch_us"}
    by_launch = [row["streams"] for row in rows if row["what"] == "launch_us"]
    assert by_launch == sorted(by_launch)
    assert by_launch[0] < by_launch[-1]
    assert table(rows).splitlines()[2].startswith("| made x 1 | window | 8 | ")
    assert larger(H200, 2.0).block_seconds(shaped(2000), 1.0) == H200.block_seconds(shaped(2000), 1.0)
    assert faster_launches(H200, 5.0).host.launch == pytest.approx(5e-6)
    assert replace(larger(H200, 1.0), reference=None) == H200


def test_the_kernels_that_costs_are_measured_with_compile() -> None:
    try:
        from cupy.cuda import nvrtc
    except ImportError:
        pytest.skip("no NVRTC; install the dev extra")
    program = nvrtc.createProgram(_SOURCE, "costs.cu", (), ())
    nvrtc.compileProgram(program, ["--gpu-architecture=sm_90"])
    assert b"pause" in nvrtc.getCUBIN(program)
    nvrtc.destroyProgram(program)
