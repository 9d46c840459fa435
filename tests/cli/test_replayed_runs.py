"""Recorded runs are replayed and drawn, and files that are none are refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simengine.cli.main import main
from simengine.cli.recordings import video
from simengine.cli.recordings.trajectory import Trajectory
from simengine.cli.simulations import oracle
from tests.cli.arm import HOST, arguments, save, saved
from tests.cli.refusals import assert_refused
from tests.helpers import pages


@HOST
@pytest.mark.parametrize("every", [1, 4])
def test_replay_agrees_with_mujoco(every: int, mjcf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--keyframe", 0, "--dtype", "float64", "--worlds", 3, "--record", ":", "--every", every]
    path = save(mjcf, *options, "--steps", 80)
    capsys.readouterr()
    assert main(["replay", str(path), "--check", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["frames"], result["recorded_worlds"], result["every"]) == (80 // every + 1, [0, 1, 2], every)
    assert result["seconds"] == 0.16
    assert result["mujoco"]["agrees"]
    assert result["mujoco"]["intervals"] + result["mujoco"]["borderline"] == 240 // every
    assert 0 < result["mujoco"]["qvel"] < oracle.BOUND["float64"]


@HOST
def test_replay_tells_what_is_in_a_file(mjcf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(mjcf, "--worlds", 2, "--steps", 6)
    capsys.readouterr()
    assert main(["replay", str(path), "--check"]) == 0
    printed = capsys.readouterr().out
    for words in ("arm", "7, one every 1 steps of 0.002 s", "0.012 s, 6 steps", "7 x 1 x 9", "agrees in 6 intervals"):
        assert words in printed


@HOST
def test_replay_fails_where_mujoco_does_something_else(mjcf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(mjcf, "--worlds", 2, "--record", 0, 1, "--steps", 6)
    found = saved(path)
    found["qvel"][4, 1, 0] += 0.5
    np.savez(path, **found)
    capsys.readouterr()
    assert main(["replay", str(path), "--check", "--json"]) == 1
    result = json.loads(capsys.readouterr().out)["mujoco"]
    assert not result["agrees"]
    assert (result["frame"] in (4, 5), result["world"]) == (True, 1)
    assert result["qvel"] > 0.05


@HOST
def test_files_that_are_no_trajectory_are_refused(mjcf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(mjcf, "--worlds", 1, "--steps", 6)
    capsys.readouterr()
    found, whole = saved(path), path.read_bytes()

    def fails(message: str) -> None:
        assert main(["replay", str(path)]) == 1
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1

    path.write_bytes(whole[: len(whole) // 2])
    fails("is no complete trajectory")
    path.write_text("<mujoco/>")
    fails("is no complete trajectory (it is no .npz file); give a file that `simengine run --save` wrote")
    np.savez(path, qpos=found["qpos"])
    fails("lacks 'simengine_trajectory'")
    np.savez(path, **{**found, "simengine_trajectory": np.array(2), "engine_version": np.array("9.9")})
    fails("was written by simengine 9.9 in format 2")
    for name, value, said in (
        ("simengine_trajectory", np.array([1, 1]), "its entry 'simengine_trajectory' has shape (2,), where () fits"),
        ("timestep", np.array("soon"), "its entry 'timestep' holds no numbers"),
        ("step", found["step"][:3], "its entry 'time' has shape (7, 1), where (3, 1) fits the others"),
        ("qvel", found["qvel"][:, 0], "its entry 'qvel' has shape"),
    ):
        np.savez(path, **{**found, name: value})
        fails(said)
    np.savez(path, **{**found, "model": np.zeros(9, np.uint8), "mujoco_version": np.array("9.9")})
    assert main(["replay", str(path), "--check"]) == 1
    assert "install mujoco==9.9" in capsys.readouterr().err
    path.unlink()
    assert_refused(["replay", str(path)], "no trajectory at", capsys)


@HOST
def test_a_flipped_bit_of_a_trajectory_is_found(mjcf: Path) -> None:
    """Or it changes no entry, as in the date of the file."""
    file = save(mjcf, "--worlds", 1, "--steps", 6)
    written, expected = file.read_bytes(), saved(file)
    refused = 0
    for place in np.random.default_rng(0).integers(8 * len(written), size=200):
        damaged = bytearray(written)
        damaged[place // 8] ^= 1 << place % 8
        file.write_bytes(damaged)
        try:
            arrays = Trajectory(file).arrays
        except ValueError:
            refused += 1
        else:
            assert all((arrays[name] == value).all() for name, value in expected.items())
    assert refused > 100


def test_videos_show_every_recorded_world(mjcf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if reason := pages.without_opengl():
        pytest.skip(reason)
    ffmpeg: Any = pytest.importorskip("imageio_ffmpeg")
    film, again = mjcf.with_name("film.mp4"), mjcf.with_name("again.mp4")
    look = ["--camera", "side", "--fps", "10", "--size", "128", "64"]
    path = save(mjcf, "--worlds", 3, "--record", 0, 2, "--steps", 250, "--every", 5, "--video", film, *look)
    assert json.loads(capsys.readouterr().out)["video"] == str(film)
    assert main(["replay", str(path), "--video", str(again), *look, "--json"]) == 0
    for name in (film, again):
        decode = [ffmpeg.get_ffmpeg_exe(), "-i", str(name), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
        decoded = subprocess.run(decode, capture_output=True, check=True).stdout
        pictures = np.frombuffer(decoded, np.uint8).reshape(6, 64, 128, 3).astype(float)
        for half in (pictures[:, :, :64], pictures[:, :, 64:]):
            assert half.std() > 10
            assert np.abs(half[-1] - half[0]).max() > 50
    assert sorted(p.name for p in mjcf.parent.iterdir()) == ["again.mp4", "arm.xml", "film.mp4", "out.npz"]


@HOST
def test_a_video_alone_leaves_no_trajectory(mjcf: Path) -> None:
    if reason := pages.without_opengl():
        pytest.skip(reason)
    pytest.importorskip("imageio_ffmpeg")
    film = mjcf.with_name("film.mp4")
    assert main(arguments(mjcf, "--worlds", 1, "--steps", 50, "--video", film, "--size", 32, 32)) == 0
    assert film.stat().st_size > 500
    assert sorted(path.name for path in mjcf.parent.iterdir()) == ["arm.xml", "film.mp4"]


def test_a_missing_extra_is_named(
    mjcf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(video, "find_spec", lambda name: None)
    assert main(arguments(mjcf, "--video", mjcf.with_name("film.mp4"))) == 1
    assert "pip install 'simengine[render]'" in capsys.readouterr().err


def test_frames_of_a_video_keep_pace_with_the_simulation() -> None:
    times = np.arange(11) * 0.1
    assert video.frame_numbers(times, 10).tolist() == list(range(11))
    assert video.frame_numbers(times, 5).tolist() == [0, 2, 4, 6, 8, 10]
    assert video.frame_numbers(times, 20).tolist() == sorted([*range(11), *range(10)])
