"""`simengine trace`: record which calls a step launched, when they ran, and which fields they touched."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, get_args

from simengine import Simulation, load_model
from simengine.backends.select import available_backends
from simengine.cli.options.errors import UsageError
from simengine.cli.options.settings import add_batch_options, executor_spec, positive, resolve
from simengine.cli.results.result_file import as_json
from simengine.cli.simulations import stepping
from simengine.cli.simulations.controls import random_controls
from simengine.cli.simulations.workloads import FIVE, WORKLOADS, make_workload
from simengine_scheduler import Segments, Trace, make_executor
from simengine_scheduler.study.specs import Spec
from simengine_scheduler.tracing.access import AccessTable
from simengine_scheduler.tracing.events import By

DEFAULTS: dict[str, Any] = {
    "worlds": 512,
    "steps": 100,
    "executor": "auto",
    "backend": "auto",
    "dtype": "float32",
    "seed": 0,
}
LISTS = tuple(name for name in WORKLOADS if name not in FIVE)
"""Workloads whose name is not the name of a model."""

_SETTLING = 3  # number of steps before the recorded one, in which an executor prepares its calls


class Recorded(NamedTuple):
    """The trace of a step, and a description of what was stepped."""

    trace: Trace
    segments: Segments
    title: str
    facts: dict[str, Any]


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "trace",
        help="record one step: a file for Perfetto and a timeline picture",
        description="Records one step. In the picture arrows show which calls waited for which, and grey when none "
        "ran. The JSON file is for ui.perfetto.dev or chrome://tracing.",
    )
    parser.add_argument("model", help=f"a model's short name, an MJCF file, or a list: {', '.join(LISTS)}")
    parser.add_argument("--worlds", type=positive, help="worlds in the batch of a model")
    parser.add_argument("--steps", type=positive, help="steps before the one that is recorded")
    parser.add_argument(
        "--executor", metavar="SPEC", help="auto, or an executor with options, such as streams:completion=polling"
    )
    parser.add_argument("--by", choices=get_args(By), default="stream", help="what a row is (default: stream)")
    parser.add_argument(
        "--out", type=Path, default=Path("out"), help="folder for trace.json and trace.png (default: out)"
    )
    parser.add_argument(
        "--access", metavar="DIR", type=Path, help="write access.md and access.png there: which kernel touches what"
    )
    add_batch_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    settings = resolve(options, "trace", DEFAULTS, None)
    executor = executor_spec(settings.executor)
    spec = Spec.parse(options.model) if options.model.partition(":")[0] in WORKLOADS else Spec(options.model)
    of_model = not spec.options and spec.name not in LISTS
    if not of_model and (options.worlds or options.steps):
        raise UsageError(f"{options.model!r} is a list; write its size with it, such as pile:worlds=8,settle=50")
    step = _step_of_model(spec.name, executor, settings) if of_model else _step_of_list(spec, executor, settings)
    trace = step.trace
    options.out.mkdir(parents=True, exist_ok=True)
    chrome, picture = options.out / "trace.json", options.out / "trace.png"
    trace.to_chrome(chrome, step.segments, options.by)
    trace.plot(picture, step.segments, options.by)
    summary = {
        **step.facts,
        "executor": trace.executor,
        "calls": len(trace.events),
        "span_us": round(trace.span() * 1e6, 1),
        "concurrency": round(trace.concurrency(), 3),
        "idle_share": round(trace.idle_share(), 3),
        "chrome": str(chrome),
        "picture": str(picture),
    }
    written = [f"{chrome} (open it in ui.perfetto.dev or chrome://tracing)", str(picture)]
    if options.access:
        paths = _write_access(step, options.access)
        summary["access"] = paths
        written += paths
    if options.json:
        print(as_json(summary))
        return 0
    print(f"one step of {step.title} on {step.facts['backend']}, executor {trace.executor}:")
    print(f"{summary['calls']} kernel calls in {summary['span_us']} us, {summary['concurrency']} at a time on average")
    print("\n".join(written))
    return 0


def _step_of_model(name: str, executor: Spec, settings: SimpleNamespace) -> Recorded:
    """Record a step of a simulation, kernel by kernel. The simulation chooses its shards, emission and executor."""
    model = load_model(name)
    sim = Simulation(
        model,
        settings.worlds,
        backend=settings.backend,
        executor=executor.name,
        dtype=settings.dtype,
        executor_options={**stepping.seed_of(executor.name, settings.seed), **executor.options},
    )
    segments = sim.schedule.segments  # raises before any step on a backend without kernel lists
    sets = stepping.on_backend(sim, random_controls(model, settings.worlds, settings.seed))
    stepping.step(sim, sets, settings.steps)
    trace = sim.schedule.trace_step()
    sim.close()
    facts = {"model": model.name, "worlds": settings.worlds, "backend": sim.backend}
    return Recorded(trace, segments, f"{settings.worlds} worlds of {model.name}", facts)


def _step_of_list(spec: Spec, executor: Spec, settings: SimpleNamespace) -> Recorded:
    """Record a step of a workload, with the list that `simengine bench scheduler` measures."""
    reasons = available_backends()
    backend = settings.backend
    if backend == "auto":
        backend = "host" if reasons["cuda"] else "cuda"
    if backend not in ("host", "cuda"):
        raise UsageError(f"backend {backend!r} runs no kernel list, so it has no trace; use --backend host or cuda")
    workload = make_workload(spec, backend, settings.dtype, settings.seed)
    if executor.name == "auto":
        executor = Spec("threads" if backend == "host" else "streams")
    options = {**workload.options, **executor.options, "segments": workload.segments, "record": "times"}
    made = make_executor(executor.name, **options)
    for _ in range(_SETTLING + 1):
        trace = workload.run(made, 1)
    made.synchronize()
    made.close()
    workload.close()
    return Recorded(trace, workload.segments, str(spec), {"list": str(spec), "backend": backend})


def _write_access(step: Recorded, folder: Path) -> list[str]:
    """Write a table and a picture of which kernel touches which field, and return their paths."""
    table = AccessTable.of(step.trace.order, step.segments)
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "access.md", folder / "access.png"
    paths[0].write_text(table.to_markdown(), encoding="utf-8")
    table.plot(paths[1], f"one step of {step.title}")
    return [str(path) for path in paths]
