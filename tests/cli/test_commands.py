"""The commands, run as a user would run them, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simengine import Simulation
from simengine.backends.select import available_backends
from simengine.cli.main import main
from simengine.cli.simulations import oracle
from tests.cli.refusals import assert_refused

BACKENDS = [name for name in ("host", "jax") if not available_backends()[name]]
SMALL = ["--worlds", "4", "--steps", "5"]
UNSUPPORTED = "<mujoco><option><flag sleep='enable'/></option></mujoco>"


def call_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Run a command that must succeed and print one JSON object, nothing else."""
    assert main(list(arguments)) == 0
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    return json.loads(printed)


def kernels_of(name: str, backend: str = "host", worlds: int = 1, **options: Any) -> set[str]:
    """Kernels of the first step of a model from its initial state."""
    sim = Simulation(name, worlds, backend=backend, **options)
    sim.step()
    return {call.name for call in sim.schedule.kernel_list}


@pytest.mark.parametrize("backend", BACKENDS)
def test_run_agrees_with_mujoco(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = call_json(capsys, "run", "inverted_pendulum", *SMALL, "--backend", backend, "--json")
    assert (result["model"], result["worlds"], result["steps"]) == ("inverted pendulum", 4, 5)
    assert (result["backend"], result["dtype"]) == (backend, "float32")
    assert result["steps_per_s"] > 0
    assert result["mujoco"]["agrees"]
    assert result["mujoco"]["worlds"] + result["mujoco"]["borderline"] == 4
    assert 0 <= result["mujoco"]["qacc"] < 2e-3


def test_run_prints_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "inverted_pendulum", *SMALL, "--dtype", "float64"]) == 0
    printed = capsys.readouterr().out
    for words in ("4 worlds, 5 steps", "float64", "steps/s", "kernels a step", "agrees in"):
        assert words in printed


