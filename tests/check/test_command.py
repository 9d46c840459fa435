"""`simengine check` as a user runs it: table, JSON and exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from simengine import available_backends
from simengine.check import compare
from simengine.check.fields import FORWARD, STEPPED
from simengine.cli.main import main
from tests.cli.refusals import assert_refused
from tests.model.features import FEATURES, TOGETHER, model_with

SMALL = ["--states", "30", "--steps", "20"]
REPORT = {
    "model": str,
    "backend": str,
    "dtype": str,
    "seed": int,
    "mujoco": str,
    "fields": list,
    "coverage": dict,
    "trajectory": dict,
    "widened": float,
    "budget": list,
    "knife_edges": list,
    "passed": bool,
    "verdict": str,
    "unsupported": list,
}
RESULT = {
    "stage": str,
    "field": str,
    "states": int,
    "ill_conditioned": int,
    "absolute": float,
    "relative": float,
    "tolerance": float,
    "worst_state": int,
    "worst_kind": str,
    "rounding": type(None),
    "holds": bool,
}
COVERAGE = {"states", "left_out", "contacts", "contacts_max", "rows", "rows_max", "limit_rows", "pairs", "by_rounding"}
STEPS = {"steps", "left_out", "contacts", "rows", "rows_max", "limit_rows", "pairs", "by_rounding"}

pytestmark = pytest.mark.skipif(bool(available_backends()["host"]), reason="needs a C++ compiler")


def printed_json(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return json.loads(out)


def test_json_has_every_field_and_what_was_covered(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "ant", *SMALL, "--backend", "host", "--dtype", "float64", "--seed", "3", "--json"]) == 0
    report = printed_json(capsys)
    assert {name: type(value) for name, value in report.items()} == REPORT
    assert (report["model"], report["backend"], report["dtype"], report["seed"]) == ("ant", "host", "float64", 3)
    assert report["passed"]
    assert report["unsupported"] == []
    assert [(f["stage"], f["field"]) for f in report["fields"]] == [(f.stage, f.name) for f in (*FORWARD, *STEPPED)]
    for result in report["fields"]:
        assert {name: type(value) for name, value in result.items()} == RESULT
        assert result["relative"] <= result["tolerance"]
    assert set(report["coverage"]) == COVERAGE | {"limits", "limits_total", "unreached", "readings_left_out"}
    assert set(report["trajectory"]) == STEPS
    assert report["coverage"]["pairs"]["plane-capsule"] > 0
    assert report["coverage"]["limits"] == report["coverage"]["limits_total"] == 16


def test_the_table_names_stages_errors_and_coverage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "hopper", *SMALL, "--backend", "host"]) == 0
    printed = capsys.readouterr().out
    for field in (*FORWARD, *STEPPED):
        assert field.name in printed
        assert field.stage in printed
    for words in ("absolute", "relative", "tolerance", "holds", "capsule-capsule", "limits", "not reached", "thrown"):
        assert words in printed
    words = r"'hopper' on host in float32 agrees with MuJoCo 4.0.0 in all \d+ fields compared; \d+ have no entries"
    assert re.fullmatch(words, printed.splitlines()[-1])


def test_a_difference_exits_with_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    original = compare.Simulation.forward

    def heavier(sim: Any) -> None:
        original(sim)
        sim.field("qfrc_bias")[0] += 1.0

    monkeypatch.setattr(compare.Simulation, "forward", heavier)
    assert main(["check", "hopper", *SMALL, "--backend", "host"]) == 1
    printed = capsys.readouterr().out
    assert [line.split("│")[2].strip() for line in printed.splitlines() if "DIFFERS in" in line] == ["qfrc_bias"]
    assert "first in qfrc_bias of stage rne" in printed
    assert main(["check", "hopper", *SMALL, "--backend", "host", "--json"]) == 1
    report = printed_json(capsys)
    assert [f["field"] for f in report["fields"] if not f["holds"]] == ["qfrc_bias"]
    assert not report["passed"]


def test_a_refused_model_exits_with_1_and_lists_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "odd.xml"
    path.write_text(model_with(*TOGETHER), encoding="utf-8")
    assert main(["check", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{path} is refused: it needs {len(lines) - 1} feature(s)")
    assert [n for n in TOGETHER if not any(FEATURES[n].words in line for line in lines[1:])] == []
    assert main(["check", str(path), "--json"]) == 1
    report = printed_json(capsys)
    assert report["passed"] is False
    assert len(report["unsupported"]) == len(lines) - 1 >= len(TOGETHER)
    assert "model 'odd' needs" in report["verdict"]


def test_a_model_that_does_not_compile_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.xml"
    path.write_text("<mujoco><worldbody><joint/></worldbody></mujoco>", encoding="utf-8")
    assert main(["check", str(path)]) == 1
    assert "MuJoCo could not compile" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check"], "the following arguments are required: model"),
        (["check", "no_such_model"], "no model 'no_such_model'"),
        (["check", "ant", "--states", "0"], "'0' is not a whole number of at least 1"),
        (["check", "ant", "--steps", "many"], "'many' is not a whole number of at least 1"),
        (["check", "ant", "--backend", "tpu"], "invalid choice: 'tpu'"),
        (["check", "ant", "--dtype", "float16"], "invalid choice: 'float16'"),
    ],
)
def test_wrong_calls_exit_with_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(arguments, message, capsys)
