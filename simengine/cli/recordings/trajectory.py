"""Trajectory files: what worlds did in a run, as an archive that NumPy reads without simengine.

The entries of the archive are listed in `docs/guide/trajectories.md`.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import mujoco
import numpy as np

from simengine.files import UNREADABLE

FORMAT = 1
"""Version of the format. It rises when older versions could not read a file correctly."""

STATE = ("qpos", "qvel", "act", "mocap_pos", "mocap_quat", "qacc_warmstart")
"""Fields of each frame, (frames, worlds, ...)."""

_NPZ = b"PK"  # with which an archive begins
_ABOUT = ("engine_version", "mujoco_version", "model_name", "model", "dtype", "backend", "timestep", "every", "worlds")
_OF_FRAMES = ("step", "time", *STATE, "ctrl")
_OF_ENVIRONMENTS = ("action", "reward", "terminated", "truncated", "jumped")


Part: TypeAlias = tuple[Path, np.dtype[Any], tuple[int, ...]]
"""A file with the numbers of an entry, their type, and the shape of the entry."""


def model_bytes(model: mujoco.MjModel) -> np.ndarray:
    """Return a model as the contents of an `.mjb` file, (n,) uint8. It holds all assets."""
    buffer = np.zeros(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer


def write(path: Path, about: Mapping[str, Any], parts: Mapping[str, Part]) -> None:
    """Write a trajectory file, of which only a small part is in memory at any time.

    Equal contents give equal bytes.

    Args:
        path: the file to write.
        about: the entries that describe the run.
        parts: the entries of all frames, whose numbers are in C order.
    """
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in {"simengine_trajectory": FORMAT, **about}.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = zipfile.ZIP_DEFLATED if name == "model" else zipfile.ZIP_STORED
            with archive.open(info, "w") as entry:
                np.lib.format.write_array(entry, np.asarray(value), allow_pickle=False)
        for name, (source, dtype, shape) in parts.items():
            header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry, source.open("rb") as raw:
                np.lib.format.write_array_header_1_0(entry, header)
                shutil.copyfileobj(raw, entry, 2**20)


class Trajectory:
    """A trajectory file, in memory.

    Args:
        path: the file.

    Attributes:
        path: the file.
        arrays: all entries by name.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no trajectory, is damaged, or has a newer format.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = os.fspath(path)
        if not os.path.isfile(self.path):
            raise FileNotFoundError(f"no trajectory at {self.path!r}; give a file that `simengine run --save` wrote")
        foreign = f"{self.path!r} is no complete trajectory"
        try:
            with open(self.path, "rb") as file:
                if file.read(len(_NPZ)) != _NPZ:
                    raise ValueError("it is no .npz file")
                file.seek(0)
                self.arrays: dict[str, np.ndarray] = dict(np.load(file, allow_pickle=False))
        except UNREADABLE as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{foreign} ({reason}); give a file that `simengine run --save` wrote") from error
        form = self.arrays.get("simengine_trajectory", np.array(0))
        if not form.ndim and form.dtype.kind in "iu" and (found := int(form)) > FORMAT:
            raise ValueError(
                f"{self.path!r} was written by simengine {self.text('engine_version')} in format {found}, and this "
                f"version reads formats up to {FORMAT}; install that version or a later one"
            )
        for name in ("simengine_trajectory", *_ABOUT, *_OF_FRAMES):
            if name not in self.arrays:
                raise ValueError(f"{foreign}, because it lacks {name!r}; give a file that `simengine run --save` wrote")
        if flaw := _flaw(self.arrays):
            raise ValueError(f"{foreign}, because {flaw}; give a file that `simengine run --save` wrote")

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def text(self, name: str) -> str:
        """An entry that is a text."""
        return str(self.arrays.get(name, "unknown"))

    @property
    def num_frames(self) -> int:
        """Number of frames."""
        return len(self.arrays["step"])

    @property
    def num_worlds(self) -> int:
        """Number of recorded worlds."""
        return len(self.arrays["worlds"])

    @property
    def seconds(self) -> float:
        """Simulated time from the first frame to the last [s]."""
        step = self.arrays["step"]
        return float((step[-1] - step[0]) * self.arrays["timestep"])

    def jumps(self, frame: int, index: int) -> bool:
        """Whether a world's state at the next frame follows from more than the physics and the controls.

        That is so where an episode of an environment starts, or where its task changes the state or applies forces.

        Args:
            frame: index of the frame at the start of the interval.
            index: index of the world in `worlds`.
        """
        if "jumped" not in self.arrays:
            return False
        first, last = self.arrays["step"][[frame, frame + 1]] // int(self.arrays["frame_skip"])
        return bool(self.arrays["jumped"][first:last, index].any())

    def model(self) -> mujoco.MjModel:
        """The model. Raises ValueError if another version of MuJoCo compiled it, and this one cannot read it."""
        try:
            return mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": self.arrays["model"].tobytes()})
        except ValueError as error:
            raise ValueError(
                f"{self.path!r} holds a model of MuJoCo {self.text('mujoco_version')}, which MuJoCo "
                f"{mujoco.__version__} cannot read; install mujoco=={self.text('mujoco_version')}"
            ) from error

    def facts(self) -> dict[str, Any]:
        """What the file holds, for people and scripts."""
        environment = {"environment": self.text("environment")} if "environment" in self.arrays else {}
        return {
            "file": self.path,
            **environment,
            "model": self.text("model_name"),
            "recorded_worlds": self["worlds"].tolist(),
            "frames": self.num_frames,
            "steps": len(self["ctrl"]),
            "every": int(self["every"]),
            "timestep": float(self["timestep"]),
            "seconds": round(self.seconds, 9),
            "dtype": self.text("dtype"),
            "backend": self.text("backend"),
            "engine_version": self.text("engine_version"),
            "mujoco_version": self.text("mujoco_version"),
            "arrays": {
                name: list(self[name].shape) for name in (*_OF_FRAMES, *_OF_ENVIRONMENTS) if name in self.arrays
            },
        }

    def put(self, data: mujoco.MjData, frame: int, index: int) -> None:
        """Copy the state of a frame to MuJoCo's data.

        Args:
            data: data of the model.
            frame: index of the frame.
            index: index of the world in `worlds`.
        """
        data.time = self["time"][frame, index]
        for name in STATE:
            getattr(data, name)[...] = self[name][frame, index]


def _flaw(arrays: Mapping[str, np.ndarray]) -> str:
    """What makes the entries of an archive no trajectory; empty if nothing does."""
    frames, worlds = arrays["step"].size, arrays["worlds"].size
    shapes: dict[str, tuple[int, ...]] = {"simengine_trajectory": (), "timestep": (), "every": ()}
    shapes |= {"step": (frames,), "worlds": (worlds,), "time": (frames, worlds)}
    # the sizes that follow are those of the model
    shapes |= {name: (frames, worlds, *arrays[name].shape[2:]) for name in STATE}
    shapes |= {"ctrl": (*arrays["ctrl"].shape[:1], worlds, *arrays["ctrl"].shape[2:3])}
    for name, shape in shapes.items():
        if arrays[name].dtype.kind not in "iuf":
            return f"its entry {name!r} holds no numbers"
        if arrays[name].shape != shape:
            return f"its entry {name!r} has shape {arrays[name].shape}, where {shape} fits the others"
    return ""
