"""Videos of trajectories: MuJoCo's renderer draws the recorded worlds, side by side.

The pictures are drawn in a process of its own, because MuJoCo chooses how it reaches OpenGL when it is imported.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
from rich.console import Console
from rich.progress import track

from simengine.cli.options.errors import UsageError
from simengine.cli.options.settings import positive
from simengine.cli.recordings.trajectory import Trajectory
from simengine.errors import did_you_mean
from simengine_envs.tiling import MOST_DRAWN, drawn_worlds, grid, tiled

_OPTIONS = ("fps", "size", "camera", "video_worlds")


class View(NamedTuple):
    """How a video shows a trajectory.

    Attributes:
        fps: frames of a second, in which a simulated second passes.
        size: width and height of the picture with all worlds [pixels].
        camera: name or number of a camera of the model; "" for the free camera.
        video_worlds: most worlds that are drawn. Of more, some are drawn that are spread evenly.
    """

    fps: int = 30
    size: tuple[int, int] = (640, 480)
    camera: str = ""
    video_worlds: int = MOST_DRAWN


def add_video_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that make a video."""
    view = View()
    parser.add_argument("--video", metavar="FILE.mp4", type=Path, help="draw the recorded worlds as a video")
    parser.add_argument("--fps", type=positive, help=f"frames a second of the video (default {view.fps})")
    size = "x".join(map(str, view.size))
    parser.add_argument(
        "--size",
        type=positive,
        nargs=2,
        metavar=("WIDTH", "HEIGHT"),
        help=f"pixels of the whole picture (default {size})",
    )
    parser.add_argument("--camera", help="a camera of the model, by name or number (default: the free camera)")
    parser.add_argument(
        "--video-worlds",
        type=positive,
        metavar="N",
        help=f"draw at most N of the recorded worlds, spread evenly (default {view.video_worlds})",
    )


def view_of(options: argparse.Namespace) -> View:
    """Return the view that options ask for.

    Raises:
        UsageError: there is no video, or it cannot have this name, this size, or this machine.
    """
    given = {name: getattr(options, name) for name in _OPTIONS if getattr(options, name) is not None}
    if options.video is None:
        for name in given:
            raise UsageError(f"--{name.replace('_', '-')} belongs to a video; give --video FILE.mp4 too")
        return View()
    if options.video.suffix != ".mp4":
        raise UsageError(f"the video {str(options.video)!r} is no .mp4; give a name that ends so")
    view = View(**{**given, "size": tuple(given.get("size", View().size))})
    if view.size[0] % 2 or view.size[1] % 2:
        raise UsageError(f"--size {view.size[0]} {view.size[1]} is odd; give even numbers, which the encoder needs")
    return view


def camera_number(model: mujoco.MjModel, camera: str) -> int:
    """Return the number of a camera, or -1 for the free one. Raises UsageError if the model has no such camera."""
    names = [model.camera(i).name for i in range(model.ncam)]
    if not camera:
        return -1
    if camera in names:
        return names.index(camera)
    if camera.isdecimal() and int(camera) < model.ncam:
        return int(camera)
    known = ", ".join(repr(name) for name in names if name)
    offer = f"numbers 0 to {model.ncam - 1}{f' and names {known}' if known else ''}" if names else "none at all"
    raise UsageError(f"the model has no camera {camera!r}{did_you_mean(camera, filter(None, names))}; it has {offer}")


def require_renderer() -> None:
    """Raise an error if videos cannot be made here, before a run takes its time.

    Raises:
        RuntimeError: packages or OpenGL are missing.
    """
    missing = next((name for name in ("imageio", "imageio_ffmpeg") if find_spec(name) is None), None)
    if missing:
        raise RuntimeError(
            f"videos need the package {missing!r}, which is not installed; install what they need with: pip install "
            "'simengine[render]'"
        )
    probe = "import mujoco; mujoco.Renderer(mujoco.MjModel.from_xml_string('<mujoco/>'), 8, 8).render()"
    done = subprocess.run([sys.executable, "-c", probe], env=_environment(), capture_output=True, check=False)
    if done.returncode:
        chosen = _environment().get("MUJOCO_GL", "")
        raise RuntimeError(
            f"MuJoCo opens no off-screen OpenGL context with MUJOCO_GL={chosen!r}; install OpenGL, or set MUJOCO_GL to "
            "egl, osmesa or glfw"
        )


