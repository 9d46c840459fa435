"""`simengine replay`: say what a trajectory file holds, draw it, and compare it with MuJoCo."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from simengine.cli.options.errors import UsageError
from simengine.cli.recordings.trajectory import Trajectory
from simengine.cli.recordings.video import add_video_options, camera_number, make_video, require_renderer, view_of
from simengine.cli.results.output import console
from simengine.cli.results.result_file import as_json
from simengine.cli.simulations.oracle import BOUND, relative_error

_TRIES = 4  # disturbed replays of an interval that differs
_ROUNDING = {"float32": 1e-6, "float64": 1e-12}
"""Relative size of the disturbances [-], which is that of a step's rounding errors."""


@dataclass(frozen=True)
class Comparison:
    """How a trajectory compares with MuJoCo. An interval is what a world does from one frame to the next.

    Attributes:
        intervals: number of intervals that were compared.
        jumps: number of intervals that are left out, because an environment set the state or applied forces in them.
        borderline: number of intervals that are left out, because MuJoCo itself ends as far off when it starts from
            states that differ in rounding.
        qpos, qvel: largest relative error at the end of an interval: max|ours - theirs| / max(1, max|theirs|).
        frame, world: where the largest error is: the frame at the end of the interval, and the world.
        bound: largest error with which the engines agree.
    """

    intervals: int
    jumps: int
    borderline: int
    qpos: float
    qvel: float
    frame: int
    world: int
    bound: float

    @property
    def agrees(self) -> bool:
        """Whether every error is within the bound and most intervals were compared."""
        return max(self.qpos, self.qvel) <= self.bound and self.borderline <= self.intervals

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, and `agrees`."""
        return {**asdict(self), "agrees": self.agrees}


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "replay",
        help="show, draw or check a trajectory that `run --save` wrote",
        description="Without options the command prints what the file holds. The exit code is 1 if --check finds that "
        "MuJoCo does something else.",
    )
    parser.add_argument("file", type=Path, help="a trajectory file")
    add_video_options(parser)
    parser.add_argument(
        "--check", action="store_true", help="replay from every frame to the next in MuJoCo, and compare the states"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command. The exit code is 1 if the trajectory differs from MuJoCo's."""
    view = view_of(options)
    try:
        trajectory = Trajectory(options.file)
    except FileNotFoundError as error:
        raise UsageError(str(error)) from error
    facts = trajectory.facts()
    comparison = None
    if options.video:
        camera_number(trajectory.model(), view.camera)
        require_renderer()
    if options.check:
        comparison = compare(trajectory)
        facts["mujoco"] = comparison.as_dict()
    code = make_video(options.file, options.video, view) if options.video else 0
    if options.video and not code:
        facts["video"] = str(options.video)
    if options.json:
        print(as_json(facts))
    else:
        _print(facts, comparison)
    return code or (1 if comparison and not comparison.agrees else 0)


def compare(trajectory: Trajectory) -> Comparison:
    """Replay each interval of a trajectory in MuJoCo, from its first frame under its controls.

    Raises:
        ValueError: there are fewer than two frames, or worlds have parameters of their own.
    """
    if trajectory.num_frames < 2:
        raise ValueError(f"{trajectory.path!r} has a single frame; record at least two to compare them with MuJoCo")
    if own := trajectory.arrays.get("params", np.zeros(0)).tolist():
        raise ValueError(
            f"the worlds in {trajectory.path!r} have {', '.join(own)} of their own, which the model in the file has "
            "not; to compare with MuJoCo, record an environment that does not randomise its model"
        )
    model = trajectory.model()
    data = mujoco.MjData(model)
    bound = BOUND[trajectory.text("dtype")]
    compared = jumps = borderline = 0
    worst = (-1.0, 0.0, 0.0, 0, 0)
    starts = range(trajectory.num_frames - 1)
    bar = Console(stderr=True)
    for frame in track(starts, "replay", console=bar, transient=True, disable=not sys.stderr.isatty()):
        for index, world in enumerate(trajectory["worlds"].tolist()):
            if trajectory.jumps(frame, index):
                jumps += 1
                continue
            theirs = _replayed(trajectory, model, data, frame, index)
            errors = [
                relative_error(trajectory[name][frame + 1, index].astype(np.float64), end)
                for name, end in zip(("qpos", "qvel"), theirs, strict=True)
            ]
            if max(errors) > bound and _is_borderline(trajectory, model, data, frame, index, theirs, max(errors)):
                borderline += 1
                continue
            compared += 1
            worst = max(worst, (max(errors), *errors, frame + 1, world))
    if not compared and not borderline:
        raise ValueError(
            f"in every interval of {trajectory.path!r} the environment set the state or forces; record more steps, and "
            "each of them with --every 1"
        )
    none = np.inf if not compared else 0.0
    return Comparison(compared, jumps, borderline, worst[1] + none, worst[2] + none, worst[3], worst[4], bound)


