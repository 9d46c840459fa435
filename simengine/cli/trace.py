"""`simengine trace`: what one step launched, and what ran when."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from simengine import load_model
from simengine.cli import stepping
from simengine.cli.controls import random_controls
from simengine.cli.models import model_path
from simengine.cli.output import as_json
from simengine.cli.settings import EXECUTOR_CHOICES, add_batch_options, positive, resolve

DEFAULTS: dict[str, Any] = {
    "worlds": 512,
    "steps": 100,
    "executor": "auto",
    "backend": "auto",
    "dtype": "float32",
    "seed": 0,
}


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("trace", help="record one step: Chrome trace JSON and a timeline picture")
    parser.add_argument("model", help="a model's short name, or an MJCF file")
    parser.add_argument("--worlds", type=positive, help="worlds in the batch")
    parser.add_argument("--steps", type=positive, help="steps before the one that is recorded")
    parser.add_argument("--executor", choices=EXECUTOR_CHOICES, help="how kernel calls are executed")
    parser.add_argument(
        "--out", type=Path, default=Path("out"), help="folder for trace.json and trace.png (default: out)"
    )
    add_batch_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command; the exit code."""
    settings = resolve(options, "trace", DEFAULTS, None)
    model = load_model(model_path(options.model))
    sim = stepping.build(model, settings, settings.worlds, settings.executor)
    sets = stepping.on_backend(sim, random_controls(model, settings.worlds, settings.seed))
    stepping.step(sim, sets, settings.steps)
    trace = sim.trace()
    options.out.mkdir(parents=True, exist_ok=True)
    chrome, picture = options.out / "trace.json", options.out / "trace.png"
    trace.to_chrome(chrome)
    trace.plot(picture)
    summary = {
        "model": model.name,
        "worlds": settings.worlds,
        "backend": sim.backend,
        "executor": sim.executor,
        "calls": len(trace.events),
        "span_us": round(trace.span() * 1e6, 1),
        "concurrency": round(trace.concurrency(), 3),
        "idle_share": round(trace.idle_share(), 3),
        "chrome": str(chrome),
        "picture": str(picture),
    }
    if options.json:
        print(as_json(summary))
        return 0
    print(f"one step of {sim.num_worlds} worlds of {model.name} on {sim.backend}, executor {sim.executor}:")
    print(f"{summary['calls']} kernel calls in {summary['span_us']} us, {summary['concurrency']} at a time on average")
    print(f"{chrome} (open it in chrome://tracing or ui.perfetto.dev)\n{picture}")
    return 0
