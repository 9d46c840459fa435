"""`simengine play`: watch a policy in a window, or film it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

import mujoco
import numpy as np
from rich.table import Table

from simengine.cli.options.errors import UsageError
from simengine.cli.options.settings import BACKEND_CHOICES, positive
from simengine.cli.policies.trained import TrainedPolicy, add_policy_argument, read_policy, seed_number
from simengine.cli.recordings.film import Film, add_film_options, film_view
from simengine.cli.recordings.video import camera_number, has_display, require_renderer
from simengine.cli.results.output import console, progress_bar
from simengine.cli.results.result_file import as_json
from simengine_envs.camera import followed_body
from simengine_training.evaluate import FIRST_SEED, make_worlds

if TYPE_CHECKING:
    from simengine_envs import BatchEnv

WORLDS = 4  # of a film
_LATE = 0.5  # seconds after which a window that is late gives up catching up


class Played(NamedTuple):
    """What was shown.

    Attributes:
        steps: steps of each world.
        returns: returns of the episodes that have ended, in the order of their ends.
    """

    steps: int
    returns: list[float]


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "play",
        help="watch a policy in a window, or film it",
        description="Shows episodes with the most likely actions, in real time. A window shows one world until it is "
        "closed. A film shows several, until each has done its episodes; worlds that are done earlier begin again.",
    )
    add_policy_argument(parser)
    add_film_options(parser)
    parser.add_argument("--camera", help="a camera of the model, by name or number (default: the task's own view)")
    parser.add_argument("--worlds", type=positive, help=f"worlds of a film (default: {WORLDS})")
    parser.add_argument("--episodes", type=positive, help="episodes of each world (default: 1 in a film)")
    parser.add_argument("--steps", type=positive, help="end after this many steps of each world")
    parser.add_argument(
        "--seed", type=seed_number, default=FIRST_SEED, help=f"seed of the first world (default: {FIRST_SEED})"
    )
    parser.add_argument("--backend", choices=BACKEND_CHOICES, help="backend of simengine (default: auto)")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command. A window ends when it is closed."""
    _check(options)
    trained = read_policy(options.run, options.imports)
    frames = None
    if options.video is None:
        played = _in_window(trained, options)
    else:
        played, frames = _filmed(trained, options)
    _report(trained, options, played, frames)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Raise UsageError if an option does not fit the film or the window."""
    if options.video is not None:
        film_view(options)
        return
    for name in ("fps", "size", "worlds"):
        if getattr(options, name) not in (None, 1):
            raise UsageError(f"--{name} belongs to a film; give --video FILE.mp4 too")


def _opens_windows() -> bool:
    """Whether the viewer can open a window here. It would end the process where it cannot."""
    probe = "import glfw, sys; sys.exit(not glfw.init())"
    return (
        has_display() and not subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False).returncode
    )


def _worlds(trained: TrainedPolicy, count: int, options: argparse.Namespace, **drawing: Any) -> BatchEnv:
    from simengine_envs import BatchEnv

    engine = {"backend": options.backend} if options.backend else {}
    found = make_worlds(trained.env_id, count, {**trained.env_arguments, **engine, **drawing})
    assert isinstance(found, BatchEnv), "read_policy refuses other environments"
    return found


def play(
    vector: BatchEnv,
    trained: TrainedPolicy,
    options: argparse.Namespace,
    episodes: int | None,
    show: Callable[[int], bool],
) -> Played:
    """Step worlds under a policy.

    Args:
        vector: the worlds, in autoreset mode SAME_STEP.
        trained: the policy.
        options: the parsed options, of which `seed` and `steps` are used.
        episodes: end when each world has done so many; None for no such end.
        show: is called with the number of steps, at the start and after each step; it returns whether to go on.
    """
    observations, _ = vector.reset(seed=options.seed)
    totals, done, returns = np.zeros(vector.num_envs), np.zeros(vector.num_envs, int), list[float]()
    step, more = 0, show(0)
    while more and step != options.steps:
        observations, rewards, terminated, truncated, _ = vector.step(trained.policy(observations))
        step += 1
        totals += rewards
        ended = terminated | truncated
        counted = ended if episodes is None else ended & (done < episodes)
        returns.extend(totals[counted].tolist())
        done += ended
        totals[ended] = 0
        if episodes is not None and (done >= episodes).all():
            break
        more = show(step)
    return Played(step, returns)


def _filmed(trained: TrainedPolicy, options: argparse.Namespace) -> tuple[Played, int]:
    """Make the film, and return what it shows and its number of frames."""
    require_renderer()
    if not has_display():
        os.environ.setdefault("MUJOCO_GL", "egl")
    view, count, episodes = film_view(options), options.worlds or WORLDS, options.episodes
    if episodes is None and options.steps is None:
        episodes = 1
    film = Film(options.video, view, count)
    camera: dict[str, Any] = {}
    if view.camera:
        camera = {"camera_id": int(view.camera)} if view.camera.isdecimal() else {"camera_name": view.camera}
    width, height = film.cell
    vector = _worlds(trained, count, options, render_mode="rgb_array", width=width, height=height, **camera)
    try:
        for model in getattr(vector, "models", None) or (vector.model,):
            camera_number(model, view.camera)
        most = _most_steps(vector, trained, options, episodes)
        with film, progress_bar(f"{trained.env_id}: steps", most) as advance:

            def show(step: int) -> bool:
                time = step * vector.dt
                if film.due(time):
                    film.add(vector.render(), time)
                advance(1 if step else 0)
                return True

            return play(vector, trained, options, episodes, show), film.frames
    finally:
        vector.close()


def _most_steps(vector: BatchEnv, trained: TrainedPolicy, options: argparse.Namespace, episodes: int | None) -> int:
    """Number of steps after which a film ends at the latest. Raises UsageError if it might not end."""
    one = getattr(vector.pure, "parts", (vector.pure,))[0]
    ends: list[int] = [options.steps] if options.steps else []
    if episodes is not None and one.max_episode_steps is not None:
        ends.append(episodes * one.max_episode_steps)
    if not ends:
        raise UsageError(f"episodes of {trained.env_id} have no time limit; give --steps, after which the film ends")
    return min(ends)


def _in_window(trained: TrainedPolicy, options: argparse.Namespace) -> Played:
    """Show one world in MuJoCo's viewer. Raises UsageError if no window can be opened."""
    if not _opens_windows():
        raise UsageError("there is no display here for a window; give --video FILE.mp4 or FILE.gif to make a film")
    import mujoco.viewer

    vector = _worlds(trained, 1, options)
    number = camera_number(vector.model, options.camera or "")
    data = mujoco.MjData(vector.model)
    with mujoco.viewer.launch_passive(vector.model, data, show_left_ui=False, show_right_ui=False) as viewer:
        _aim(viewer.cam, number, vector.model, vector.task.default_camera_config or {})
        began = perf_counter()

        def show(step: int) -> bool:
            nonlocal began
            with viewer.lock():
                data.qpos[:], data.qvel[:] = (vector.runner.host(name)[0] for name in ("qpos", "qvel"))
                mujoco.mj_forward(vector.model, data)
            viewer.sync()
            early = began + step * vector.dt - perf_counter()
            if early < -_LATE:
                began -= early
            sleep(max(early, 0.0))
            return bool(viewer.is_running())

        return play(vector, trained, options, options.episodes, show)


