"""`simengine evaluate`, `play` and `export`, as a user would run them, in this process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest

from simengine.cli.main import main
from simengine.cli.policies import trained
from simengine_envs.options import EngineOptions
from simengine_training.evaluate import FIRST_SEED, evaluate
from simengine_training.numpy_policy import NumpyPolicy
from tests.cli.refusals import assert_refused
from tests.helpers import pages
from tests.training.balance import BALANCING, STILL, linear

SHORT = {"max_episode_steps": 40}


@pytest.fixture
def pendulum(tmp_path: Path) -> str:
    """The folder of a training whose policy balances the pendulum."""
    return training(tmp_path / "pendulum", BALANCING, {**SHORT, "backend": "cuda", "dtype": "float64"})


@pytest.fixture
def hopper(tmp_path: Path) -> str:
    """A file with a policy that lets the hopper fall."""
    STILL.save(tmp_path / "hopper.npz")
    return str(tmp_path / "hopper.npz")


def training(folder: Path, policy: NumpyPolicy, arguments: dict[str, Any], env_id: str = "") -> str:
    """Write what a training leaves in its folder."""
    folder.mkdir()
    policy.save(folder / "policy.npz")
    summary = {"arguments": {"env_id": env_id or policy.environment, "env_arguments": arguments}}
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return str(folder)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """What a command that succeeds prints with --json."""
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_mean_in_both_engines(hopper: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "evaluate", hopper, "--in", "both", "--episodes", "4", "--processes", "1")
    assert {"hardware", "versions", "date", "command"} <= set(found)
    assert (found["env_id"], found["seed"], found["env_arguments"]) == (STILL.environment, FIRST_SEED, {})
    for engine in ("simengine", "mujoco"):
        expected = evaluate(STILL, STILL.environment, 4, engine=engine, processes=1).as_dict()
        assert {name: found[engine][name] for name in expected} == expected
    ours, theirs = found["simengine"]["return_mean"], found["mujoco"]["return_mean"]
    assert found["relative_difference"] == pytest.approx((ours - theirs) / theirs, abs=1e-4)
    assert found["relative_standard_error"] > 0


def test_the_table_has_what_was_measured(pendulum: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", pendulum, "--in", "both", "--episodes", "3", "--seed", "7", "--processes", "1"]) == 0
    lines = " ".join(capsys.readouterr().out.split())
    assert "3 episodes with seeds 7 to 9" in lines
    assert re.search(r"mean return │ 40\.0 │ 40\.0", lines)
    assert re.search(r"ended by the time limit │ 100% │ 100%", lines)
    assert "+0.0% off MuJoCo's" in lines


def test_a_policy_of_an_evaluation_has_the_task_of_its_training(pendulum: str) -> None:
    file = Path(pendulum) / "policies" / "000080.npz"
    file.parent.mkdir()
    BALANCING.save(file)
    assert trained.read_policy(file).env_arguments == SHORT


def test_a_mean_below_the_threshold_fails(pendulum: str, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["evaluate", pendulum, "--in", "mujoco", "--episodes", "2", "--processes", "1"]
    assert main([*call, "--threshold", "40"]) == 0
    assert main([*call, "--threshold", "40.5", "--json"]) == 1
    streams = capsys.readouterr()
    found = json.loads(streams.out.splitlines()[-1])
    assert (found["threshold"], found["reached"], found["mujoco"]["return_mean"]) == (40.5, False, 40.0)
    assert streams.err == "simengine: the mean return in mujoco is below 40.5\n"


def test_the_engine_of_a_training_is_not_part_of_its_task(pendulum: str) -> None:
    assert trained.read_policy(Path(pendulum)).env_arguments == SHORT
    assert trained.read_policy(Path(pendulum, "policy.npz")).env_arguments == SHORT
    assert set(trained._TRAINED_IN) == set(EngineOptions._fields)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "no/such"], "there is no policy at 'no/such'; give the folder of a training, or a policy.npz"),
        (["evaluate", "FILE", "--in", "brax"], "invalid choice: 'brax'"),
        (["evaluate", "FILE", "--episodes", "0"], "'0' is not a whole number of at least 1"),
        (["evaluate", "FILE", "--seed", "-1"], "'-1' is no seed"),
        (["evaluate", "FILE", "--threshold", "high"], "'high' is no number"),
        (["evaluate", "FILE", "--processes", "2"], "--processes belongs to episodes in mujoco; add --in mujoco"),
        (["evaluate", "FILE", "--in", "mujoco", "--dtype", "float64"], "--dtype belongs to episodes in simengine"),
        (["play", "FILE", "--video", "film.avi"], "'film.avi' is neither .mp4 nor .gif"),
        (["play", "FILE", "--video", "film.mp4", "--size", "33", "20"], "--size 33 20 is odd"),
        (["play", "FILE", "--video", "film.gif", "--fps", "60"], "give --fps 50 or less"),
        (["play", "FILE", "--size", "32", "32"], "--size belongs to a film; give --video FILE.mp4 too"),
        (["play", "FILE", "--worlds", "2"], "--worlds belongs to a film"),
        (["export", "FILE"], "the following arguments are required: --out"),
        (["export", "FILE", "--out", "x", "--format", "torch"], "invalid choice: 'torch'"),
    ],
)
def test_wrong_calls_exit_with_2(
    arguments: list[str], message: str, hopper: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused([hopper if word == "FILE" else word for word in arguments], message, capsys)


def test_what_is_no_policy_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    STILL.save(tmp_path / "policy.npz")
    left = {name: array for name, array in np.load(tmp_path / "policy.npz").items() if name != "limit"}
    np.savez(tmp_path / "policy.npz", **left)
    (tmp_path / "notes.npz").write_text("no archive")
    assert main(["evaluate", str(tmp_path)]) == 1
    assert "is no complete policy, because it lacks 'limit'" in capsys.readouterr().err
    assert main(["play", str(tmp_path / "notes.npz"), "--video", "film.mp4"]) == 1
    assert "is not a policy; give a policy.npz" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert_refused(["export", str(tmp_path / "empty"), "--out", "x"], "there is no policy at", capsys)


def test_wrong_environments_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    linear("simengine/Hoper-v5", [[0.0]]).save(tmp_path / "typo.npz")
    linear("simengine/PickUp-v0", [[0.0]]).save(tmp_path / "alone.npz")
    assert_refused(["evaluate", str(tmp_path / "typo.npz")], "did you mean 'simengine/Hopper-v5'", capsys)
    assert_refused(
        ["evaluate", str(tmp_path / "alone.npz"), "--in", "both"], "MuJoCo runs too are simengine/Ant", capsys
    )
    other = training(tmp_path / "other", STILL, {}, "simengine/Ant-v5")
    assert main(["evaluate", other]) == 1
    assert "is of a training in simengine/Ant-v5, and the policy.npz beside it is for" in capsys.readouterr().err
    Path(other, "summary.json").write_text("{}", encoding="utf-8")
    assert main(["evaluate", other]) == 1
    assert "is no summary of a training" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these variables")
@pytest.mark.parametrize("display", ["", ":4321"])
def test_without_a_display_a_window_is_refused(
    display: str, hopper: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert_refused(["play", hopper], "no display here for a window; give --video FILE.mp4 or FILE.gif", capsys)
    assert_refused(["play", "no/such"], "there is no policy at 'no/such'", capsys)  # whatever the display


def test_a_window_shows_a_world_until_it_is_closed(
    pendulum: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The viewer, which needs a display, is replaced; it is closed after 50 pictures."""
    shown: list[np.ndarray] = []

    @contextmanager
    def launch(model: mujoco.MjModel, data: mujoco.MjData, **_: Any) -> Any:
        yield SimpleNamespace(
            cam=mujoco.MjvCamera(),
            lock=nullcontext,
            sync=lambda: shown.append(data.xpos.copy()),
            is_running=lambda: len(shown) < 50,
        )

    import mujoco.viewer

    monkeypatch.setattr(mujoco.viewer, "launch_passive", launch)
    monkeypatch.setattr("simengine.cli.policies.play._opens_windows", lambda: True)
    monkeypatch.setattr("simengine.cli.policies.play.sleep", lambda seconds: None)
    found = printed(capsys, "play", pendulum)
    assert (found["steps"], found["episodes"], found["return_mean"]) == (49, 1, 40.0)
    assert len({picture.tobytes() for picture in shown}) == 50
    assert printed(capsys, "play", pendulum, "--steps", "8")["steps"] == 0  # closed already
    shown.clear()
    assert printed(capsys, "play", pendulum, "--steps", "8")["steps"] == 8
    shown.clear()
    assert printed(capsys, "play", pendulum, "--episodes", "1")["steps"] == 40
    assert_refused(["play", pendulum, "--camera", "side"], "the model has no camera 'side'", capsys)


