"""`simengine run` of environments: what is recorded, what acts, and runs that are interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from simengine.backends.select import available_backends
from simengine.cli.environments.stepping import EnvironmentRun
from simengine.cli.main import main
from simengine.cli.simulations import oracle
from simengine_envs.tiling import drawn_worlds
from tests.cli import own_task
from tests.cli.arm import saved
from tests.cli.refusals import assert_refused
from tests.helpers import pages

pytestmark = pytest.mark.skipif(bool(available_backends()["host"]), reason="needs a C++ compiler")

PENDULUM = ["run", "Upright-v0", "--import", own_task.MODULE, "--backend", "host", "--json"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with own_task.in_folder(tmp_path, monkeypatch) as found:
        yield found


def call(capsys: pytest.CaptureFixture[str], arguments: list[str], *more: object) -> dict[str, Any]:
    """What a run printed, which must succeed."""
    assert main([*arguments, *map(str, more)]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_trajectory_holds_what_the_environment_did(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--worlds", 5, "--steps", 60, "--seed", 7, "--record", 1, "3:5", "--every", 4]
    result = call(capsys, PENDULUM, *sizes, "--save", "out.npz")
    assert (result["environment"], result["worlds"], result["steps"]) == ("Upright-v0", 5, 60)
    assert (result["frames"], result["recorded_worlds"], result["actions"]) == (16, 3, "random actions")
    found = saved(Path("out.npz"))
    assert found["step"].tolist() == list(range(0, 121, 8))
    assert (int(found["every"]), int(found["frame_skip"]), str(found["environment"])) == (8, 2, "Upright-v0")
    assert found["action"].shape == (60, 3, 1)
    assert np.array_equal(found["ctrl"], np.repeat(found["action"], 2, axis=0))
    # Gymnasium's face of the same environment, under the recorded actions
    envs = gymnasium.make_vec("Upright-v0", num_envs=5, backend="host")
    envs.reset(seed=7)
    actions, returns, totals = np.zeros((5, 1)), [], np.zeros(5)
    recorded = found["worlds"]
    for step in range(60):
        if step % 4 == 0:
            qpos = envs.unwrapped.runner.host("qpos")[recorded]
            assert np.array_equal(qpos, found["qpos"][step // 4])
        actions[recorded] = found["action"][step]
        _, rewards, terminated, truncated, _ = envs.step(actions)
        assert np.array_equal(rewards[recorded], found["reward"][step])
        assert np.array_equal(terminated[recorded], found["terminated"][step])
        assert np.array_equal(truncated[recorded], found["truncated"][step])
        totals += rewards
        returns += [totals[world] for world in recorded if terminated[world] or truncated[world]]
        totals[terminated | truncated] = 0
    assert 0 < len(returns) <= result["episodes"]


def test_returns_are_those_of_the_episodes(capsys: pytest.CaptureFixture[str]) -> None:
    result = call(capsys, PENDULUM, "--worlds", 3, "--steps", 100, "--record", ":", "--save", "out.npz")
    found = saved(Path("out.npz"))
    returns, lengths, totals, counts = [], [], np.zeros(3), np.zeros(3, int)
    for step in range(100):
        totals += found["reward"][step]
        counts += 1
        for world in np.flatnonzero(found["terminated"][step] | found["truncated"][step]):
            returns.append(totals[world])
            lengths.append(counts[world])
            totals[world], counts[world] = 0, -1  # the next step starts the episode
    assert result["episodes"] == len(returns) > 3
    assert result["return_mean"] == pytest.approx(np.mean(returns), abs=1e-5)
    assert result["length_mean"] == pytest.approx(np.mean(lengths), abs=1e-3)
    assert result["unfinished_return_mean"] == pytest.approx(totals.mean(), abs=1e-5)


def test_a_policy_acts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "trained").mkdir()
    own_task.policy().save(folder / "trained" / "policy.npz")
    sizes = ["--worlds", 8, "--steps", 200]
    upright = call(capsys, PENDULUM, *sizes, "--policy", "trained", "--save", "out.npz")
    still = call(capsys, PENDULUM, *sizes, "--actions", "zero")
    wild = call(capsys, PENDULUM, *sizes)
    assert upright["return_mean"] == 40  # every episode lasts
    assert upright["actions"] == "policy trained"
    assert wild["return_mean"] < 30
    assert still["return_mean"] < 40
    found = saved(Path("out.npz"))
    observed = np.concatenate([found["qpos"], found["qvel"]], axis=2)[:-1]
    expected = np.stack([own_task.policy()(seen) for seen in observed])
    np.testing.assert_allclose(found["action"], expected, rtol=1e-5, atol=1e-7)  # NumPy rounds by the number of rows


@pytest.mark.parametrize("environment", ["Upright-v0", "Kicked-v0"])
def test_replay_agrees_with_mujoco_between_episodes(environment: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--worlds", 3, "--steps", 50, "--record", ":", "--dtype", "float64", "--save", "out.npz"]
    run = [PENDULUM[0], environment, *PENDULUM[2:]]
    result = call(capsys, run, *options)
    compared = call(capsys, ["replay", "out.npz", "--check", "--json"])["mujoco"]
    assert compared["agrees"]
    assert 0 < compared["qvel"] < oracle.BOUND["float64"]
    found = saved(Path("out.npz"))
    ends = int((found["terminated"] | found["truncated"])[:-1].sum())
    kicks = 3 + int((found["terminated"] | found["truncated"])[:-2].sum()) if environment == "Kicked-v0" else 0
    assert compared["jumps"] == ends + kicks
    assert compared["intervals"] + compared["jumps"] + compared["borderline"] == 150
    assert result["episodes"] >= ends > 0
    assert main(["replay", "out.npz", "--check"]) == 0
    assert f"{compared['jumps']} intervals left out" in capsys.readouterr().out


def test_worlds_with_parameters_of_their_own_are_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    run = [PENDULUM[0], "Heavy-v0", *PENDULUM[2:]]
    call(capsys, run, "--worlds", 2, "--steps", 5, "--save", "out.npz")
    assert "body_mass" in saved(Path("out.npz"))["params"].tolist()
    assert main(["replay", "out.npz"]) == 0
    capsys.readouterr()
    assert main(["replay", "out.npz", "--check"]) == 1
    assert "have body_mass, body_inertia, dof_armature, body_ipos of their own" in capsys.readouterr().err


@pytest.mark.parametrize("environment", ["Upright-v0", "Heavy-v0"])
@pytest.mark.parametrize("acting", ["random", "policy"])
def test_an_interrupted_run_ends_with_the_same_file(
    environment: str, acting: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own_task.policy(environment, gain=0.5).save(folder / "policy.npz")
    run = [PENDULUM[0], environment, *PENDULUM[2:], *(["--policy", "policy.npz"] if acting == "policy" else [])]
    sizes = ["--worlds", 3, "--steps", 90, "--record", 0, 2, "--every", 3]
    whole = call(capsys, run, *sizes, "--save", "whole.npz")
    step = EnvironmentRun.step

    def interrupted(self: EnvironmentRun, number: int) -> None:
        if number == 47:
            signal.raise_signal(signal.SIGINT)
        step(self, number)

    with monkeypatch.context() as patch:
        patch.setattr(EnvironmentRun, "step", interrupted)
        assert main([*run, *map(str, sizes), "--save", "cut.npz"]) == 128 + signal.SIGINT
    assert "interrupted after 48 of 90 steps" in capsys.readouterr().err
    assert_refused([*run, *map(str, sizes), "--save", "cut.npz", "--resume", "--seed", "9"], "had --seed 0", capsys)
    rest = call(capsys, run, *sizes, "--save", "cut.npz", "--resume")
    assert Path("cut.npz").read_bytes() == Path("whole.npz").read_bytes()
    for name in ("episodes", "return_mean", "return_std", "length_mean", "unfinished_return_mean"):
        assert rest[name] == whole[name]


def test_a_model_runs_in_the_environment_of_a_policy(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own_task.policy().save(folder / "policy.npz")
    options = ["--import", own_task.MODULE, "--policy", "policy.npz", "--backend", "host", "--steps", "3", "--json"]
    result = call(capsys, ["run", "inverted_pendulum", *options], "--worlds", 2)
    assert result["environment"] == "Upright-v0"
    message = "acts in Upright-v0, which has the model 'inverted pendulum' and not that of 'hopper'; name Upright-v0"
    assert_refused(["run", "hopper", *options], message, capsys)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--policy", "none"], "there is no policy at 'none'"),
        (["--policy", f"{own_task.MODULE}.py"], "holds no policy"),
        (["--policy", "wide.npz"], "is for Other-v0, with 9 observations and 1 actions, and Upright-v0 has 4 and 1"),
        (["--policy", "policy.npz", "--actions", "zero"], "leave out --actions or --policy"),
        (["--ctrl", "ctrl.npy"], "--ctrl is for models, and Upright-v0 is an environment"),
        (["--keyframe", "up"], "--keyframe is for models"),
        (["--executor", "serial"], "--executor is for models"),
        (["--save", "out.npz", "--record", "2"], "--record 2 is no world of this run"),
    ],
)
def test_wrong_calls_exit_with_2(
    more: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own_task.policy().save(folder / "policy.npz")
    own_task.policy("Other-v0", observations=9).save(folder / "wide.npz")
    assert_refused([*PENDULUM, "--worlds", "2", *more], message, capsys)
    assert not Path("out.npz").exists()


def test_models_take_no_actions(capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(["run", "ant", "--actions", "zero"], "--actions is for environments, and 'ant' is a model", capsys)


@pytest.mark.slow
def test_several_robots_run_and_are_not_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", "simengine/MixedLocomotion-v0", "--worlds", "5", "--steps", "2", "--backend", "host", "--json"]
    assert call(capsys, run)["worlds"] == 5
    assert_refused([*run, "--save", "out.npz"], "have several models, and a recording holds worlds of one", capsys)


def test_a_policy_of_another_environment_is_told_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own_task.policy("Kicked-v0").save(folder / "policy.npz")
    assert main([*PENDULUM, "--worlds", "2", "--steps", "2", "--policy", "policy.npz"]) == 0
    assert "the policy was trained in Kicked-v0, not in Upright-v0" in capsys.readouterr().err


@pytest.mark.slow
def test_videos_show_a_limited_number_of_worlds() -> None:
    if reason := pages.without_opengl():
        pytest.skip(reason)
    ffmpeg: Any = pytest.importorskip("imageio_ffmpeg")
    look = ["--record", ":", "--size", "96", "64", "--fps", "5"]
    for most, cells in ((25, 6), (4, 4)):
        film = ["--video", "film.mp4", "--video-worlds", str(most), *look]
        assert main([*PENDULUM, "--worlds", "6", "--steps", "20", *film]) == 0
        decode = [ffmpeg.get_ffmpeg_exe(), "-i", "film.mp4", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
        decoded = subprocess.run(decode, capture_output=True, check=True).stdout
        picture = np.frombuffer(decoded, np.uint8).reshape(-1, 64, 96, 3)[-1].astype(float)
        columns, rows = (3, 2) if cells == 6 else (2, 2)
        height, width = 64 // rows, 96 // columns
        for index in range(columns * rows):
            row, column = divmod(index, columns)
            cell = picture[row * height : (row + 1) * height, column * width : (column + 1) * width]
            assert cell.std() > 5
    assert drawn_worlds(6, 4) == [0, 1, 3, 4]