def test_run_fails_when_mujoco_disagrees(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(oracle.BOUND, "float32", 0.0)
    assert main(["run", "hopper", *SMALL]) == 1
    assert "DIFFERS" in capsys.readouterr().out


def test_bench_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a new folder" / "stepping.json"
    arguments = ["--model", "hopper", "--worlds", "2", "5", "--executors", "serial", "shuffled", "--backend", "host"]
    sizes = ["--warmup", "3", "--steps", "8", "--repeats", "2"]
    assert main(["bench", "stepping", *arguments, *sizes, "--mujoco", "--json", str(path)]) == 0
    printed = capsys.readouterr().out
    result = json.loads(path.read_text(encoding="utf-8"))
    assert set(result) == {"benchmark", "hardware", "versions", "date", "command", "rows"}
    assert [(row["worlds"], row["executor"]) for row in result["rows"]] == [
        (2, "serial"),
        (2, "shuffled"),
        (5, "serial"),
        (5, "shuffled"),
    ]
    for row in result["rows"]:
        assert row["steps_per_s"] == pytest.approx(row["worlds"] * 1e6 / row["us_per_step"], rel=0.01)
        assert row["ratio"] == pytest.approx(row["steps_per_s"] / row["peer_steps_per_s"], rel=0.01)
        for name in ("steps_per_s", "peer_steps_per_s"):
            assert len(row[f"all_{name}"]) == 2
            assert min(row[f"all_{name}"]) <= row[name] <= max(row[f"all_{name}"])
        assert row["qacc_error"] < 2e-3
        assert f"{row['steps_per_s']:,}" in printed


def test_bench_without_peer_prints_json_alone(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--worlds", "2", "--warmup", "1", "--steps", "2", "--repeats", "1"]
    result = call_json(capsys, "bench", "stepping", *sizes, "--json", "-")
    assert result["benchmark"] == "stepping"
    assert "ratio" not in result["rows"][0]


@pytest.mark.skipif("host" not in BACKENDS, reason="needs a C++ compiler")
@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_trace_writes_events_and_picture(executor: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "deep" / "out"
    options = ["--executor", executor, "--backend", "host", "--out", str(out), "--json"]
    result = call_json(capsys, "trace", "ant", *SMALL, *options)
    events = [e for e in json.loads((out / "trace.json").read_text())["traceEvents"] if e["ph"] == "X"]
    assert len(events) == result["calls"] >= 12  # four evaluations of at least three kernels
    assert {event["name"] for event in events} >= kernels_of("ant", worlds=4, executor=executor)
    assert (out / "trace.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif("host" not in BACKENDS, reason="needs a C++ compiler")
def test_trace_by_kernel_and_access(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--executor", "threads:workers=2,window=8", "--backend", "host", "--out", str(tmp_path), "--json"]
    result = call_json(
        capsys, "trace", "half_cheetah", *SMALL, *options, "--by", "kernel", "--access", str(tmp_path / "who")
    )
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = [row["args"]["name"] for row in rows if row["name"] == "thread_name"]
    assert kernels_of("half_cheetah") <= set(names)
    assert any(row["ph"] == "f" for row in rows)
    table = (tmp_path / "who" / "access.md").read_text()
    assert "| qpos | r |" in table
    assert result["access"] == [str(tmp_path / "who" / name) for name in ("access.md", "access.png")]
    assert (tmp_path / "who" / "access.png").read_bytes().startswith(b"\x89PNG")


def test_trace_of_a_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = "population:rows=4,policies=2,most=8"
    result = call_json(capsys, "trace", spec, "--backend", "host", "--out", str(tmp_path), "--json")
    assert (result["list"], result["executor"]) == (spec, "threads")
    events = [e for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"] if e["ph"] == "X"]
    assert len(events) == result["calls"] >= 10
    assert main(["trace", spec, "--backend", "jax", "--out", str(tmp_path)]) == 2
    assert "backend 'jax' runs no kernel list" in capsys.readouterr().err


def test_trace_needs_a_kernel_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "hopper", *SMALL, "--backend", "jax", "--out", str(tmp_path)]) == 1
    assert "backend 'jax' runs no kernel list" in capsys.readouterr().err


def test_warmup_compiles_all_that_later_steps_need(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if available_backends()["host"]:
        pytest.skip("no compiler")
    monkeypatch.setenv("SIMENGINE_CACHE_DIR", str(tmp_path))
    result = call_json(capsys, "warmup", "inverted_pendulum", "--worlds", "1", "64", "--backend", "host", "--json")
    assert [(row["model"], row["worlds"]) for row in result["models"]] == [
        ("inverted_pendulum", 1),
        ("inverted_pendulum", 64),
    ]
    kernels = {path.name for path in tmp_path.glob("*.so")}
    assert any(name.startswith("finish") for name in kernels)
    with Simulation("inverted_pendulum", 64, backend="host") as sim:
        sim.step(3)
        sim.forward()
    assert {path.name for path in tmp_path.glob("*.so")} == kernels


def test_info_names_backends_and_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    facts = call_json(capsys, "info", "ant", "--json")
    assert facts["backends"]["jax"] == ""
    assert facts["model"]["sizes"]["nv"] == 14
    assert "mujoco" in facts["versions"]
    assert "ant" in facts["models"]
    if facts["model"]["backend"] != "jax":
        assert set(facts["model"]["calls"]) == kernels_of("ant", facts["model"]["backend"])
        needs = facts["model"]["bytes"]
        assert needs["worlds"] * needs["world"] < needs["at_first"] < needs["at_most"]


def test_info_prints_every_backend(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    printed = capsys.readouterr().out
    assert all(f"backend {name}" in printed for name in ("cuda", "host", "jax"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "no_such_model"], "no model 'no_such_model'"),
        (["run", "ant", "--worlds", "0"], "'0' is not a whole number of at least 1"),
        (["run", "ant", "--backend", "tpu"], "invalid choice: 'tpu'"),
        (["run", "ant", "--executor", "magic"], "invalid choice: 'magic'"),
        (["bench", "nothing"], "invalid choice: 'nothing'"),
        (["bench", "stepping", "--model", "ant", "no_such_model"], "no model 'no_such_model'"),
        (["trace"], "the following arguments are required: model"),
        (["trace", "wired", "--worlds", "4"], "'wired' is a list; write its size with it"),
        (["trace", "ant", "--executor", "magic"], "unknown executor 'magic'"),
        (["trace", "ant", "--executor", "threads:widow=3"], "unexpected keyword argument 'widow'"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_wrong_calls_exit_with_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(arguments, message, capsys)


def test_refused_model_fails_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.xml"
    path.write_text(UNSUPPORTED, encoding="utf-8")
    assert main(["run", str(path)]) == 1
    streams = capsys.readouterr()
    assert streams.err.count("\n") == 1
    assert "enable flag sleep" in streams.err
    assert streams.out == ""


def test_executor_of_another_backend_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "hopper", *SMALL, "--backend", "jax", "--executor", "threads"]) == 1
    assert "'jax' has no executors" in capsys.readouterr().err


def test_traceback_is_there_for_the_asking() -> None:
    with pytest.raises(ValueError, match="'jax' has no executors"):
        main(["--traceback", "run", "hopper", *SMALL, "--backend", "jax", "--executor", "threads"])


def test_a_run_that_explodes_says_what_the_person_at_the_terminal_can_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "wild.xml"
    model.write_text(
        "<mujoco model='wild'><worldbody><body><joint name='j' stiffness='-1e14'/><geom size='1'/></body></worldbody>"
        "<actuator><motor joint='j' gear='1e9'/></actuator></mujoco>"
    )
    assert main(["run", str(model), *SMALL]) == 1
    said = capsys.readouterr().err
    assert "model 'wild' in world 0" in said
    assert "its time step too long; try a smaller one" in said
    assert "sim.reset" not in said