@pytest.mark.parametrize("name", ["film.mp4", "film.gif"])
def test_films_show_every_world(name: str, pendulum: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if reason := pages.without_opengl():
        pytest.skip(reason)
    ffmpeg: Any = pytest.importorskip("imageio_ffmpeg")
    film = tmp_path / "films" / name
    look = ["--size", "128", "64", "--worlds", "2", "--fps", "10"]
    found = printed(capsys, "play", pendulum, "--video", str(film), *look, "--steps", "35", "--seed", "4")
    # 35 steps of 0.04 s, and the frame of the start
    assert (found["steps"], found["worlds"], found["frames"], found["episodes"]) == (35, 2, 15, 0)
    decode = [ffmpeg.get_ffmpeg_exe(), "-i", str(film), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    decoded = subprocess.run(decode, capture_output=True, check=True).stdout
    frames = np.frombuffer(decoded, np.uint8).reshape(15, 64, 128, 3).astype(float)
    for half in (frames[:, :, :64], frames[:, :, 64:]):
        assert half.std() > 5
    assert np.abs(frames[0, :, :64] - frames[0, :, 64:]).max() > 10  # the worlds start differently
    assert [path.name for path in film.parent.iterdir()] == [name]


def test_a_film_ends_with_the_episodes_of_all_worlds(
    pendulum: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if reason := pages.without_opengl():
        pytest.skip(reason)
    pytest.importorskip("imageio_ffmpeg")
    look = ["--video", str(tmp_path / "film.mp4"), "--size", "32", "32", "--worlds", "2", "--fps", "1"]
    found = printed(capsys, "play", pendulum, *look, "--episodes", "2")
    assert (found["steps"], found["episodes"], found["return_mean"]) == (80, 4, 40.0)
    assert_refused(["play", pendulum, *look, "--camera", "side"], "the model has no camera 'side'", capsys)


def test_exported_files_take_the_same_actions(
    pendulum: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnx")
    out = tmp_path / "robot"
    found = printed(capsys, "export", pendulum, "--out", str(out))
    assert found["files"] == ["policy.npz", "policy.py", "summary.json", "policy.onnx"]
    assert (found["observation_size"], found["action_size"]) == (4, 1)
    assert sorted(path.name for path in out.iterdir()) == sorted(found["files"])
    program = "from policy import NumpyPolicy; print(NumpyPolicy.load('.')([0.1, 0.2, 0.3, 0.4]).tolist())"
    done = subprocess.run([sys.executable, "-c", program], cwd=out, capture_output=True, text=True, check=True)
    np.testing.assert_allclose(json.loads(done.stdout), BALANCING(np.array([0.1, 0.2, 0.3, 0.4])), rtol=1e-6)
    assert trained.read_policy(out).env_arguments == SHORT
    assert printed(capsys, "export", str(out), "--out", str(out), "--format", "numpy")["files"] == found["files"][:3]


def test_a_policy_is_exported_without_its_environment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replace(STILL, environment="Own-v0").save(tmp_path / "policy.npz")
    found = printed(capsys, "export", str(tmp_path), "--out", str(tmp_path / "robot"), "--format", "numpy")
    assert found["env_id"] == "Own-v0"
    assert_refused(["evaluate", str(tmp_path)], "if it is your own, add --import MODULE", capsys)


def test_a_missing_package_leaves_no_files(
    hopper: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, "simengine_training.onnx_export", raising=False)
    said = "which is not installed; install it with: pip install 'simengine[onnx]', or give --format numpy"
    assert_refused(["export", hopper, "--out", str(tmp_path / "robot")], said, capsys)
    assert not (tmp_path / "robot").exists()
