"""`simengine train`, as a user would run it, in this process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from simengine.backends.select import available_backends
from simengine.cli.main import main
from simengine_training import NumpyPolicy, run
from tests.helpers import pages
from tests.training import point

SMALL = ["num_envs=8", "rollout_steps=16", "total_steps=384", "minibatches=4", "hidden_sizes=[8]"]
QUICK = [*SMALL, "checkpoint_every=1", "eval_episodes=2", "--backend", "host"]


def wrong(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and message of a call that fails."""
    code = main(["train", *arguments])
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.count("\n") == 1
    return code, streams.err


def test_any_task_by_its_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    options = [
        "--hidden-sizes",
        "8",
        "4",
        "--no-anneal",
        "--seed",
        "3",
        "--json",
        "env.terminate=false",
        "gamma=9.5e-1",
    ]
    assert main(["train", point.ID, *QUICK, *options, "--out", str(out)]) == 0
    streams = capsys.readouterr()
    result = json.loads(streams.out)
    (training,) = result["trainings"]
    assert training["arguments"]["hidden_sizes"] == [8, 4]
    assert training["arguments"]["env_arguments"] == {"backend": "host", "terminate": False}
    assert [training["arguments"][name] for name in ("anneal", "seed", "gamma")] == [False, 3, 0.95]
    assert [row["update"] for row in training["curve"]] == [1, 2, 3]
    assert {"hardware", "versions", "date", "command", "seconds"} <= set(result)
    assert NumpyPolicy.load(out).weights[1].shape == (8, 4)
    lines = streams.err.splitlines()
    assert sum("update" in line for line in lines) == 3
    assert sum("evaluation: return" in line for line in lines) == 3
    code, message = wrong(capsys, point.ID, *QUICK, "--out", str(out))
    assert code == 1
    assert "already holds a training; resume it" in message
    code, message = wrong(capsys, "--resume", str(out))
    assert code == 1
    assert "is finished" in message


def test_a_call_that_is_out_of_time_is_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert main(["train", point.ID, *QUICK, "--out", out, "--minutes", "0"]) == 3
    streams = capsys.readouterr()
    assert f"to go on: simengine train --resume {out}" in streams.err
    assert "128 so far" in streams.out
    assert main(["train", "--resume", out]) == 0
    assert "384" in capsys.readouterr().out


@pytest.mark.parametrize("update", [0, 1])
def test_an_interrupted_call_says_how_to_go_on(
    update: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = str(tmp_path / "out")

    def interrupted(arguments: object, folder: Path, *_: object, **__: object) -> None:
        if update:
            folder.mkdir()
            (folder / "summary.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "train", interrupted)
    assert main(["train", point.ID, *QUICK, "--out", out]) == 130
    told = f"simengine: interrupted; to go on: simengine train --resume {out}\n"
    assert capsys.readouterr().err == told * update


@pytest.mark.filterwarnings("always::simengine_training.checkpoint.DamagedCheckpointWarning")
def test_a_damaged_checkpoint_is_told_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    for call in (
        ["train", point.ID, *QUICK, "--out", out, "--minutes", "0"],
        ["train", "--resume", out, "--minutes", "0"],
    ):
        assert main(call) == 3
    capsys.readouterr()
    newest = tmp_path / "out" / "checkpoints" / "00000002.npz"
    newest.write_bytes(newest.read_bytes()[:-100])
    assert main(["train", "--resume", out]) == 0
    first, *others = capsys.readouterr().err.splitlines()
    assert first.startswith(f"simengine: checkpoint {newest} is damaged (")
    assert first.endswith("; the one before it is taken")
    assert "update 2/3" in others[0]


def test_several_seeds_in_one_call_which_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ["train", point.ID, *QUICK, "--seeds", "4", "7", "--out", str(tmp_path), "--json"]
    assert main([*call, "--minutes", "0"]) == 3
    assert main(call) == 0
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(run, "train", lambda *_, **__: pytest.fail("a finished training starts again"))
        assert main(call) == 0
    trainings = json.loads(capsys.readouterr().out)["trainings"]
    assert [training["arguments"]["seed"] for training in trainings] == [4, 7]
    assert (tmp_path / "seed7" / "policy.npz").is_file()
    code, message = wrong(capsys, *call[1:], "gamma=0.5")
    assert code == 1
    assert "holds a training with other settings; name another folder with --out" in message


def test_a_file_of_settings_and_what_overrides_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "mine.yaml"
    config.write_text("learning_rate: 1e-3\ngamma: 0.9\nenv: {terminate: false}\n")
    call = ["train", point.ID, "--config", str(config), *QUICK, "gamma=0.8", "--out", str(tmp_path / "out"), "--json"]
    assert main(call) == 0
    arguments = json.loads(capsys.readouterr().out)["trainings"][0]["arguments"]
    assert (arguments["learning_rate"], arguments["gamma"]) == (1e-3, 0.8)
    assert arguments["env_arguments"] == {"terminate": False, "backend": "host"}


def test_list_names_every_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("half_cheetah", "Swimmer-v5", "ant_cpu"))


@pytest.mark.slow
def test_evaluated_policies_are_filmed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if reason := pages.without_opengl():
        pytest.skip(reason)
    pytest.importorskip("imageio_ffmpeg")
    out = tmp_path / "out"
    task = [f"tests.training.own:{point.ID}", *SMALL, "checkpoint_every=1", "eval_episodes=2", "--backend", "host"]
    assert main(["train", *task, "--out", str(out), "--minutes", "0"]) == 3
    assert main(["train", "--resume", str(out), "--videos", "--minutes", "0"]) == 3
    # this process knows the environment, and those that draw do not
    assert capsys.readouterr().err.count("could not be drawn: ") == 2
    assert main(["train", "--resume", str(out), "--videos", "--import", "tests.training.own"]) == 0
    assert "could not be drawn" not in capsys.readouterr().err
    assert [path.name for path in sorted((out / "videos").iterdir())] == ["000001.mp4", "000002.mp4", "000003.mp4"]


def test_events_of_tensorboard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tensorboardX")
    assert main(["train", point.ID, *QUICK, "--tensorboard", "--out", str(tmp_path)]) == 0
    (file,) = (tmp_path / "tensorboard").iterdir()
    data = file.read_bytes()
    assert b"evaluation/return_mean" in data
    assert b"train/approx_kl" in data


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a preset or an environment's id, or give --resume FOLDER"),
        (["--resume", "out", "--seed", "1"], "leave out --seed"),
        (["--resume", "out", "ant"], "leave out ant"),
        (["simengine/Ant-v5", "--gamma", "2"], "argument gamma must be between 0 and 1, not 2.0"),
        (["ant", "gama=1"], "there is no setting 'gama' (did you mean 'gamma'?)"),
        (["ant", "gamma"], "'gamma' is not a setting; write NAME=VALUE"),
        (["simengine/Nothing-v0"], "there is no environment 'simengine/Nothing-v0'"),
        (["simengine/Ant-v5", "--import", "no_such_module"], "module 'no_such_module' cannot be imported"),
        (["anr"], "there is no preset 'anr' (did you mean 'ant'?)"),
        (["suite", "--tasks", "antt"], "the suite has no task 'antt' (did you mean 'ant'?)"),
        (["ant", "--tasks", "ant"], "--tasks goes with 'suite'"),
        (["ant", "--seeds", "1", "--seed", "1"], "--seeds and --seed exclude each other"),
        (["ant", "--seeds", "1", "2", "1"], "--seeds names 1 twice; give each seed once"),
        (["ant", "--videos", "eval_episodes=0"], "--videos films policies that are evaluated, and eval_episodes is 0"),
        (["ant", "algorithm=sac"], "argument algorithm must be one of ppo, not 'sac'"),
        (["ant", "--config", "no/such.yaml"], "no/such.yaml cannot be read (No such file or directory)"),
        (
            ["ant", "activation=tanhh"],
            "argument activation must be one of elu, relu, silu, tanh, not 'tanhh' (did you mean 'tanh'?)",
        ),
    ],
)
def test_wrong_calls_exit_with_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = wrong(capsys, *arguments)
    assert code == 2
    assert message in printed


