"""Runs that are recorded, interrupted and taken up again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import mujoco
import numpy as np
import pytest

from simengine import Simulation, load_model
from simengine.cli.main import main
from simengine.cli.recordings.recording import Recording
from tests.cli.arm import HOST, MJCF, STATE, arguments, save, saved
from tests.cli.refusals import assert_refused
from tests.helpers.checkout import PYTHONPATH


@HOST
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(2,), (12, 2), (12, 4, 2)])
def test_a_trajectory_holds_what_the_simulation_did(
    shape: tuple[int, ...], dtype: str, mjcf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    controls = np.random.default_rng(3).uniform(-1, 1, shape)
    np.save(mjcf.with_name("ctrl.npy"), controls)
    given = ["--ctrl", mjcf.with_name("ctrl.npy"), "--keyframe", "raised", "--dtype", dtype]
    path = save(mjcf, *given, "--worlds", 4, "--steps", 12, "--record", 1, "2:4", "--every", 5)
    result = json.loads(capsys.readouterr().out)
    assert (result["saved"], result["frames"], result["recorded_worlds"]) == (str(path), 3, 3)
    assert result["mujoco"]["agrees"]
    found = saved(path)
    sim = Simulation(MJCF, 4, backend="host", dtype=dtype)
    sim.reset(keyframe="raised")
    for step in range(13):
        if step % 5 == 0:
            for name in STATE:
                mine = np.asarray(sim.field(name))[1:]
                assert (mine.dtype, mine.tobytes()) == (dtype, found[name][step // 5].tobytes())
            assert found["time"][step // 5].tolist() == sim.time[1:].tolist()
        if step < 12:
            sim.step(ctrl=np.broadcast_to(controls if len(shape) == 1 else controls[step], (4, 2)))
            assert found["ctrl"][step].tobytes() == np.asarray(sim.ctrl)[1:].tobytes()
    assert found["step"].tolist() == [0, 5, 10]
    assert found["worlds"].tolist() == [1, 2, 3]
    assert found["timestep"] == 0.002
    assert str(found["model_name"]) == "arm"


@HOST
def test_the_file_holds_the_model_with_its_assets(mjcf: Path) -> None:
    found = saved(save(mjcf, "--worlds", 2, "--steps", 3))
    model = mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": found["model"].tobytes()})
    assert (model.nq, model.camera(0).name) == (9, "side")
    assert found["qpos"].shape == (4, 1, 9)


@HOST
def test_a_file_of_controls_gives_the_numbers_of_steps_and_worlds(
    mjcf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(mjcf.with_name("ctrl.npy"), np.zeros((7, 3, 2)))
    assert main(arguments(mjcf, "--ctrl", mjcf.with_name("ctrl.npy"))) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["steps"], result["worlds"]) == (7, 3)


def interrupted(mjcf: Path, number: signal.Signals, more: list[object]) -> tuple[int, str]:
    """Start a run in a process, end it by a signal after its first checkpoint, and return exit code and stderr."""
    part = mjcf.with_name("cut.npz.part")
    command = [sys.executable, "-m", "simengine.cli.main", *arguments(mjcf, "--save", mjcf.with_name("cut.npz"), *more)]
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (part / "checkpoint.json").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    streams = process.communicate(timeout=120)
    return process.returncode, streams[1]


@HOST
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_with_the_same_file(number: signal.Signals, mjcf: Path) -> None:
    more: list[object] = ["--worlds", 3, "--steps", 4000, "--record", 0, 2, "--every", 3]
    code, said = interrupted(mjcf, number, [*more, "--checkpoint", "0.05"])
    assert code == (-9 if number == signal.SIGKILL else 128 + number)
    if number != signal.SIGKILL:
        assert "interrupted after" in said
        assert said.count("\n") == 1
    done = json.loads((mjcf.with_name("cut.npz.part") / "checkpoint.json").read_text())["step"]
    assert 0 < done < 4000
    assert not mjcf.with_name("cut.npz").exists()
    cut = save(mjcf, *more, "--resume", to="cut.npz")
    whole = save(mjcf, *more, to="whole.npz")
    assert cut.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in mjcf.parent.iterdir()) == ["arm.xml", "cut.npz", "whole.npz"]


@HOST
def test_an_interrupted_run_is_not_lost_by_another(mjcf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more: list[object] = ["--worlds", 3, "--steps", 4000]
    interrupted(mjcf, signal.SIGTERM, [*more, "--checkpoint", "0.05"])
    before = sorted(path.name for path in mjcf.with_name("cut.npz.part").iterdir())
    to = ["--save", mjcf.with_name("cut.npz")]
    assert_refused(arguments(mjcf, *to, *more), "add --resume to go on with it", capsys)
    changed = [*to, *more, "--resume", "--seed", 1]
    assert_refused(arguments(mjcf, *changed), "had --seed 0 and this one has 1; give the same options", capsys)
    assert sorted(path.name for path in mjcf.with_name("cut.npz.part").iterdir()) == before


@HOST
def test_damage_to_an_interrupted_run_is_found(
    mjcf: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flipped bit, and a file that is cut off: nothing is joined to what was recorded, and nothing is removed."""
    more, take, part = ["--worlds", 3, "--steps", 60], Recording.take, mjcf.with_name("cut.npz.part")

    def interrupt(recording: Recording) -> None:
        take(recording)
        if recording.step == 30:
            recording.save_checkpoint()
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Recording, "take", interrupt)
        assert main(arguments(mjcf, "--save", mjcf.with_name("cut.npz"), *more)) == 130
    files = {path: path.read_bytes() for path in sorted(part.iterdir())}
    assert {"checkpoint.json", "qpos.bin", "step.bin"} < {path.name for path in files}
    capsys.readouterr()
    for path, whole in files.items():
        for content in (whole[:-1] if path.suffix == ".json" else whole[:5], bytes([whole[0] ^ 4]) + whole[1:]):
            if content == whole or not whole:
                continue
            path.write_bytes(content)
            assert main(arguments(mjcf, "--save", mjcf.with_name("cut.npz"), *more, "--resume")) == 1
            said = capsys.readouterr().err
            assert f"{str(path)!r} is damaged" in said or "is not a complete saved state" in said
            assert said.count("\n") == 1
        path.write_bytes(whole)
    assert {path: path.read_bytes() for path in sorted(part.iterdir())} == files
    step = re.compile(rb'"step": (\d+)')
    checkpoint = part / "checkpoint.json"
    checkpoint.write_bytes(step.sub(lambda found: b'"step": %d' % (int(found[1]) - 1), checkpoint.read_bytes()))
    assert main(arguments(mjcf, "--save", mjcf.with_name("cut.npz"), *more, "--resume")) == 1
    assert f"{str(checkpoint)!r} is damaged" in capsys.readouterr().err


