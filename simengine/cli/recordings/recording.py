"""`Recording`: writes what worlds do to a trajectory file while they step, in bounded memory.

Frames are appended to plain files in a folder beside the output, `OUT.npz.part`. A checkpoint there holds the saved
state of all worlds, how many frames belong to it, and checksums, so that a run that was killed goes on from it. At the
end the files are joined into the trajectory file, and the folder is removed.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import IO, Any, Protocol

import mujoco
import numpy as np

import simengine
from simengine import Model, Simulation, to_host
from simengine.cli.options.errors import UsageError
from simengine.cli.recordings.interrupted import checksum, damaged, read_checkpoint, write_checkpoint
from simengine.cli.recordings.trajectory import STATE, model_bytes, write

_CHECKPOINT = "checkpoint.json"


class Recorded(Protocol):
    """Worlds of one model that are recorded while they step: a simulation, or an environment."""

    @property
    def model(self) -> Model:
        """The model."""

    @property
    def dtype(self) -> str:
        """The precision, "float32" or "float64"."""

    @property
    def backend(self) -> str:
        """The backend that runs."""

    @property
    def stride(self) -> int:
        """Number of steps of the physics in a step."""

    @property
    def about(self) -> dict[str, Any]:
        """Entries that the trajectory file has beside those of every run."""

    def frame(self, worlds: np.ndarray) -> dict[str, np.ndarray]:
        """The present time and state of some worlds, (worlds, ...) by name."""

    def taken(self, worlds: np.ndarray) -> dict[str, np.ndarray]:
        """What some worlds did in the last step, (rows, worlds, ...) by name. "ctrl" has `stride` rows, others one."""

    def save_state(self, path: Path) -> None:
        """Write everything on which later steps depend."""

    def load_state(self, path: Path) -> None:
        """Take up the state that `save_state` wrote. Later steps have the same bits."""


class RecordedSimulation:
    """A simulation of one model, to be recorded."""

    stride = 1

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self.model, self.dtype, self.backend = sim.model, sim.dtype, sim.backend
        self.about: dict[str, Any] = {}
        self.save_state, self.load_state = sim.save_state, sim.load_state

    def frame(self, worlds: np.ndarray) -> dict[str, np.ndarray]:
        """The present time and state of some worlds, (worlds, ...) by name."""
        return {"time": self._sim.time[worlds], **{name: self._chosen(name, worlds) for name in STATE}}

    def taken(self, worlds: np.ndarray) -> dict[str, np.ndarray]:
        """The controls of some worlds in the last step, (1, worlds, nu)."""
        return {"ctrl": self._chosen("ctrl", worlds)[None]}

    def _chosen(self, name: str, worlds: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(to_host(self._sim.field(name)[worlds]))


class Recording:
    """Records worlds.

    Args:
        recorded: the worlds, in their initial state.
        output: the trajectory file.
        worlds: the worlds to record.
        every: number of steps from one frame to the next.
        made_with: what the run was asked to do. A run goes on only with the same values.
        seconds: time between checkpoints [s].
        resume: whether to go on from a checkpoint, if there is one.

    Attributes:
        step: number of steps that have been recorded.

    Raises:
        UsageError: an interrupted run would be lost, or the checkpoint is that of another run.
    """

    def __init__(
        self,
        recorded: Recorded,
        output: Path,
        worlds: Sequence[int],
        every: int,
        made_with: dict[str, Any],
        seconds: float,
        resume: bool,
    ):
        self._recorded = recorded
        self._output = output
        self._folder = part_folder(output)
        self._worlds = np.array(worlds)
        self._every = every
        self._made_with = {**made_with, "simengine": simengine.__version__, "mujoco": mujoco.__version__}
        self._seconds = seconds
        self._state_file = ""
        self.step = self._frames = 0
        self._shapes: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        self._per_step: dict[str, int] = {}  # rows that a step adds to each entry that is no part of a frame
        for name, array in self._frame().items():
            self._shapes[name] = (array.dtype, array.shape)
        for name, array in recorded.taken(self._worlds).items():
            self._shapes[name] = (array.dtype, array.shape[1:])
            self._per_step[name] = len(array)
        self._sums = dict.fromkeys(self._shapes, 0)  # checksums of what has been written
        checkpoint = self._folder / _CHECKPOINT
        resumed = resume and checkpoint.exists()
        if resumed:
            self._go_on(read_checkpoint(checkpoint))
        self._folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            mode = "ab" if resumed else "wb"
            self._files: dict[str, IO[Any]] = {
                name: stack.enter_context(self._path(name).open(mode)) for name in self._shapes
            }
            self._open = stack.pop_all()
        self._saved_at = monotonic()
        if not resumed:
            self._append(self._frame())
            self._frames = 1

    def take(self) -> None:
        """Record the step that the worlds have just made. Write a checkpoint if it is time for one."""
        self._append(self._recorded.taken(self._worlds))
        self.step += 1
        if self.step % self._every == 0:
            self._append(self._frame())
            self._frames += 1
        if monotonic() - self._saved_at > self._seconds:
            self.save_checkpoint()

    def save_checkpoint(self) -> None:
        """Make everything recorded so far safe, and the state from which the run can go on."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        previous, self._state_file = self._state_file, f"state-{self.step}.npz"
        self._recorded.save_state(self._folder / self._state_file)
        reached = {"step": self.step, "frames": self._frames, "state": self._state_file}
        write_checkpoint(self._folder / _CHECKPOINT, {**reached, "checksums": self._sums, "made_with": self._made_with})
        if previous and previous != self._state_file:
            (self._folder / previous).unlink(missing_ok=True)
        self._saved_at = monotonic()

    def finish(self) -> None:
        """Write the trajectory file and remove everything else."""
        self._open.close()
        parts = {
            name: (self._path(name), dtype, (self._rows(name), *shape)) for name, (dtype, shape) in self._shapes.items()
        }
        recorded = self._recorded
        mj = recorded.model.mj
        about = {
            "engine_version": simengine.__version__,
            "mujoco_version": mujoco.__version__,
            "model_name": recorded.model.name,
            "model": model_bytes(mj),
            "dtype": recorded.dtype,
            "backend": recorded.backend,
            "timestep": mj.opt.timestep,
            "every": self._every * recorded.stride,
            "worlds": self._worlds,
            **recorded.about,
        }
        joined = self._folder / "joined.npz"
        write(joined, about, parts)
        joined.replace(self._output)
        (self._folder / _CHECKPOINT).unlink(missing_ok=True)  # first, since it is complete with all other files only
        shutil.rmtree(self._folder)

    def close(self) -> None:
        """Close the files. They remain if there is a checkpoint, and are removed otherwise."""
        self._open.close()
        if not self._state_file:
            shutil.rmtree(self._folder)

    def _go_on(self, checkpoint: dict[str, Any]) -> None:
        """Take up a checkpoint: remove what was recorded after it, and load the state."""
        for name, wanted in self._made_with.items():
            saved = checkpoint["made_with"].get(name)
            if saved != wanted:
                raise UsageError(
                    f"the interrupted run in {str(self._folder)!r} had {name} {saved!r} and this one has {wanted!r}; "
                    "give the same options, or remove that folder to start over"
                )
        self.step, self._frames = int(checkpoint["step"]), int(checkpoint["frames"])
        self._state_file = str(checkpoint["state"])
        for name, (dtype, shape) in self._shapes.items():
            nbytes = self._rows(name) * int(np.prod(shape)) * dtype.itemsize
            self._sums[name] = checksum(self._path(name), nbytes)
            if self._sums[name] != checkpoint["checksums"].get(name):
                raise damaged(self._path(name))
            os.truncate(self._path(name), nbytes)
        self._recorded.load_state(self._folder / self._state_file)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.bin"

    def _rows(self, name: str) -> int:
        """Number of rows of an entry that have been recorded."""
        return self.step * self._per_step[name] if name in self._per_step else self._frames

    def _frame(self) -> dict[str, np.ndarray]:
        """The present state of the recorded worlds, and the steps of the physics before it."""
        return {"step": np.array(self.step * self._recorded.stride), **self._recorded.frame(self._worlds)}

    def _append(self, arrays: dict[str, np.ndarray]) -> None:
        for name, array in arrays.items():
            data = array.tobytes()
            self._files[name].write(data)
            self._sums[name] = zlib.crc32(data, self._sums[name])


def part_folder(output: Path) -> Path:
    """Return the folder in which a run that writes `output` keeps what it has recorded."""
    return output.with_name(f"{output.name}.part")


def check_output(output: Path, resume: bool) -> None:
    """Raise UsageError if a run must not write `output`, because a result or an interrupted run would be lost."""
    if output.is_dir():
        raise UsageError(f"{str(output)!r} is a folder; give the name of a file")
    interrupted = (part_folder(output) / _CHECKPOINT).exists()
    if interrupted and not resume:
        raise UsageError(
            f"an interrupted run is in {str(part_folder(output))!r}; add --resume to go on with it, or remove that "
            "folder to start over"
        )
    if resume and not interrupted and output.exists():
        raise UsageError(f"{str(output)!r} is complete; there is nothing to resume, so leave out --resume")