def _aim(camera: mujoco.MjvCamera, number: int, model: mujoco.MjModel, config: Any) -> None:
    """Aim the viewer's camera as a camera of the model, or for -1 as the task does, at a robot that walks away."""
    if number >= 0:
        camera.type, camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, number
        return
    for name, value in config.items():
        if isinstance(value, np.ndarray):
            getattr(camera, name)[:] = value
        else:
            setattr(camera, name, value)
    body = followed_body(model, config)
    if body is not None:
        camera.type, camera.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, body


def _report(trained: TrainedPolicy, options: argparse.Namespace, played: Played, frames: int | None) -> None:
    facts: dict[str, Any] = {
        "policy": str(trained.path),
        "env_id": trained.env_id,
        "seed": options.seed,
        "steps": played.steps,
        "episodes": len(played.returns),
        "return_mean": round(float(np.mean(played.returns)), 3) if played.returns else None,
    }
    if frames is not None:
        facts |= {"worlds": options.worlds or WORLDS, "frames": frames, "video": str(options.video)}
    if options.json:
        print(as_json(facts))
        return
    table = Table(title=trained.env_id, show_header=False)
    table.add_row("shown", f"{played.steps:,} steps of each world")
    if played.returns:
        ends = f"mean return {facts['return_mean']:,.1f} of {facts['episodes']}"
        table.add_row("episodes that ended", ends)
    if frames is not None:
        table.add_row("film", f"{frames} frames of {facts['worlds']} worlds in {options.video}")
    console().print(table)
