"""`Recording`: writes what worlds do to a trajectory file while a simulation runs, in bounded memory.

Frames are appended to plain files in a folder beside the output, `OUT.npz.part`. A checkpoint there holds the saved
state of the simulation and how many frames belong to it, so that a run that was killed goes on from it. At the end the
files are joined into the trajectory file, and the folder is removed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import IO, Any

import mujoco
import numpy as np

import simengine
from simengine import Simulation, to_host
from simengine.cli.errors import UsageError
from simengine.cli.trajectory import STATE, model_bytes, write
from simengine.files import replaced

_CHECKPOINT = "checkpoint.json"


class Recording:
    """Records a simulation of one model.

    Args:
        sim: the simulation, in its initial state.
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
        sim: Simulation,
        output: Path,
        worlds: Sequence[int],
        every: int,
        made_with: dict[str, Any],
        seconds: float,
        resume: bool,
    ):
        self._sim = sim
        self._output = output
        self._folder = part_folder(output)
        self._worlds = np.array(worlds)
        self._every = every
        self._made_with = {**made_with, "simengine": simengine.__version__, "mujoco": mujoco.__version__}
        self._seconds = seconds
        self._state_file = ""
        self.step = self._frames = 0
        self._shapes: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        for name, array in {**self._frame(), "ctrl": self._chosen("ctrl")}.items():
            self._shapes[name] = (array.dtype, array.shape)
        checkpoint = self._folder / _CHECKPOINT
        resumed = resume and checkpoint.exists()
        if resumed:
            self._go_on(json.loads(checkpoint.read_text(encoding="utf-8")))
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
        """Record the step that the simulation has just made. Write a checkpoint if it is time for one."""
        self._append({"ctrl": self._chosen("ctrl")})
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
        self._sim.save_state(self._folder / self._state_file)
        entry = {"step": self.step, "frames": self._frames, "state": self._state_file, "made_with": self._made_with}
        with replaced(self._folder / _CHECKPOINT) as file:
            file.write(json.dumps(entry).encode())
        if previous and previous != self._state_file:
            (self._folder / previous).unlink(missing_ok=True)
        self._saved_at = monotonic()

    def finish(self) -> None:
        """Write the trajectory file and remove everything else."""
        self._open.close()
        rows = {name: self.step if name == "ctrl" else self._frames for name in self._shapes}
        parts = {name: (self._path(name), dtype, (rows[name], *shape)) for name, (dtype, shape) in self._shapes.items()}
        mj = self._sim.model.mj
        about = {
            "engine_version": simengine.__version__,
            "mujoco_version": mujoco.__version__,
            "model_name": self._sim.model.name,
            "model": model_bytes(mj),
            "dtype": self._sim.dtype,
            "backend": self._sim.backend,
            "timestep": mj.opt.timestep,
            "every": self._every,
            "worlds": self._worlds,
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
            rows = self.step if name == "ctrl" else self._frames
            nbytes = rows * int(np.prod(shape)) * dtype.itemsize
            if not self._path(name).exists() or self._path(name).stat().st_size < nbytes:
                raise ValueError(f"{str(self._path(name))!r} is damaged; remove its folder to start the run over")
            os.truncate(self._path(name), nbytes)
        self._sim.load_state(self._folder / self._state_file)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.bin"

    def _frame(self) -> dict[str, np.ndarray]:
        """The present state of the recorded worlds."""
        frame = {name: self._chosen(name) for name in STATE}
        return {"step": np.array(self.step), "time": self._sim.time[self._worlds], **frame}

    def _chosen(self, name: str) -> np.ndarray:
        return np.ascontiguousarray(to_host(self._sim.field(name)[self._worlds]))

    def _append(self, arrays: dict[str, np.ndarray]) -> None:
        for name, array in arrays.items():
            self._files[name].write(array.tobytes())


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
