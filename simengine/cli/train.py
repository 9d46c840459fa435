"""`simengine train`: PPO on a vector environment, with checkpoints and a learning curve."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from simengine.cli.environments import add_import_option, environment_id, import_modules
from simengine.cli.errors import UsageError
from simengine.cli.machine import result_header
from simengine.cli.output import console
from simengine.cli.result_file import as_json
from simengine.cli.settings import BACKEND_CHOICES, DTYPES, presets_of, resolve
from simengine_envs.registration import names
from simengine_training.arguments import Arguments

if TYPE_CHECKING:
    from simengine_training import Result

PLAIN = {
    entry.name: entry.default
    for entry in fields(Arguments)
    if entry.default is not MISSING and isinstance(entry.default, int | float | tuple)
}
DEFAULTS: dict[str, Any] = {"env_id": None, "backend": None, "dtype": None, **PLAIN}
PACKAGES = ("flax", "optax", "orbax-checkpoint")


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "train",
        help="train a policy with PPO",
        description="Writes summary.json, curve.csv, curve.png and checkpoints into the folder --out. The policy is "
        "evaluated before and after, in environments of its own, with its most likely actions.",
    )
    parser.add_argument("what", nargs="?", help=f"a preset ({', '.join(presets_of('train'))}) or an environment's id")
    parser.add_argument("--out", type=Path, default=Path("out/train"), help="folder for results (default: out/train)")
    parser.add_argument("--resume", metavar="FOLDER", type=Path, help="go on with the interrupted training in FOLDER")
    parser.add_argument("--backend", choices=BACKEND_CHOICES, help="backend of simengine's environments")
    parser.add_argument("--dtype", choices=DTYPES, help="precision of simengine's environments")
    group = parser.add_argument_group("the training")
    for name, default in PLAIN.items():
        _add_option(group, name, default)
    add_import_option(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.set_defaults(command=run)


def _add_option(group: Any, name: str, default: Any) -> None:
    """Add the option for one field of `Arguments`. An option that is not given is None."""
    flag, text = "--" + name.replace("_", "-"), Arguments.describe()[name]
    shown = " ".join(map(str, default)) if isinstance(default, tuple) else default
    text += f" (default: {shown})"
    if isinstance(default, bool):
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=text)
    elif isinstance(default, tuple):
        group.add_argument(flag, nargs="+", type=int, metavar="N", help=text)
    else:
        group.add_argument(flag, type=type(default), metavar="N" if isinstance(default, int) else "X", help=text)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if options.resume:
        _refuse_settings(options)
    elif not options.what:
        raise UsageError("name a preset or an environment's id, or give --resume FOLDER")
    import_modules(options.imports)
    arguments = None if options.resume else _arguments(options)
    # Flax takes a second to import. The other commands need not wait for it.
    from simengine_training import checkpoint, ppo

    if arguments is None:
        arguments = Arguments(**checkpoint.read_summary(options.resume)["arguments"])
    began = perf_counter()

    def work(on_update: Callable[[dict[str, float]], None]) -> Result:
        if options.resume:
            return ppo.resume(options.resume, on_update)
        return ppo.train(arguments, options.out, on_update)

    result = _with_bar(work, arguments)
    header = result_header("simengine " + shlex.join(sys.argv[1:]), PACKAGES)
    summary = {"folder": str(result.folder), **header, "seconds": round(perf_counter() - began, 1), **result.summary}
    summary["curve"] = result.rows
    if options.json:
        print(as_json(summary))
    else:
        _print(result, summary["seconds"])
    return 0


def _refuse_settings(options: argparse.Namespace) -> None:
    given = [name for name in DEFAULTS if getattr(options, name, None) is not None]
    if options.what or given:
        extra = [options.what] * bool(options.what) + ["--" + name.replace("_", "-") for name in given]
        raise UsageError(f"--resume goes on with the settings of the training in its folder; leave out {extra[0]}")


def _arguments(options: argparse.Namespace) -> Arguments:
    preset = options.what if options.what in presets_of("train") else None
    settings = resolve(options, "train", DEFAULTS, preset)
    values = {name: getattr(settings, name) for name in PLAIN}
    env_id = environment_id(settings.env_id or options.what, options.imports, any_kind=True)
    try:
        return Arguments(env_id=env_id, env_arguments=_engine_arguments(settings, env_id), **values)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from error


def _engine_arguments(settings: SimpleNamespace, env_id: str) -> dict[str, Any]:
    chosen = {name: getattr(settings, name) for name in ("backend", "dtype") if getattr(settings, name) is not None}
    if chosen and env_id not in names():
        raise UsageError(f"{env_id} is not one of simengine's environments and takes no --{next(iter(chosen))}")
    return chosen


def _with_bar(work: Callable[..., Result], arguments: Arguments) -> Result:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Without a terminal, a progress bar would fill a log with lines.
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("updates", total=arguments.num_updates)

        def on_update(row: dict[str, float]) -> None:
            seen = f"mean return {row['return_mean']:.1f}" if row["episodes"] else "no episode ended"
            bar.update(task, completed=int(row["update"]), description=f"updates, {seen}")

        return work(on_update)


def _print(result: Result, seconds: float) -> None:
    summary = result.summary
    table = Table(title=f"{summary['arguments']['env_id']}: {summary['env_steps']:,} steps", show_header=False)
    for name, label in (("before", "evaluated before"), ("after", "evaluated after")):
        found = summary[name]
        if found:
            table.add_row(
                label,
                f"mean return {found['return_mean']:.1f} +- {found['return_std']:.1f}, mean length "
                f"{found['length_mean']:.0f}, {found['episodes']} episodes",
            )
    seen = [row for row in result.rows if row["episodes"]]
    if seen:
        ends = f"{seen[0]['return_mean']:.1f} at first, {seen[-1]['return_mean']:.1f} at last"
        table.add_row("while training", f"mean return {ends}")
    table.add_row("time", f"{seconds:.1f} s, {summary['env_steps_per_s']:,} environment steps/s in the training itself")
    table.add_row("written to", f"{result.folder}: checkpoints, curve.csv, curve.png, summary.json")
    console().print(table)
