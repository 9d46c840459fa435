"""Films of worlds that step: frames go to an `.mp4` or a `.gif` as they are drawn."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from simengine.cli.options.errors import UsageError
from simengine.cli.options.settings import positive
from simengine.cli.recordings.video import View, grid

_FPS = {".mp4": View().fps, ".gif": 25}
_CODING = {
    ".mp4": ["-c:v", "libx264", "-pix_fmt", "yuv420p"],
    # a palette for each frame, so that no frame waits for the others
    ".gif": ["-filter_complex", "split[a][b];[a]palettegen=stats_mode=single[p];[b][p]paletteuse=new=1"],
}
_MOST_FPS = 50  # of a GIF; viewers slow down what is faster


def add_film_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a film."""
    size = View().size
    parser.add_argument("--video", metavar="FILE", type=Path, help="make a film, FILE.mp4 or FILE.gif")
    parser.add_argument("--fps", type=positive, help="frames a second of the film (default: 30, of a GIF 25)")
    parser.add_argument(
        "--size",
        type=positive,
        nargs=2,
        metavar=("WIDTH", "HEIGHT"),
        help=f"pixels of the whole picture (default: {size[0]} {size[1]})",
    )


def film_view(options: argparse.Namespace) -> View:
    """Return how the film is to look.

    Raises:
        UsageError: a film cannot have this name, this size or this number of frames.
    """
    path: Path = options.video
    if path.suffix not in _FPS:
        raise UsageError(f"the film {str(path)!r} is neither .mp4 nor .gif; give a name that ends so")
    fps, size = options.fps or _FPS[path.suffix], tuple(options.size or View().size)
    if path.suffix == ".gif" and fps > _MOST_FPS:
        raise UsageError(f"viewers of GIFs slow down {fps} frames a second; give --fps {_MOST_FPS} or less")
    if path.suffix == ".mp4" and (size[0] % 2 or size[1] % 2):
        raise UsageError(f"--size {size[0]} {size[1]} is odd; give even numbers, which the encoder needs")
    return View(fps, size, options.camera or "")


class Film:
    """A film, which appears under its name when it is complete.

    Args:
        path: the file, `.mp4` or `.gif`.
        view: how it looks.
        count: number of worlds, which are shown as a grid.

    Attributes:
        cell: width and height of the picture of a world [pixels].
        frames: number of frames so far.

    Raises:
        ValueError: the worlds do not fit into the picture.
    """

    def __init__(self, path: Path, view: View, count: int):
        self.columns, rows = grid(count)
        self.cell = view.size[0] // self.columns, view.size[1] // rows
        if min(self.cell) < 1:
            raise ValueError(f"{count} worlds do not fit into {view.size} pixels; give a larger --size")
        self.frames = 0
        self._path, self._view = path, view
        self._part = path.with_name(f".{path.stem}.part{path.suffix}")
        self._encoder: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        from imageio_ffmpeg import get_ffmpeg_exe

        self._path.parent.mkdir(parents=True, exist_ok=True)
        width, height = self._view.size
        given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(self._view.fps), "-i", "-"]
        command = [get_ffmpeg_exe(), "-loglevel", "error", "-y", *given, *_CODING[self._path.suffix], str(self._part)]
        # imageio's own writer forks, of which JAX warns; this does not.
        self._encoder = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._encoder is not None
        try:
            _, said = self._encoder.communicate()
            if kind is None or issubclass(kind, BrokenPipeError):
                self._conclude(said.decode(errors="replace"))
        finally:
            self._part.unlink(missing_ok=True)

    def _conclude(self, said: str) -> None:
        """Give the film its name. Raises RuntimeError if the encoder has failed."""
        assert self._encoder is not None
        if self._encoder.returncode:
            reason = " ".join(said.split()) or f"exit code {self._encoder.returncode}"
            raise RuntimeError(f"ffmpeg could not write {str(self._path)!r} ({reason}); try another name or size")
        self._part.replace(self._path)

    def due(self, time: float) -> bool:
        """Whether a frame is due at a time of the worlds [s], of which one second is one second of the film."""
        return self.frames <= time * self._view.fps + 1e-6

    def add(self, pictures: Sequence[np.ndarray], time: float) -> None:
        """Add what the worlds look like at a time [s], as often as frames are due.

        Args:
            pictures: picture of each world, (height, width, 3) uint8 of the size `cell`.
            time: time since the start of the film [s].
        """
        width, height = self.cell
        whole = np.zeros((self._view.size[1], self._view.size[0], 3), np.uint8)
        for index, picture in enumerate(pictures):
            row, column = divmod(index, self.columns)
            whole[row * height : (row + 1) * height, column * width : (column + 1) * width] = picture
        assert self._encoder is not None, "a film is written within its `with` block"
        assert self._encoder.stdin is not None
        while self.due(time):
            self._encoder.stdin.write(whole.tobytes())
            self.frames += 1
