"""`simengine evaluate`: the mean return of a policy, in simengine and in MuJoCo itself."""

from __future__ import annotations

import argparse
import math
import shlex
import sys
from time import perf_counter
from typing import Any

from rich.table import Table

from simengine.cli.options.errors import UsageError
from simengine.cli.options.settings import BACKEND_CHOICES, DTYPES, positive
from simengine.cli.policies.trained import TrainedPolicy, add_policy_argument, read_policy, seed_number
from simengine.cli.results.machine import result_header
from simengine.cli.results.output import console, progress_bar
from simengine.cli.results.result_file import as_json
from simengine_training.evaluate import ENGINES, FIRST_SEED, Evaluation, counterpart, evaluate

BOTH = "both"
EPISODES = 100


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "evaluate",
        help="measure the mean return of a policy, in simengine or in MuJoCo",
        description="Runs whole episodes with the most likely actions. In simengine each world runs one episode; in "
        "MuJoCo, Gymnasium's own environment of the same name runs them on several processes, in float64. Trainings "
        "never choose a policy by episodes with the default seeds.",
    )
    add_policy_argument(parser)
    parser.add_argument(
        "--in", dest="engine", choices=(*ENGINES, BOTH), default=ENGINES[0], help=f"default: {ENGINES[0]}"
    )
    parser.add_argument("--episodes", type=positive, default=EPISODES, help=f"whole episodes (default: {EPISODES})")
    parser.add_argument(
        "--seed",
        type=seed_number,
        default=FIRST_SEED,
        help=f"seed of the first episode; each has the next one (default: {FIRST_SEED})",
    )
    parser.add_argument("--threshold", type=_number, metavar="X", help="exit with 1 if a mean return is below X")
    parser.add_argument("--processes", type=positive, help="processes for MuJoCo (default: one on each core)")
    parser.add_argument("--backend", choices=BACKEND_CHOICES, help="backend of simengine (default: auto)")
    parser.add_argument("--dtype", choices=DTYPES, help="precision of simengine (default: float32)")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command. The exit code is 1 if a mean return is below the threshold."""
    engines = ENGINES if options.engine == BOTH else (options.engine,)
    _check(options, engines)
    trained = read_policy(options.run, options.imports)
    if "mujoco" in engines:
        _check_counterpart(trained.env_id)
    found, seconds = {}, {}
    for engine in engines:
        began = perf_counter()
        found[engine] = _evaluated(trained, engine, options)
        seconds[engine] = round(perf_counter() - began, 2)
    low = [engine for engine in engines if options.threshold is not None and found[engine].mean < options.threshold]
    if options.json:
        print(as_json(_result(trained, options, found, seconds)))
    else:
        _print(trained, options, found, seconds)
    if low:
        print(f"simengine: the mean return in {' and '.join(low)} is below {options.threshold:g}", file=sys.stderr)
    return 1 if low else 0


def _check(options: argparse.Namespace, engines: tuple[str, ...]) -> None:
    """Raise UsageError if an option has no meaning in the chosen engines."""
    belongs = {"processes": "mujoco", "backend": "simengine", "dtype": "simengine"}
    for name, engine in belongs.items():
        if getattr(options, name) is not None and engine not in engines:
            raise UsageError(f"--{name} belongs to episodes in {engine}; add --in {engine}, or leave it out")


def _check_counterpart(env_id: str) -> None:
    try:
        counterpart(env_id)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _evaluated(trained: TrainedPolicy, engine: str, options: argparse.Namespace) -> Evaluation:
    chosen = {name: getattr(options, name) for name in ("backend", "dtype") if getattr(options, name) is not None}
    with progress_bar(f"{trained.env_id} in {engine}: episodes", options.episodes) as advance:
        return evaluate(
            trained.policy,
            trained.env_id,
            options.episodes,
            engine=engine,
            seed=options.seed,
            env_arguments={**trained.env_arguments, **(chosen if engine == "simengine" else {})},
            processes=options.processes,
            on_episode=advance,
        )


def _difference(found: dict[str, Evaluation]) -> tuple[float, float] | None:
    """How much larger the mean in simengine is, and its standard error, both relative to the mean in MuJoCo.

    None unless there are both, and the mean in MuJoCo is not 0.
    """
    if len(found) < 2 or not found["mujoco"].mean:
        return None
    ours, theirs = found["simengine"], found["mujoco"]
    error = math.sqrt((ours.std**2 + theirs.std**2) / len(ours.returns))
    return (ours.mean - theirs.mean) / abs(theirs.mean), error / abs(theirs.mean)


def _result(
    trained: TrainedPolicy, options: argparse.Namespace, found: dict[str, Evaluation], seconds: dict[str, float]
) -> dict[str, Any]:
    result = {
        "policy": str(trained.path),
        **result_header("simengine " + shlex.join(sys.argv[1:])),
        "env_id": trained.env_id,
        "env_arguments": trained.env_arguments,
        "seed": options.seed,
        **{engine: {**each.as_dict(), "seconds": seconds[engine]} for engine, each in found.items()},
    }
    if difference := _difference(found):
        result |= {"relative_difference": difference[0], "relative_standard_error": difference[1]}
    if options.threshold is not None:
        reached = all(each.mean >= options.threshold for each in found.values())
        result |= {"threshold": options.threshold, "reached": reached}
    return result


def _print(
    trained: TrainedPolicy, options: argparse.Namespace, found: dict[str, Evaluation], seconds: dict[str, float]
) -> None:
    seeds = f"{options.seed} to {options.seed + options.episodes - 1}"
    table = Table(title=f"{trained.env_id}: {options.episodes} episodes with seeds {seeds}")
    table.add_column("")
    for engine in found:
        table.add_column(engine, justify="right")
    rows = {
        "mean return": "{return_mean:,.1f}",
        "standard deviation": "{return_std:,.1f}",
        "least return": "{return_min:,.1f}",
        "greatest return": "{return_max:,.1f}",
        "mean length": "{length_mean:,.1f} steps",
        "ended by the time limit": "{truncated:.0%}",
        "time": "{seconds:.1f} s",
    }
    for label, form in rows.items():
        cells = (form.format(**each.as_dict(), seconds=seconds[engine]) for engine, each in found.items())
        table.add_row(label, *cells)
    if difference := _difference(found):
        table.caption = (
            f"the mean in simengine is {difference[0]:+.1%} off MuJoCo's (standard error {difference[1]:.1%})"
        )
    console().print(table)


def _number(text: str) -> float:
    """Convert an argument to a number. Raises ArgumentTypeError if it is none."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return value
