"""`simengine bench scheduler`: measure kernel lists under every executor that can run them.

The results stand beside published figures of comparable systems.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from simengine.backends.select import available_backends
from simengine.cli.bench.published import PUBLISHED
from simengine.cli.bench.scheduler_report import add_ratios, means_of_five, plot_ratios, print_means, print_table
from simengine.cli.options.errors import UsageError
from simengine.cli.options.settings import add_batch_options, positive, resolve
from simengine.cli.results.machine import result_header
from simengine.cli.results.result_file import write_json
from simengine.cli.simulations.workloads import WORKLOADS, family, is_fixed, is_whole, make_workload
from simengine.errors import UnknownModelError
from simengine_scheduler import make_executor
from simengine_scheduler.study.bounds import Bound, bound_of
from simengine_scheduler.study.measure import SERIAL, Figures, Plan, measure
from simengine_scheduler.study.specs import Spec, offered
from simengine_scheduler.study.workloads import Workload

COMMAND = "bench scheduler"
_WARMUP = 20  # steps before the timed ones
DEFAULTS: dict[str, Any] = {
    "workloads": None,
    "executors": None,
    "backend": "auto",
    "dtype": "float32",
    "seed": 0,
    "seconds": 0.04,
    "steps": 60,
    "repeats": 3,
    "warmup": _WARMUP,
    "traces": 2,
    "on_fixed_lists": [],
    "on_whole_steps": None,
}
_FEWEST = 5  # a repeat has at least so many steps, however long they take


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "scheduler",
        help="kernel lists under every executor that can run them",
        description="Every executor takes a list through the same steps. A spec is a name with options, such as "
        "ant:worlds=8192,shards=2,emission=ahead or streams:completion=polling. The exit code is 1 if an executor "
        "failed, ran a list in an order that is not legal, or left other bits than serial.",
    )
    parser.add_argument("--workloads", nargs="+", metavar="SPEC", help=f"lists: {', '.join(WORKLOADS)}, or a model")
    parser.add_argument(
        "--executors", nargs="+", metavar="SPEC", help="executors, with fields of simengine_scheduler.Options"
    )
    parser.add_argument("--seconds", type=float, help="about how long a repeat takes under serial")
    parser.add_argument("--steps", type=positive, help="steps of a repeat at most")
    parser.add_argument("--repeats", type=positive, help="repeats, of which the median counts")
    parser.add_argument("--warmup", type=positive, help="steps before those that are timed")
    parser.add_argument("--traces", type=positive, help="steps that are recorded")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the result there too; - prints it alone")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="write a bar chart of the ratios to serial, as PNG")
    add_batch_options(parser)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command. The exit code is 1 if an executor failed, ran an illegal order or changed bits."""
    settings = resolve(options, COMMAND, DEFAULTS, "scheduler")
    if options.executors:
        settings.on_fixed_lists, settings.on_whole_steps = [], None  # an executor that is asked for is measured
    backend = _backend(settings.backend)
    workloads = _specs(settings.workloads, backend)
    executors = _executors(settings.executors, backend)
    result: dict[str, Any] = {"benchmark": "scheduler", **result_header("simengine " + shlex.join(sys.argv[1:]))}
    result |= {"backend": backend, "published": PUBLISHED}
    only_json = str(options.json) == "-"
    rows: list[dict[str, Any]] = []
    for found in _measured(workloads, executors, backend, settings):
        rows = add_ratios([*rows, *found])
        result |= {"means_of_five": means_of_five(rows), "rows": rows}
        if not only_json:
            write_json(result, options.json)  # saved after each list, because a later list may end the process
    if not only_json:
        print_table(rows)
        print_means(result["means_of_five"])
    else:
        write_json(result, options.json)
    if options.plot:
        plot_ratios(rows, options.plot)
    return 0 if rows and all(row["good"] for row in rows) else 1


def _backend(asked: str) -> str:
    """Return the backend to use. Raises UsageError if the one asked for cannot run kernel lists here."""
    reasons = available_backends()
    found = [name for name in ("cuda", "host") if not reasons[name] and asked in ("auto", name)]
    if not found:
        reason = reasons.get(asked) or f"backend {asked!r} has no executors to measure"
        raise UsageError(f"{reason}; give --backend cuda or host, whichever can run here")
    return found[0]