@HOST
def test_resume_begins_where_nothing_was_interrupted(mjcf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(mjcf, "--worlds", 1, "--steps", 3, "--resume")
    assert len(saved(path)["qpos"]) == 4
    capsys.readouterr()
    assert_refused(arguments(mjcf, "--save", path, "--resume"), "is complete; there is nothing to resume", capsys)


@HOST
def test_a_run_that_fails_leaves_no_folder(mjcf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("simengine.cli.recordings.recording.Recording.take", fails)
    assert main(arguments(mjcf, "--save", mjcf.with_name("out.npz"), "--steps", 3)) == 1
    assert [path.name for path in mjcf.parent.iterdir()] == ["arm.xml"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--record", "0"], "--record belongs to a recording"),
        (["--resume"], "--resume belongs to a trajectory"),
        (["--save", "out.npz", "--fps", "9"], "--fps belongs to a video"),
        (["--save", "out.npz", "--record", "4"], "--record 4 is no world of this run; give numbers from 0 to 3"),
        (["--save", "out.npz", "--record", "3:2"], "is no world of this run"),
        (["--save", "out.npz", "--record", "two"], "'two' is neither"),
        (["--save", "out.npz", "--checkpoint", "soon"], "'soon' is not a number of seconds"),
        (["--save", "."], "'.' is a folder"),
        (["--video", "out.gif"], "is no .mp4"),
        (["--video", "out.mp4", "--size", "33", "20"], "--size 33 20 is odd"),
        (["--video", "out.mp4", "--camera", "sides"], "no camera 'sides' (did you mean 'side'?)"),
        (["--keyframe", "raise"], "no keyframe 'raise' (did you mean 'raised'?)"),
        (["--keyframe", "3"], "no keyframe 3"),
        (["--ctrl", "none.npy"], "no controls at"),
        (["--ctrl", "text.npy"], "is no .npy file of controls"),
        (["--ctrl", "wide.npy"], "have shape (9, 3); model 'arm' takes (2,), (steps, 2) or (steps, worlds, 2)"),
        (["--ctrl", "nine.npy"], "has controls of 9 steps and the run has 5; give --steps 9"),
        (["--ctrl", "worlds.npy"], "has controls of 2 worlds and the run has 4; give --worlds 2"),
        (["--ctrl", "nan.npy"], "hold nan at [3, 1]"),
    ],
)
def test_wrong_calls_exit_with_2(
    more: list[str],
    message: str,
    mjcf: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(mjcf.parent)
    Path("text.npy").write_text("text", encoding="utf-8")
    bad = np.zeros((5, 2))
    bad[3, 1] = np.nan
    for name, array in {
        "wide": np.zeros((9, 3)),
        "nine": np.zeros((9, 2)),
        "worlds": np.zeros((5, 2, 2)),
        "nan": bad,
    }.items():
        np.save(f"{name}.npy", array)
    assert_refused(arguments(mjcf, "--worlds", 4, "--steps", 5, *more), message, capsys)
    assert not Path("out.npz").exists()


def test_the_model_of_these_tests_is_supported() -> None:
    assert load_model(MJCF).nmocap == 1
