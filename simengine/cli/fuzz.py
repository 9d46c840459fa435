"""`simengine fuzz`: compare models drawn and mutated at random with MuJoCo."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from simengine.cli.options.errors import UsageError
from simengine.cli.options.settings import BACKEND_CHOICES, DTYPES, positive
from simengine.cli.results.machine import result_header
from simengine.cli.results.output import console
from simengine.cli.results.result_file import write_json
from simengine.fuzz import FuzzReport, fuzz, read, replay

_SECONDS = 60
_PERIOD = 10.0  # seconds between results so far, which are what a run that is stopped leaves


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("fuzz", help="compare models drawn and mutated at random with MuJoCo")
    parser.add_argument("files", nargs="*", type=Path, help="compare these files of a corpus instead, with their seeds")
    parser.add_argument("--seconds", type=positive, help=f"draw models for so long (default: {_SECONDS})")
    parser.add_argument("--models", type=positive, help="draw so many models (default: as many as the time permits)")
    parser.add_argument("--states", type=positive, default=6, help="states for each model and precision (default: 6)")
    parser.add_argument("--seed", type=int, default=0, help="equal seeds draw equal models")
    parser.add_argument("--backend", choices=BACKEND_CHOICES, default="host", help="default: host")
    parser.add_argument("--dtype", choices=(*DTYPES, "both"), default="both", help="default: both")
    parser.add_argument("--corpus", type=Path, default=Path("out/fuzz"), help="folder of failing models, out/fuzz")
    parser.add_argument("--limit", type=positive, help="seconds that a model may take (default: 120; 600 on jax)")
    parser.add_argument("--jobs", type=positive, default=1, help="processes side by side (default: 1)")
    parser.add_argument("--json", type=Path, help="file for the result; - for standard output")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command. The exit code is 0 if nothing is unexplained, 1 if something is."""
    for file in options.files:
        if not file.is_file():
            raise UsageError(f"there is no model at {str(file)!r}; give files that simengine fuzz wrote")
    dtypes = ("float64", "float32") if options.dtype == "both" else (options.dtype,)
    how: dict[str, Any] = {
        "backend": options.backend,
        "dtypes": dtypes,
        "states": options.states,
        "limit": options.limit,
    }
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    # Without a terminal, a progress bar would fill a log with lines.
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("models")
        written = time.monotonic()

        def progress(report: FuzzReport) -> None:
            nonlocal written
            bar.update(task, description=_so_far(report))
            if options.json not in (None, Path("-")) and time.monotonic() - written > _PERIOD:
                written = time.monotonic()
                _write(options, report, complete=False)

        how["progress"] = progress
        if options.files:
            report = replay([read(file) for file in options.files], **how)
        else:
            both_missing = options.seconds is None and options.models is None
            seconds = _SECONDS if both_missing else options.seconds
            how |= {"seconds": seconds, "models": options.models, "seed": options.seed}
            report = fuzz(**how, corpus=options.corpus, jobs=options.jobs)
    _write(options, report, complete=True)
    if options.json != Path("-"):
        _print(report)
    return 0 if report.passed else 1


def _write(options: argparse.Namespace, report: FuzzReport, *, complete: bool) -> None:
    write_json({**result_header(_command(options)), "complete": complete, **report.as_dict()}, options.json)


def _command(options: argparse.Namespace) -> str:
    parts = ["simengine fuzz", *map(str, options.files)]
    for name in ("seconds", "models", "states", "seed", "backend", "dtype", "jobs"):
        value = getattr(options, name)
        parts += [f"--{name} {value}"] if value is not None else []
    return " ".join(parts)


def _so_far(report: FuzzReport) -> str:
    count = sum(report.models.values())
    return f"{count} models, {report.states} states, {len(report.findings) + report.repeated} unexplained"


def _print(report: FuzzReport) -> None:
    out = console()
    table = Table(
        "what", "number", title=f"models on {report.backend} in {' and '.join(report.dtypes)}, against MuJoCo"
    )
    for kind, count in report.models.most_common():
        table.add_row(f"models: {kind}", str(count))
    for feature, count in report.refused.most_common():
        table.add_row(f"refused for: {feature}", str(count))
    table.add_row("states and steps compared", str(report.states))
    table.add_row("states and steps left out", str(report.left_out))
    table.add_row("values that rounding explains", str(sum(report.explained.values())))
    for name, error in sorted(report.worst.items(), key=lambda item: -item[1])[:8]:
        table.add_row(f"largest error of {name}", f"{error:.1e}")
    out.print(table)
    for finding in report.findings:
        out.print(f"{finding.kind}: {'; '.join(finding.reasons)}", soft_wrap=True)
        out.print(f"  repeat it with: {finding.repeat}", soft_wrap=True)
    more = f", and {report.repeated} more models that fail as these do" if report.repeated else ""
    verdict = "nothing is unexplained" if report.passed else f"{len(report.findings)} unexplained{more}"
    out.print(f"{_so_far(report)} in {report.seconds:.0f} s: {verdict}")
