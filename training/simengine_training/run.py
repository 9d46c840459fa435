"""Runs a training: updates, evaluations, checkpoints and files, from the start or from where it was interrupted.

Several processes that share a training all call `train`, or `resume`, with the same arguments and a folder that all
see.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import jax
import numpy as np

from simengine_training import checkpoint, curve
from simengine_training.arguments import Arguments
from simengine_training.curve import Picture, Row, RowFile
from simengine_training.errors import TrainingError
from simengine_training.folder import (
    POLICY,
    check_shared,
    evaluated_policy,
    read_summary,
    write_policy,
    write_summary,
    writing,
)
from simengine_training.iteration import Report, TrainState
from simengine_training.numpy_policy import NumpyPolicy
from simengine_training.processes import agreed, failing_together, gathered, is_first
from simengine_training.programs import Programs
from simengine_training.rows import evaluation_row, update_row

OnRow = Callable[[Row], None]
_AT_FIRST = "name another folder, or make room there and start the training again"
_LATER = "make room there, then resume the training"


@dataclass(frozen=True)
class Result:
    """The result of a training, or of a piece of one.

    Attributes:
        folder: folder with all files of the training.
        finished: whether the training is done; if not, `resume` goes on with it.
        policy: the best policy so far.
        rows: the learning curve, a row for each update.
        evaluations: a row for each evaluation.
        summary: the contents of `summary.json`.
        seconds: time from the start of the training to its end, over all its pieces.
    """

    folder: Path
    finished: bool
    policy: NumpyPolicy
    rows: list[Row]
    evaluations: list[Row]
    summary: dict[str, Any]
    seconds: float


def train(
    arguments: Arguments,
    folder: str | Path,
    on_row: OnRow | None = None,
    *,
    max_seconds: float | None = None,
    began: float | None = None,
) -> Result:
    """Train a new policy.

    Args:
        arguments: arguments of the training.
        folder: folder for all files, which is made if it does not exist.
        on_row: called with each row of the curve, and with each row of an evaluation.
        max_seconds: time after which the training stops with a checkpoint, to be resumed; None for no limit.
        began: `time.perf_counter()` at the start, from which times count; None for now.

    Raises:
        TrainingError: the folder holds a training or cannot be written, the environment cannot be made, or the loss is
            not finite.
    """
    folder = Path(folder)
    began = perf_counter() if began is None else began
    with failing_together():
        if is_first():
            if (folder / "summary.json").exists():
                raise TrainingError(f"{folder} already holds a training; resume it, or name another folder")
            with writing(folder, _AT_FIRST):
                folder.mkdir(parents=True, exist_ok=True)
        agreed(None)
        programs = Programs(arguments)
        if is_first():
            with writing(folder, _AT_FIRST):
                write_summary(folder, {"arguments": arguments.as_dict(), "finished": False})
        agreed(None)
        check_shared(folder)
        run = _Run(programs, folder, programs.first_state(), 0, began)
        return run.finish(on_row, max_seconds)


def resume(
    folder: str | Path, on_row: OnRow | None = None, *, max_seconds: float | None = None, began: float | None = None
) -> Result:
    """Go on with an interrupted training from its newest checkpoint. The result has the bits of an uninterrupted one.

    A training that was interrupted before its first checkpoint starts again. For the arguments see `train`.

    Raises:
        TrainingError: the folder holds no training, or one that is finished; also as for `train`.
    """
    folder = Path(folder)
    began = perf_counter() if began is None else began
    with failing_together():
        summary = agreed(read_summary(folder) if is_first() else None)
        if summary["finished"]:
            raise TrainingError(f"the training in {folder} is finished; start another one in another folder")
        check_shared(folder)
        programs = Programs(Arguments(**summary["arguments"]))
        state, updates = None, 0
        if checkpoint.exists(folder):
            state, updates = checkpoint.restore(folder, programs.shapes)
        if updates != (chosen := agreed(updates)):
            raise TrainingError(
                f"the newest checkpoint that this process reads in {folder} has {updates} updates, that of the first "
                f"process {chosen}; all processes must see the same files"
            )
        whole = programs.first_state() if state is None else programs.on_devices(state)
        return _Run(programs, folder, whole, updates, began).finish(on_row, max_seconds)


def finished(folder: str | Path) -> Result:
    """The result of a finished training.

    Raises:
        TrainingError: the folder holds no training, or one that is not finished.
    """
    folder, summary = Path(folder), read_summary(folder)
    if not summary["finished"]:
        raise TrainingError(f"the training in {folder} is not finished; resume it")
    rows, evaluations, times = (curve.read_csv(folder / f"{name}.csv") for name in ("curve", "evaluations", "times"))
    seconds = times[-1]["seconds"] if times else 0.0
    return Result(folder, True, NumpyPolicy.load(folder), rows, evaluations, summary, seconds)


class _Run:
    """A running training: its state, and the rows so far. They are the same in all processes; one writes the files."""

    def __init__(self, programs: Programs, folder: Path, state: TrainState, updates: int, began: float):
        self.programs, self.arguments, self.folder = programs, programs.arguments, folder
        self.state, self.updates = state, updates
        names = ("curve", "evaluations", "times")
        with writing(folder, _LATER):
            self.curve, self.evaluations, self.times = (
                RowFile(folder / f"{name}.csv", updates, is_first()) for name in names
            )
        earlier = self.times.rows[-1]["seconds"] if self.times.rows else 0.0
        self.began = began - earlier
        self.piece_began = began
        self.best = max((row["return_mean"] for row in self.evaluations.rows), default=-np.inf)
        self.on_row: OnRow | None = None
        self.picture = Picture(folder / "curve.png", f"{self.arguments.env_id}, seed {self.arguments.seed}")

    def finish(self, on_row: OnRow | None, max_seconds: float | None) -> Result:
        """Do the remaining updates, or as many as the time allows."""
        self.on_row = on_row
        with writing(self.folder, _LATER):
            with self.picture:
                finished = self._updates(max_seconds)
            return self._conclude(finished)

    def _updates(self, max_seconds: float | None) -> bool:
        """Do updates, and return whether the training is done."""
        arguments, pending = self.arguments, None
        while self.updates < arguments.num_updates and not self._reached():
            self.state, report = self.programs.iterate(self.state)
            self.updates += 1
            # the numbers of the update before are read while this one runs
            self._record(pending)
            pending = self.updates, report
            late = max_seconds is not None and agreed(perf_counter() - self.piece_began > max_seconds)
            due = self.updates % arguments.checkpoint_every == 0 or self.updates == arguments.num_updates
            if due or late:
                self._record(pending)
                pending = None
                self._checkpoint(evaluate=due)
            if late:
                return self.updates == arguments.num_updates or self._reached()
        return True

    def _reached(self) -> bool:
        """Whether an evaluation has reached the return at which the training stops."""
        target = self.arguments.target_return
        return target is not None and self.best >= target

    def _record(self, pending: tuple[int, Report] | None) -> None:
        """Write the row of an update."""
        if pending is None:
            return
        row = update_row(jax.device_get(pending[1]), pending[0], self.arguments, self.curve.rows)
        self.curve.append(row)
        self._tell(row)

    def _tell(self, row: Row) -> None:
        seconds = round(perf_counter() - self.began, 3)
        self.times.append({"update": row["update"], "evaluation": int("return_std" in row), "seconds": seconds})
        if self.on_row:
            self.on_row(row | {"seconds": seconds})

    def _checkpoint(self, evaluate: bool) -> None:
        """Evaluate the policy if it is time to, keep it if it is the best, and write a checkpoint."""
        if evaluate and self.arguments.eval_episodes:
            self._evaluate()
        state = gathered(self.state)
        if not is_first():
            return
        if not self.evaluations.rows:
            write_policy(self.folder / POLICY, self.programs.policy(self.state))  # the latest one is as good as any
        checkpoint.save(self.folder, state, self.updates)
        self.picture.draw(self.curve.rows, self.evaluations.rows)

    def _evaluate(self) -> None:
        own = evaluation_row(self.programs.evaluate(self.state), self.updates, self.arguments) if is_first() else None
        row: Row = agreed(own)
        self.evaluations.append(row)
        best, self.best = self.best, max(self.best, row["return_mean"])
        if is_first():
            policy = self.programs.policy(self.state)
            write_policy(evaluated_policy(self.folder, self.updates), policy)
            if self.best > best:
                write_policy(self.folder / POLICY, policy)
        self._tell(row)

    def _conclude(self, finished: bool) -> Result:
        summary: dict[str, Any] = {
            "arguments": self.arguments.as_dict(),
            "finished": finished,
            "observation_size": self.programs.network.observation_size,
            "action_size": self.programs.network.action_size,
            "updates": self.updates,
            "env_steps": self.updates * self.arguments.batch_size,
        }
        if self.evaluations.rows:
            summary["best"] = max(self.evaluations.rows, key=lambda row: row["return_mean"])
            summary["last"] = self.evaluations.rows[-1]
        if is_first():
            write_summary(self.folder, summary)
        agreed(None)
        return Result(
            self.folder,
            finished,
            NumpyPolicy.load(self.folder),
            self.curve.rows,
            self.evaluations.rows,
            summary,
            perf_counter() - self.began,
        )