def make_video(trajectory: Path, video: Path, view: View) -> int:
    """Draw a trajectory as a video.

    Returns:
        The exit code: 0 if the video was made, else that of the process that draws, which has said why.

    Raises:
        RuntimeError: the process that draws was ended by a signal.
    """
    video.parent.mkdir(parents=True, exist_ok=True)
    task = json.dumps([str(trajectory), str(video), view._asdict()])
    drawn = subprocess.run(
        [sys.executable, "-m", "simengine.cli.recordings.video", task], env=_environment(), check=False
    )
    if drawn.returncode < 0:
        raise RuntimeError(
            f"signal {-drawn.returncode} ended the process that draws {str(video)!r}; try another MUJOCO_GL, such as "
            "osmesa"
        )
    return drawn.returncode


def has_display() -> bool:
    """Whether a window can be opened here."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _environment() -> dict[str, str]:
    """The environment of a process that draws. Without a window system it reaches OpenGL by EGL."""
    chosen = {} if has_display() or "MUJOCO_GL" in os.environ else {"MUJOCO_GL": "egl"}
    paths = os.pathsep.join(path for path in sys.path if path)  # the same packages as in this process
    return {**os.environ, **chosen, "PYTHONPATH": paths}


def frame_numbers(time: np.ndarray, fps: int) -> np.ndarray:
    """Return the recorded frame that each frame of a video shows.

    Args:
        time: time of each recorded frame, (frames,), ascending [s].
        fps: frames a second of the video.

    Returns:
        For each frame of the video the latest recorded one that is not later, (n,) int.
    """
    number = int(np.floor((time[-1] - time[0]) * fps + 1e-6)) + 1
    shown = time[0] + np.arange(number) / fps
    return np.clip(np.searchsorted(time, shown + 1e-9, side="right") - 1, 0, len(time) - 1)


def _draw(trajectory: Trajectory, video: Path, view: View) -> None:
    import imageio.v2 as imageio

    model = trajectory.model()
    camera = camera_number(model, view.camera)
    shown = drawn_worlds(trajectory.num_worlds, view.video_worlds)
    columns, rows = grid(len(shown))
    width, height = view.size[0] // columns, view.size[1] // rows
    if not width or not height:
        raise ValueError(f"{len(shown)} worlds do not fit into {view.size} pixels; give a larger --size")
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    data = mujoco.MjData(model)
    frames = frame_numbers(trajectory["step"] * float(trajectory["timestep"]), view.fps)
    part = video.with_name(f".{video.stem}.part.mp4")
    coding: dict[str, Any] = {"codec": "libx264", "macro_block_size": 2, "ffmpeg_log_level": "error"}
    try:
        with (
            mujoco.Renderer(model, height, width) as renderer,
            imageio.get_writer(part, format="FFMPEG", fps=view.fps, **coding) as opened,  # type: ignore[arg-type]
        ):
            writer: Any = opened  # its class is chosen by the format
            bar = Console(stderr=True)
            for frame in track(frames, "video", console=bar, transient=True, disable=not sys.stderr.isatty()):
                whole = np.zeros((view.size[1], view.size[0], 3), np.uint8)
                pictures = []
                for index in shown:
                    trajectory.put(data, frame, index)
                    mujoco.mj_fwdPosition(model, data)
                    renderer.update_scene(data, camera)
                    pictures.append(renderer.render())
                whole[: rows * height, : columns * width] = tiled(pictures)
                writer.append_data(whole)
        part.replace(video)
    finally:
        part.unlink(missing_ok=True)


def _main(task: str) -> int:
    source, video, view = json.loads(task)
    try:
        _draw(Trajectory(source), Path(video), View(**{**view, "size": tuple(view["size"])}))
    except (UsageError, OSError, RuntimeError, ValueError) as error:
        print(f"simengine: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
