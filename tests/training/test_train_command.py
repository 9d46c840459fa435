"""`simengine train`, as a user would run it, in this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simengine.backends.select import available_backends
from simengine.cli.main import main
from simengine_training import load_policy
from tests.training import point

SMALL = ["--num-envs", "8", "--rollout-steps", "16", "--total-steps", "384", "--minibatches", "4"]


def wrong(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and message of a call that fails."""
    code = main(["train", *arguments])
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.count("\n") == 1
    return code, streams.err


def test_any_environment_by_its_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    options = ["--hidden-sizes", "8", "4", "--no-anneal", "--seed", "3", "--eval-episodes", "2", "--json"]
    assert main(["train", point.ID, *SMALL, *options, "--out", str(out)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["arguments"]["hidden_sizes"] == [8, 4]
    assert (result["arguments"]["anneal"], result["arguments"]["seed"]) == (False, 3)
    assert [row["update"] for row in result["curve"]] == [1, 2, 3]
    assert {"hardware", "versions", "date", "command", "before", "after", "seconds"} <= set(result)
    assert "optax" in result["versions"]
    assert load_policy(out).params["params"]["actor_1"]["kernel"].shape == (8, 4)
    code, message = wrong(capsys, point.ID, *SMALL, "--out", str(out))
    assert code == 1
    assert "already holds a training; resume it" in message
    code, message = wrong(capsys, "--resume", str(out))
    assert code == 1
    assert "is finished" in message


def test_resumes_after_an_interruption(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, steps = str(tmp_path / "out"), point.PointVectorEnv.step

    def interrupted(self: point.PointVectorEnv, actions: object) -> object:
        if len(self.actions) == 40:
            raise KeyboardInterrupt
        return steps(self, actions)

    with monkeypatch.context() as patch:
        patch.setattr(point.PointVectorEnv, "step", interrupted)
        quick = ["--checkpoint-every", "1", "--eval-episodes", "0"]
        assert main(["train", point.ID, *SMALL, *quick, "--out", out]) == 130
    assert main(["train", "--resume", out]) == 0
    printed = capsys.readouterr().out
    assert "384 steps" in printed
    assert "while training" in printed
    words = " ".join(printed.replace("│", " ").split())  # a long folder name wraps the cell
    assert "checkpoints, curve.csv, curve.png, summary.json" in words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a preset or an environment's id, or give --resume FOLDER"),
        (["--resume", "out", "--seed", "1"], "leave out --seed"),
        (["--resume", "out", "train_ant"], "leave out train_ant"),
        (["simengine/Nothing-v0"], "there is no environment 'simengine/Nothing-v0'"),
        (["simengine/Ant-v5", "--import", "no_such_module"], "module 'no_such_module' cannot be imported"),
        (["simengine/Ant-v5", "--gamma", "2"], "argument gamma must be between 0 and 1, not 2.0"),
        (
            ["Pendulum-v1", "--backend", "host"],
            "Pendulum-v1 is not one of simengine's environments and takes no --backend",
        ),
    ],
)
def test_wrong_calls_exit_with_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = wrong(capsys, *arguments)
    assert code == 2
    assert message in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--resume", "no/such/folder"], "no/such/folder holds no training"),
    ],
)
def test_failures_are_one_sentence(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, printed = wrong(capsys, *arguments, *(["--out", str(tmp_path)] if "--resume" not in arguments else []))
    assert code == 1
    assert message in printed


@pytest.mark.slow
@pytest.mark.skipif(bool(available_backends()["host"]), reason="needs a C++ compiler")
def test_ant_through_the_preset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--total-steps", "12288", "--eval-episodes", "4", "--backend", "host", "--json"]
    assert main(["train", "train_ant", *sizes, "--out", str(tmp_path / "ant")]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["arguments"]["env_arguments"] == {"backend": "host"}
    assert (result["observation_size"], result["action_size"], result["updates"]) == (105, 8, 3)
    # The first policy hardly moves and lives for all 1000 steps, each worth 1.
    assert 900 < result["before"]["return_mean"] < 1100
    assert all(row["episodes"] > 0 for row in result["curve"])
    assert all(abs(row["approx_kl"]) < 0.2 for row in result["curve"])
