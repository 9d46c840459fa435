"""The part of `simengine run` that records: its options, and steps that can be interrupted and taken up again."""

from __future__ import annotations

import argparse
import hashlib
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from types import FrameType, SimpleNamespace
from typing import Any

from simengine import Model
from simengine.cli.options.errors import UsageError
from simengine.cli.options.settings import positive
from simengine.cli.recordings.recording import Recorded, Recording, check_output
from simengine.cli.recordings.video import View, add_video_options, camera_number, make_video, require_renderer, view_of
from simengine.cli.results.output import step_bar
from simengine.saved_state import fingerprint

_CHECKPOINT_SECONDS = 60.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def add_recording_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run that is recorded."""
    parser.add_argument("--save", metavar="FILE.npz", type=Path, help="write what some worlds do, as arrays of NumPy")
    parser.add_argument(
        "--record",
        nargs="+",
        metavar="WORLDS",
        help="worlds to record, as numbers or slices such as 0 3 8:16 (default: 0)",
    )
    parser.add_argument("--every", type=positive, metavar="K", help="record every K steps (default 1)")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the interrupted run that was to write FILE.npz, if any",
    )
    parser.add_argument(
        "--checkpoint",
        type=_seconds,
        metavar="SECONDS",
        help=f"time between checkpoints, from which --resume goes on (default {_CHECKPOINT_SECONDS:.0f})",
    )
    add_video_options(parser)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


class RecordedRun:
    """A run that is recorded.

    Args:
        options: the parsed options.
        view: how a video shows the recorded worlds.
        settings: settings of the run.
        worlds: the worlds to record.
        made_with: what the run was asked to do.

    Attributes:
        steps_made: steps that this process has made.
        facts: what was written, for the report.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        view: View,
        settings: SimpleNamespace,
        worlds: list[int],
        made_with: dict[str, Any],
    ):
        self._video: Path | None = options.video
        self._view = view
        self._steps: int = settings.steps
        self._worlds = worlds
        self._every: int = options.every or 1
        self._seconds: float = _CHECKPOINT_SECONDS if options.checkpoint is None else options.checkpoint
        self._resume: bool = options.resume
        self._made_with = made_with
        self._kept = options.save is not None
        self._temporary = None if self._kept else tempfile.TemporaryDirectory()
        self._output = Path(self._temporary.name, "run.npz") if self._temporary else Path(options.save)
        self._stopped_by = 0
        self._done = 0
        self.steps_made = 0
        self.facts: dict[str, Any] = {}

    @classmethod
    def asked(
        cls, options: argparse.Namespace, settings: SimpleNamespace, model: Model, given: dict[str, Any]
    ) -> RecordedRun | None:
        """Return the recorded run that options ask for; None if nothing is recorded.

        Args:
            options: the parsed options.
            settings: settings of the run.
            model: the model of the worlds.
            given: what else the run was asked to do, by option. An interrupted run goes on with the same only.

        Raises:
            UsageError: the options do not fit together, the model or the files that are there.
            RuntimeError: a video is asked for and cannot be made here.
        """
        view = view_of(options)
        if options.save is None:
            for name in ("resume", "checkpoint"):
                if getattr(options, name):
                    raise UsageError(f"--{name} belongs to a trajectory; give --save FILE.npz too")
        if options.save is None and options.video is None:
            for name in ("record", "every"):
                if getattr(options, name):
                    raise UsageError(f"--{name} belongs to a recording; give --save FILE.npz or --video FILE.mp4 too")
            return None
        worlds = chosen_worlds(options.record or ["0"], settings.worlds)
        if options.save is not None:
            check_output(options.save, options.resume)
        if options.video is not None:
            camera_number(model.mj, view.camera)
            require_renderer()
        made_with = {
            "model": f"{model.name} {fingerprint(model.table)}",
            "--worlds": settings.worlds,
            "--steps": settings.steps,
            "--dtype": settings.dtype,
            **given,
            "--record": worlds,
            "--every": options.every or 1,
        }
        return cls(options, view, settings, worlds, made_with)

    @property
    def stopped(self) -> bool:
        """Whether a signal has ended the steps before the last one."""
        return self._stopped_by != 0

    def step(self, recorded: Recorded, step: Callable[[int], object]) -> float:
        """Make and record all steps, or those after the checkpoint, until a signal asks to stop.

        Args:
            recorded: the worlds, in the state from which the run starts.
            step: makes the step with this number.

        Returns:
            Time that it took [s].
        """
        began = perf_counter()
        made_with = {**self._made_with, "--backend": recorded.backend}
        recording = Recording(
            recorded, self._output, self._worlds, self._every, made_with, self._seconds, self._resume and self._kept
        )
        first = recording.step
        try:
            with _noted_signals() as noted, step_bar(recorded.model.name, self._steps, first) as advance:
                while recording.step < self._steps and not noted:
                    step(recording.step)
                    recording.take()
                    advance(1)
                if recording.step < self._steps and self._kept:
                    recording.save_checkpoint()
        except BaseException:
            recording.close()
            raise
        self._done, self.steps_made = recording.step, recording.step - first
        if recording.step < self._steps:
            recording.close()
            self._stopped_by = noted[0]
        else:
            recording.finish()
            self.facts |= {"frames": self._steps // self._every + 1, "recorded_worlds": len(self._worlds)}
            self.facts |= {"saved": str(self._output)} if self._kept else {}
        return perf_counter() - began

    def explain(self) -> int:
        """Say on stderr how to go on after a signal, and return the exit code."""
        kept = "give the same command with --resume to go on" if self._kept else "without --save nothing of it is kept"
        print(f"simengine: interrupted after {self._done} of {self._steps} steps; {kept}", file=sys.stderr)
        self._clean()
        return 128 + self._stopped_by

    def draw(self) -> int:
        """Draw the video, if there is to be one, and return the exit code."""
        try:
            code = make_video(self._output, self._video, self._view) if self._video else 0
        finally:
            self._clean()
        if self._video and not code:
            self.facts["video"] = str(self._video)
        return code

    def _clean(self) -> None:
        if self._temporary:
            self._temporary.cleanup()


def chosen_worlds(texts: Sequence[str], num_worlds: int) -> list[int]:
    """Return worlds by number, ascending, from numbers and slices.

    Raises:
        UsageError: a text is neither, or stands for no world of the run.
    """
    found: set[int] = set()
    for text in texts:
        try:
            parts = [int(part) if part else None for part in text.split(":")]
            some = range(num_worlds)[slice(*parts)] if len(parts) in (2, 3) else [int(text)]
        except ValueError as error:
            raise UsageError(
                f"--record takes numbers of worlds and slices such as 8:16, and {text!r} is neither; correct it"
            ) from error
        if not some or not all(0 <= world < num_worlds for world in some):
            raise UsageError(f"--record {text} is no world of this run; give numbers from 0 to {num_worlds - 1}")
        found.update(some)
    return sorted(found)


def digest(path: Path) -> str:
    """Return the name of a file and a hash of its contents."""
    with path.open("rb") as file:
        return f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"


@contextmanager
def _noted_signals() -> Iterator[list[int]]:
    """Note the first signal that asks the process to end, so that the step can be completed. A second one ends it."""
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield noted
        return
    previous = {number: signal.getsignal(number) for number in _SIGNALS}

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        restore()

    for number in _SIGNALS:
        signal.signal(number, note)
    try:
        yield noted
    finally:
        restore()