def test_an_unknown_option_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["train", "ant", "--num-env", "64", "--rollout-step=3", "--gama", "0.9"])
    assert "unrecognized arguments: --gama 0.9 (did you mean '--gamma'?)" in capsys.readouterr().err


@pytest.mark.parametrize("minutes", ["-1", "nan", "soon"])
def test_a_time_that_is_none_is_refused(minutes: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["train", "ant", "--minutes", minutes])
    assert f"'{minutes}' is no number of minutes; give a number of at least 0" in capsys.readouterr().err


def test_a_folder_without_training_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = wrong(capsys, "--resume", "no/such/folder")
    assert code == 1
    assert "no/such/folder holds no training" in printed


def test_a_missing_package_names_its_extra(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "simengine_training.ray_cluster", raising=False)
    code, printed = wrong(capsys, point.ID, "--ray")
    assert code == 1
    assert "needs the package 'ray', which is not installed; install it with: pip install 'simengine[ray]'" in printed


def test_a_preset_is_no_address(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["train", "--ray", "ant"])
    assert "'ant' is not HOST:PORT; without an address, let --ray come last" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(bool(available_backends()["host"]), reason="needs a C++ compiler")
def test_ant_through_the_preset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["total_steps=12288", "eval_episodes=4", "--backend", "host", "--json"]
    assert main(["train", "ant_cpu", *sizes, "--out", str(tmp_path / "ant")]) == 0
    (training,) = json.loads(capsys.readouterr().out)["trainings"]
    assert training["arguments"]["env_arguments"] == {"backend": "host"}
    assert (training["observation_size"], training["action_size"], training["updates"]) == (105, 8, 3)
    # The policy hardly moves and lives for all 1000 steps, each worth 1.
    assert 800 < training["evaluations"][0]["return_mean"] < 1200
    assert all(row["episodes"] > 0 for row in training["curve"])
    assert all(abs(row["approx_kl"]) < 0.2 for row in training["curve"])
    assert np.isfinite([row["value_loss"] for row in training["curve"]]).all()


@pytest.mark.slow
@pytest.mark.parametrize("updates", [1, 6, 11])
def test_a_killed_training_is_resumed_to_the_same_bytes(updates: int, tmp_path: Path) -> None:
    """It is killed without a chance to clean up, after a number of lines of its log."""
    call = [sys.executable, "-m", "simengine.cli.main", "train", "simengine/InvertedPendulum-v5", "--backend", "host"]
    call += ["num_envs=8", "rollout_steps=16", "total_steps=1536", "minibatches=4", "checkpoint_every=3"]
    call += ["eval_episodes=2", "--out"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([*call, str(tmp_path / "whole")], env=environment, check=True, capture_output=True)
    parts = [*call, str(tmp_path / "parts")]
    with subprocess.Popen(parts, env=environment, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if f"update {updates}/12" in line:
                running.kill()
    assert running.returncode == -signal.SIGKILL
    assert main(["train", "--resume", str(tmp_path / "parts")]) == 0
    for name in ("curve.csv", "evaluations.csv", "summary.json", "curve.png"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
