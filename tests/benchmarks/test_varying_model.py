"""What docs/simulated.md says of lists that vary agrees with the committed results, and the comparison can be made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_model.reasons import machines
from benchmarks.gpu_model.stages import stages
from benchmarks.gpu_model.varying import compared, gpu_of_list, modelled
from simengine.cli.simulations.workloads import make_workload
from simengine_scheduler.gpu_model import gpu_named
from simengine_scheduler.native.compiling import compiler
from simengine_scheduler.study.specs import Spec
from tests.benchmarks import varying_model

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "simulated.md").read_text(encoding="utf-8")
MEASURED = json.loads((ROOT / "benchmarks/results/varying_lists_window_h100.json").read_text(encoding="utf-8"))


def rows_of(name: str) -> list[varying_model.Row]:
    rows: list[varying_model.Row] = json.loads((ROOT / "benchmarks/results" / name).read_text(encoding="utf-8"))["rows"]
    return rows


@pytest.mark.parametrize(
    ("name", "table", "sentences"),
    [
        ("gpu_model_varying_h100.json", varying_model.ratios_table, varying_model.sentences),
        ("gpu_model_varying_h200.json", varying_model.later_table, varying_model.later_sentences),
        ("gpu_model_reasons_h100.json", varying_model.reasons_table, varying_model.reason_sentences),
        ("gpu_model_stages_h100.json", varying_model.stages_table, varying_model.stages_sentences),
    ],
)
def test_the_page_has_the_results(name: str, table: Any, sentences: Any) -> None:
    rows, text = rows_of(name), " ".join(PAGE.split())
    assert "\n".join(table(rows)) in PAGE
    for sentence in sentences(rows):
        assert sentence in text, f"docs/simulated.md does not say {sentence!r}"


def test_measured_times_are_those_that_were_measured() -> None:
    measured = {(row["workload"], row["executor"]): row["us_per_step"] for row in MEASURED["rows"]}
    for row in rows_of("gpu_model_varying_h100.json"):
        assert row["measured_us"] == pytest.approx(measured[row["workload"], row["executor"]], abs=0.06)


@pytest.mark.skipif(compiler() is None, reason="compiled code needs a compiler")
def test_durations_follow_from_the_bound_and_the_model_from_its_costs() -> None:
    bound = next(row["bound"] for row in MEASURED["rows"] if row["workload"] == "half_cheetah:emission=stages")
    workload = make_workload(Spec.parse("half_cheetah:emission=stages,worlds=8"), "host")
    machine = gpu_of_list(gpu_named("h100"), workload, bound)
    mean = machine.each * 1e6
    assert 0 < mean < bound["work_us"] / bound["calls"]
    assert machine.of_byte > 0, "the measured chain has calls that last longer than others"
    times = {what: modelled(workload, "serial", other, 4) for what, other in machines(machine).items()}
    assert times["device alone"] < times["as it is"]
    assert times["host alone"] < times["as it is"]
    assert times["two threads launch kernels"] <= times["as it is"]
    assert modelled(workload, "serial", machine, 4) == times["as it is"], "the model is not deterministic"
    workload.close()


@pytest.mark.skipif(compiler() is None, reason="compiled code needs a compiler")
def test_lists_are_compared_with_what_was_measured() -> None:
    wanted = ("serial", "streams:completion=polling")
    rows = [row for row in MEASURED["rows"] if row["executor"] in wanted]
    found = list(compared({"rows": rows}, ["grasp:emission=stages"], "h100", 2))
    assert [row["executor"] for row in found] == list(wanted)
    for row in found:
        assert 0.5 < row["ratio"] < 2


@pytest.mark.skipif(compiler() is None, reason="compiled code needs a compiler")
def test_workers_run_stages_ahead_of_counts() -> None:
    rows = [row for row in MEASURED["rows"] if row["workload"] == "half_cheetah:emission=stages"]
    (found,) = stages({"rows": rows}, [], "h100", 2)
    assert found["both, and a free window"] < found["bodies as long as kernels"] < found["device"] < found["serial"]
