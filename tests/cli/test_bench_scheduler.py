"""`simengine bench scheduler`: rows, ratios, charts, and failures."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from simengine.backends.select import available_backends
from simengine.cli.bench.published import PUBLISHED
from simengine.cli.bench.scheduler import _steps
from simengine.cli.bench.scheduler_report import add_ratios, means_of_five, print_means
from simengine.cli.main import main
from simengine.cli.simulations.workloads import FIVE, WORKLOADS, family, make_workload, models_of
from simengine.workload import SimulationWorkload
from simengine_configs import load_preset
from simengine_scheduler import Executor, FixedList
from simengine_scheduler.executors.base import Options
from simengine_scheduler.registry import EXECUTORS
from simengine_scheduler.study.specs import Spec

pytestmark = pytest.mark.skipif(bool(available_backends()["host"]), reason="needs a C++ compiler")

BALLS = "<mujoco><worldbody><geom type='plane' size='9 9 1'/>{}</worldbody></mujoco>"
BALL = "<body pos='0 0 0.12'><freejoint/><geom size='0.1'/></body>"
QUICK = ["--backend", "host", "--seconds", "0.001", "--steps", "5", "--repeats", "1", "--traces", "1"]
NETWORKS = ["population:rows=4,policies=2,most=8", "wired:nodes=5,stages=1,channels=2,side=6"]


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "ball.xml"
    path.write_text(BALLS.format(BALL), encoding="utf-8")
    return str(path)


def test_rows_and_chart(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = [f"{model}:worlds=3,settle=5", f"{model}:worlds=3,settle=5,shards=2", *NETWORKS]
    out, chart = tmp_path / "deep" / "out.json", tmp_path / "deep" / "out.png"
    executors = ["--executors", "serial", "threads:workers=2", "shuffled"]
    assert (
        main(
            ["bench", "scheduler", "--workloads", *lists, *executors, *QUICK, "--json", str(out), "--plot", str(chart)]
        )
        == 0
    )
    printed = capsys.readouterr().out
    result = json.loads(out.read_text())
    rows = result["rows"]
    assert (result["benchmark"], result["backend"]) == ("scheduler", "host")
    assert [(row["workload"], row["executor"]) for row in rows] == [
        (name, executor) for name in lists for executor in executors[1:]
    ]
    best = max(row["units_per_s"] for row in rows[:6] if row["executor"] == "serial")
    serial = {row["workload"]: row["units_per_s"] for row in rows if row["executor"] == "serial"}
    for row in rows:
        assert (row["good"], row["legal"], row["equal"]) == (True, True, True)
        assert row["over_serial"] == pytest.approx(row["units_per_s"] / serial[row["workload"]])
        assert row["over_graph_cached"] is None
        assert f"{row['units_per_s']:,.0f}" in printed
    assert [row["over_best_serial"] for row in rows[:6]] == [
        pytest.approx(row["units_per_s"] / best) for row in rows[:6]
    ]
    assert chart.read_bytes().startswith(b"\x89PNG")


def test_a_failing_executor_is_a_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuses(options: Options) -> Any:
        raise RuntimeError("not on this machine")

    monkeypatch.setitem(EXECUTORS, "refuses", refuses)
    arguments = ["--workloads", NETWORKS[0], "--executors", "refuses", "serial", *QUICK, "--json", "-"]
    assert main(["bench", "scheduler", *arguments]) == 1
    refused, serial = json.loads(capsys.readouterr().out)["rows"]
    assert refused["error"] == "RuntimeError: not on this machine"
    assert not refused["good"]
    assert serial["good"]
    arguments[-2:] = []
    assert main(["bench", "scheduler", *arguments]) == 1
    assert "refuses: RuntimeError: not on this machine" in capsys.readouterr().out


def test_a_list_that_cannot_be_made_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    lists = ["--workloads", "wired:neighbours=3", NETWORKS[0]]
    assert main(["bench", "scheduler", *lists, "--executors", "serial", *QUICK, "--json", "-"]) == 1
    broken, fine = json.loads(capsys.readouterr().out)["rows"]
    assert "cannot have 3 neighbours" in broken["error"]
    assert fine["good"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workloads", "ant:"], "spec 'ant:' is not like"),
        (["--workloads", "population:colour=3"], "has an option that 'population' does not know"),
        (["--workloads", "no_such_model"], "no model 'no_such_model'"),
        (["--executors", "magic"], "unknown executor 'magic'"),
        (["--executors", "serial:completion=hope"], "completion='hope' is unknown"),
        (["--backend", "jax"], "backend 'jax' has no executors to measure"),
    ],
)
def test_wrong_calls_exit_with_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "scheduler", *(["--backend", "host"] if "jax" not in arguments else []), *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("backend", ["host", "cuda"])
def test_preset_has_every_family_as_it_is(backend: str) -> None:
    """Else the best serial of a family would be one that was slowed down by splitting its batch."""
    preset = load_preset("bench scheduler", "scheduler")
    lists = [Spec.parse(text) for text in preset["workloads"][backend]]
    assert len({str(spec) for spec in lists}) == len(lists)
    assert {str(family(spec)) for spec in lists} <= {str(spec) for spec in lists}
    assert {spec.name for spec in lists} <= set(WORKLOADS)
    assert preset["executors"][backend][0] == "serial"
    if backend == "cuda":
        assert {spec.name for spec in lists} == set(WORKLOADS)
        assert {str(family(Spec.parse(name))) for name in FIVE} < {str(spec) for spec in lists}


def row(workload: str, executor: str, speed: float | None) -> dict[str, Any]:
    return {
        "workload": workload,
        "family": str(family(Spec.parse(workload))),
        "executor": executor,
        "units_per_s": speed,
    }


def test_ratios() -> None:
    rows = add_ratios(
        [
            row("ant", "serial", 10.0),
            row("ant", "graph-cached", 20.0),
            row("ant", "streams:completion=polling", 15.0),
            row("ant", "device", None),
            row("ant:shards=4", "serial", 8.0),
            row("ant:shards=4", "streams", 30.0),
            row("ant:worlds=9", "device", 90.0),
            row("ant:emission=whole", "serial", 25.0),
        ]
    )
    assert [r["over_serial"] for r in rows] == [1, 2, 1.5, None, 1, 3.75, None, 1]
    assert [r["over_graph_cached"] for r in rows] == [0.5, 1, 0.75, None, None, None, None, None]
    assert [r["over_best_serial"] for r in rows] == [1, 2, 1.5, None, 0.8, 3, None, 2.5]
    assert rows[2]["published"] == {"system": "ACS-SW", "over_serial": 1.85}
    assert rows[3]["published"] == {"system": "ACS-HW", "over_serial": 2.0}
    assert [r["published"] for r in (rows[0], *rows[4:])] == [None] * 5


def test_whole_steps_are_measured_under_few_executors(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workloads = [f"{model}:worlds=3,settle=5", f"{model}:worlds=3,settle=5,emission=whole"]
    preset = {
        **load_preset("bench scheduler", "scheduler"),
        "workloads": {"host": workloads},
        "on_whole_steps": ["serial"],
    }
    monkeypatch.setattr("simengine.cli.options.settings.load_preset", lambda command, name: dict(preset))
    out = tmp_path / "out.json"
    assert main(["bench", "scheduler", *QUICK, "--json", str(out)]) == 0
    rows = json.loads(out.read_text())["rows"]
    lists, whole = ([row for row in rows if row["workload"] == workload] for workload in workloads)
    assert [row["executor"] for row in whole] == ["serial"]
    assert len(lists) == len(preset["executors"]["host"])
    assert whole[0]["kernels_per_step"] < lists[0]["kernels_per_step"]
    assert whole[0]["over_best_serial"] == pytest.approx(whole[0]["units_per_s"] / lists[0]["units_per_s"])


def test_means_of_the_five(capsys: pytest.CaptureFixture[str]) -> None:
    rows = []
    for number, name in enumerate(FIVE):
        rows += [row(f"{name}:shards=2", "serial", 1.0), row(f"{name}:shards=2", "streams", 1.0 + number)]
        rows += [row(name, "serial", 2.0), row(name, "graph", 4.0 if number else None)]
    means = means_of_five(add_ratios([*rows, row("mixed", "serial", 9.0), row("ant:worlds=9", "serial", 1.0)]))
    found = {(mean["options"], mean["executor"]): mean for mean in means}
    assert set(found) == {("shards=2", "serial"), ("shards=2", "streams"), ("", "serial"), ("", "graph")}
    streams = found["shards=2", "streams"]
    assert (streams["over_serial"], streams["over_best_serial"], streams["over_graph_cached"]) == (3.0, 1.5, None)
    assert found["", "graph"]["over_serial"] is None  # one of the five failed
    print_means(means)
    assert "3.00" in capsys.readouterr().out


def test_published_figures_have_the_mean_that_the_paper_gives() -> None:
    ratios = PUBLISHED[0]["over_serial"]
    assert set(ratios) == set(FIVE)
    assert sum(ratios.values()) / 5 == pytest.approx(1.80, abs=0.005)
    assert len({entry["counterpart"] for entry in PUBLISHED}) == len(PUBLISHED) == 7
    names = {*EXECUTORS, "pipeline"}
    assert {Spec.parse(entry["counterpart"]).name for entry in PUBLISHED} <= names


@pytest.mark.parametrize("name", ["mixed", "pile", *FIVE])
def test_models_of_simulations(name: str) -> None:
    assert name in WORKLOADS
    models = models_of(name)
    assert len(models) == (len(FIVE) if name == "mixed" else 1)
    assert {model.table.solver for model in models} <= {"solve_newton_unilateral", "solve_newton_general"}


def test_a_pile_has_as_many_bodies_as_asked_for() -> None:
    (model,) = models_of("pile", bodies=3, kind="box")
    assert model.nv == 18
    with pytest.raises(ValueError, match="no pile of 3 bodies of kind 'fluff'"):
        models_of("pile", bodies=3, kind="fluff")


def test_options_of_a_simulation(model: str) -> None:
    workload = make_workload(Spec.parse(f"{model}:worlds=5,shards=2,emission=ahead,settle=0"), "host")
    assert isinstance(workload, SimulationWorkload)
    assert (workload.units, len(workload.emitters())) == (5, 2)
    assert all(isinstance(emitter, FixedList) for emitter in workload.emitters())
    workload.close()


@pytest.mark.parametrize(
    ("period", "most", "long", "short"),
    [(10, 60, 60, 10), (10, 54, 50, 10), (20, 12, 12, 5), (1, 7, 7, 5), (20, 60, 60, 20), (20, 30, 20, 20)],
)
def test_repeats_are_whole_periods(period: int, most: int, long: int, short: int) -> None:
    """So that each has as many births, and lists of as many steps, as any other."""

    class Periodic:
        options: ClassVar[dict[str, Any]] = {}

        def run(self, executor: Executor, steps: int) -> None:
            """Take no time."""

    workload: Any = Periodic()
    workload.period = period
    found = [_steps(workload, SimpleNamespace(steps=most, seconds=seconds)) for seconds in (10.0, 0.0)]
    assert found == [long, short]