def _specs(given: Any, backend: str) -> list[Spec]:
    """Return the typed specs, or the preset's specs for the backend. Raises UsageError for an invalid spec."""
    try:
        return [Spec.parse(text) for text in (given[backend] if isinstance(given, dict) else given or ())]
    except ValueError as error:
        raise UsageError(str(error)) from error


def _executors(given: Any, backend: str) -> list[Spec]:
    """Return the executors, `serial` among them. An executor that cannot run here is left out if it is the preset's.

    Raises:
        UsageError: an executor that the user typed does not exist or cannot run here.
    """
    specs = _specs(given, backend)
    unknown = [reason for spec in specs if (reason := offered(spec))]
    if unknown and not isinstance(given, dict):
        raise UsageError(unknown[0])
    known = [spec for spec in specs if not offered(spec)]
    return known if SERIAL in known else [SERIAL, *known]


def _chosen(executors: Sequence[Spec], spec: Spec, settings: SimpleNamespace) -> list[Spec]:
    """Return the executors that the settings provide for a workload of this kind."""
    if is_whole(spec) and settings.on_whole_steps is not None:
        return [e for e in executors if str(e) in settings.on_whole_steps]
    return [e for e in executors if is_fixed(spec) or e.name not in settings.on_fixed_lists]


def _measured(
    workloads: Sequence[Spec], executors: Sequence[Spec], backend: str, settings: SimpleNamespace
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each workload: one for each executor, or a single one if the workload cannot be made."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # A log gets each list's name once, because a progress bar would fill it with lines.
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=len(workloads) * len(executors))
        for done, spec in enumerate(workloads):
            bar.update(task, description=f"{spec}", completed=done * len(executors))
            if not sys.stderr.isatty():
                print(spec, file=sys.stderr)
            head = {"workload": str(spec), "family": str(family(spec))}

            def tell(executor: str, spec: Spec = spec) -> None:
                bar.update(task, description=f"{spec}, {executor}", advance=1)

            chosen = _chosen(executors, spec, settings)
            try:
                found = _measure_workload(spec, chosen, backend, settings, tell)
            except (UsageError, UnknownModelError):
                raise
            except Exception as error:  # a failed list does not stop the others
                failed = Figures("", error=f"{type(error).__name__}: {error}")
                found = [{**failed.as_dict(), "good": False, "bound": None}]
            yield [{**head, **row} for row in found]


def _measure_workload(
    spec: Spec, executors: Sequence[Spec], backend: str, settings: SimpleNamespace, tell: Any
) -> list[dict[str, Any]]:
    workload = make_workload(spec, backend, settings.dtype, settings.seed)
    try:
        plan = Plan(settings.warmup, settings.steps, settings.repeats, settings.traces)
        plan = replace(plan, steps=_steps(workload, settings))
        bound = None if is_whole(spec) and backend == "host" else _bound(workload)
        common: dict[str, Any] = {"units": workload.units, "steps": plan.steps, "repeats": plan.repeats}
        common["bound"] = None if bound is None else bound.as_dict()
        return [
            {**common, **figures.as_dict(), "good": figures.good}
            for figures in measure(workload, executors, plan, tell)
        ]
    finally:
        with suppress(Exception):  # after a CUDA fault, which the rows report, closing fails
            workload.close()


def _bound(workload: Workload) -> Bound | None:
    """Return the bound of a workload, or None where it cannot be measured, as without graphs on a GPU."""
    try:
        return bound_of(workload)
    except RuntimeError:
        return None


def _steps(workload: Workload, settings: SimpleNamespace) -> int:
    """Return the number of steps with which a repeat takes about `settings.seconds`.

    It is a multiple of the workload's period, if this is not longer than a repeat may be. Otherwise one repeat might
    have what another has not: a birth, or lists of several steps that are new.
    """
    executor = make_executor("serial", **workload.options)
    workload.run(executor, _WARMUP)
    executor.synchronize()
    began = perf_counter()
    workload.run(executor, _FEWEST)
    executor.synchronize()
    each = (perf_counter() - began) / _FEWEST
    executor.close()
    steps = int(min(settings.steps, max(_FEWEST, settings.seconds / each)))
    most = settings.steps - settings.steps % workload.period
    return min(-(-steps // workload.period) * workload.period, most) or steps
