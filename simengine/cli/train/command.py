"""`simengine train`: PPO on simengine's environments, with checkpoints, evaluations and a learning curve."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import MISSING, fields, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from simengine.cli.environments.ids import add_import_option, environment_id, import_modules, is_environment, modules_of
from simengine.cli.options.errors import UsageError
from simengine.cli.options.settings import BACKEND_CHOICES, DTYPES, presets_of, resolve
from simengine.cli.results.machine import result_header
from simengine.cli.results.output import console
from simengine.cli.results.result_file import as_json
from simengine.cli.train.jobs import Extras, Job, Limits, run_job
from simengine.cli.train.on_ray import add_ray_option, trainer_of
from simengine.cli.train.settings import typed_settings
from simengine.cli.train.table import listed, table_of
from simengine.errors import did_you_mean
from simengine_configs import load_suite
from simengine_training.arguments import Arguments

if TYPE_CHECKING:
    from simengine_training import Result

SUITE = "suite"
PLAIN = {
    entry.name: entry.default
    for entry in fields(Arguments)
    if entry.default is not MISSING and entry.name not in ("env_id", "env_arguments")
}
DEFAULTS: dict[str, Any] = {"env_id": None, "env": {}, "backend": None, "dtype": None, **PLAIN}
PACKAGES = ("optax",)
OUT_OF_TIME = 3  # exit code


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "train",
        help="train a policy with PPO",
        description="Writes the best policy, the learning curve, evaluations and checkpoints into a folder. Settings "
        "come from the preset, then from --config, then from NAME=VALUE and from options.",
    )
    add = parser.add_argument
    add("what", nargs="?", help="a preset (see --list), an environment's id, or 'suite' for all tasks of Gymnasium")
    add("settings", nargs="*", metavar="NAME=VALUE", help="a setting, such as gamma=0.995 or env.frame_skip=2")
    add("--list", action="store_true", help="list the presets")
    add("--config", metavar="FILE", type=Path, help="YAML file of settings")
    add("--out", type=Path, help="folder for results (default: out/train, and out/suite for the suite)")
    add("--resume", metavar="FOLDER", type=Path, help="go on with the interrupted training in FOLDER")
    add("--seeds", nargs="+", type=int, metavar="N", help="trainings with these seeds, in folders seedN of --out")
    add("--tasks", nargs="+", metavar="PRESET", help="the tasks of the suite that are trained")
    add(
        "--minutes",
        type=_minutes,
        metavar="X",
        help=f"stop after X minutes with exit code {OUT_OF_TIME}, to be resumed",
    )
    add("--tensorboard", action="store_true", help="write event files of TensorBoard, too")
    add("--videos", action="store_true", help="film each evaluated policy while the training goes on, in videos/")
    add("--backend", choices=BACKEND_CHOICES, help="backend of the environments")
    add("--dtype", choices=DTYPES, help="precision of the environments")
    group = parser.add_argument_group("settings of the training")
    for name, default in PLAIN.items():
        _add_option(group, name, default)
    add_import_option(parser)
    add_ray_option(parser)
    add("--json", action="store_true", help="print one JSON object and nothing else")
    parser.set_defaults(command=run)


def _minutes(text: str) -> float:
    """Convert an argument to a number of minutes. Raises ArgumentTypeError if it is none."""
    try:
        minutes = float(text)
    except ValueError:
        minutes = -1.0
    if not minutes >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of minutes; give a number of at least 0")
    return minutes


def _add_option(group: Any, name: str, default: Any) -> None:
    """Add the option for one field of `Arguments`. An option that is not given is None."""
    flag, text = "--" + name.replace("_", "-"), Arguments.describe()[name]
    text += f" (default: {' '.join(map(str, default)) if isinstance(default, tuple) else default})"
    if isinstance(default, bool):
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=text)
    elif isinstance(default, tuple):
        group.add_argument(flag, nargs="+", type=int, metavar="N", help=text)
    elif isinstance(default, str):
        group.add_argument(flag, metavar="NAME", help=text)
    else:
        kind = int if isinstance(default, int) else float
        group.add_argument(flag, type=kind, metavar="N" if kind is int else "X", help=text)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if options.list:
        console().print(listed())
        return 0
    limits = Limits(perf_counter(), None if options.minutes is None else 60 * options.minutes)
    jobs = _jobs(options)
    extras = Extras(options.tensorboard, options.videos, options.imports)
    results: list[tuple[Job, Result]] = []
    with trainer_of(options) as trainer:
        for job in jobs:
            if results and limits.left == 0.0:
                break
            # the times of the first training count from the start of the command
            began = perf_counter() if results else limits.began
            try:
                results.append((job, run_job(job, limits, began, extras, trainer)))
            except KeyboardInterrupt:
                if (job.folder / "summary.json").exists():
                    print(f"simengine: interrupted; to go on: {_going_on(job)}", file=sys.stderr)
                raise
    _tell(options, results, perf_counter() - limits.began)
    if len(results) == len(jobs) and all(result.finished for _, result in results):
        return 0
    how = _going_on(jobs[0])
    print(f"simengine: the time is over and the training is not finished; to go on: {how}", file=sys.stderr)
    return OUT_OF_TIME


def _going_on(job: Job) -> str:
    """What a user does to go on with an interrupted training."""
    return "call it again" if job.repeatable else f"simengine train --resume {job.folder}"


def _jobs(options: argparse.Namespace) -> list[Job]:
    """The trainings of a call."""
    if options.tasks and options.what != SUITE:
        raise UsageError("--tasks goes with 'suite'; leave it out")
    if options.resume:
        _refuse_settings(options)
        import_modules(options.imports)
        return [Job(options.resume.name, options.resume, None)]
    if not options.what:
        raise UsageError("name a preset or an environment's id, or give --resume FOLDER")
    if options.what == SUITE:
        out = options.out or Path("out/suite")
        return [job for task in _tasks(options.tasks) for job in _seeded(options, task, out / task, repeatable=True)]
    return _seeded(options, options.what, options.out or Path("out/train"), repeatable=bool(options.seeds))


def _tasks(chosen: list[str] | None) -> list[str]:
    suite = list(load_suite())
    for name in chosen or ():
        if name not in suite:
            raise UsageError(f"the suite has no task {name!r}{did_you_mean(name, suite)}; it has {', '.join(suite)}")
    return chosen or suite


def _seeded(options: argparse.Namespace, what: str, out: Path, repeatable: bool) -> list[Job]:
    """The trainings of one task, one for each seed."""
    arguments = _arguments(options, what)
    name = what.rpartition("/")[2]
    if options.videos and not arguments.eval_episodes:
        raise UsageError("--videos films policies that are evaluated, and eval_episodes is 0; leave out one of them")
    if not options.seeds:
        return [Job(name, out, arguments, repeatable)]
    if options.seed is not None:
        raise UsageError("--seeds and --seed exclude each other; leave out one")
    twice = next((seed for k, seed in enumerate(options.seeds) if seed in options.seeds[:k]), None)
    if twice is not None:
        raise UsageError(f"--seeds names {twice} twice; give each seed once")
    return [Job(f"{name} {seed}", out / f"seed{seed}", replace(arguments, seed=seed), True) for seed in options.seeds]


def _refuse_settings(options: argparse.Namespace) -> None:
    given = [name for name in (*DEFAULTS, "seeds", "config", "out") if getattr(options, name, None)]
    if options.what or given:
        extra = [options.what] * bool(options.what) + ["--" + name.replace("_", "-") for name in given]
        raise UsageError(f"--resume goes on with the settings of the training in its folder; leave out {extra[0]}")


def _arguments(options: argparse.Namespace, what: str) -> Arguments:
    preset = what if what in presets_of("train") else None
    typed = typed_settings(options, DEFAULTS)
    settings = vars(resolve(argparse.Namespace(**typed), "train", DEFAULTS, preset))
    env_id = settings.pop("env_id") or what
    engine = {name: value for name in ("backend", "dtype") if (value := settings.pop(name)) is not None}
    if not is_environment(env_id):
        names = presets_of("train")
        raise UsageError(f"there is no preset {env_id!r}{did_you_mean(env_id, names)}; see simengine train --list")
    options.imports = modules_of(env_id, options.imports)  # other processes of the training import them, too
    env_id = environment_id(env_id, options.imports)
    try:
        return Arguments(env_id=env_id, env_arguments={**settings.pop("env"), **engine}, **settings)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from error


def _tell(options: argparse.Namespace, results: list[tuple[Job, Result]], seconds: float) -> None:
    """Print what came out."""
    if not options.json:
        console().print(table_of([result for _, result in results], seconds))
        return
    header = result_header("simengine " + shlex.join(sys.argv[1:]), PACKAGES)
    trainings = [
        {
            "name": job.name,
            "folder": str(result.folder),
            **result.summary,
            "seconds": round(result.seconds, 1),
            "curve": result.rows,
            "evaluations": result.evaluations,
        }
        for job, result in results
    ]
    print(as_json({**header, "seconds": round(seconds, 1), "trainings": trainings}))