def _replayed(
    trajectory: Trajectory,
    model: mujoco.MjModel,
    data: mujoco.MjData,
    frame: int,
    index: int,
    disturbed: np.random.Generator | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return qpos and qvel of MuJoCo at the end of an interval, whose start may be disturbed by rounding."""
    mujoco.mj_resetData(model, data)
    trajectory.put(data, frame, index)
    if disturbed is not None:
        size = _ROUNDING[trajectory.text("dtype")]
        for values in (data.qpos, data.qvel):
            values += disturbed.uniform(-size, size, values.shape) * np.maximum(1.0, np.abs(values))
    first, last = trajectory["step"][[frame, frame + 1]]
    for step in range(first, last):
        data.ctrl = trajectory["ctrl"][step, index]
        mujoco.mj_step(model, data)
    return data.qpos.copy(), data.qvel.copy()


def _is_borderline(
    trajectory: Trajectory,
    model: mujoco.MjModel,
    data: mujoco.MjData,
    frame: int,
    index: int,
    ends: tuple[np.ndarray, np.ndarray],
    error: float,
) -> bool:
    """Whether rounding at the start of an interval moves MuJoCo's own end by about as much as an error."""
    rng = np.random.default_rng(0)
    for _ in range(_TRIES):
        others = _replayed(trajectory, model, data, frame, index, rng)
        if max(relative_error(other, end) for other, end in zip(others, ends, strict=True)) > error / 4:
            return True
    return False


def _print(facts: dict[str, Any], comparison: Comparison | None) -> None:
    table = Table(title=facts["file"], show_header=False)
    worlds = facts["recorded_worlds"]
    shown = ", ".join(map(str, worlds[:8])) + (f", ... ({len(worlds)} worlds)" if len(worlds) > 8 else "")
    if "environment" in facts:
        table.add_row("environment", facts["environment"])
    table.add_row("model", facts["model"])
    table.add_row("recorded worlds", shown)
    table.add_row("frames", f"{facts['frames']}, one every {facts['every']} steps of {facts['timestep']} s")
    table.add_row("simulated time", f"{facts['seconds']:.6g} s, {facts['steps']} steps")
    table.add_row("made by", f"simengine {facts['engine_version']}, {facts['backend']}, {facts['dtype']}")
    table.add_row("model compiled by", f"MuJoCo {facts['mujoco_version']}")
    for name, shape in facts["arrays"].items():
        table.add_row(name, " x ".join(map(str, shape)))
    if comparison:
        verdict = "agrees" if comparison.agrees else "DIFFERS"
        table.add_row(
            "against MuJoCo",
            f"{verdict} in {comparison.intervals} intervals from frame to frame: worst relative error qpos "
            f"{comparison.qpos:.1e}, qvel {comparison.qvel:.1e} (frame {comparison.frame}, world {comparison.world})",
        )
        if comparison.jumps:
            table.add_row(
                "", f"{comparison.jumps} intervals left out, in which the environment set the state or forces"
            )
        if comparison.borderline:
            table.add_row("", f"{comparison.borderline} intervals left out, whose ends rounding decides in MuJoCo too")
    if "video" in facts:
        table.add_row("video", facts["video"])
    console().print(table)
