"""`simengine run`: step a batch under random controls and report what happened."""

from __future__ import annotations

import argparse
import sys
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from simengine import Simulation, load_model
from simengine.cli import oracle, stepping
from simengine.cli.controls import random_controls
from simengine.cli.output import console
from simengine.cli.result_file import as_json
from simengine.cli.settings import EXECUTOR_CHOICES, add_batch_options, positive, presets_of, resolve

DEFAULTS: dict[str, Any] = {
    "model": None,
    "worlds": 512,
    "steps": 500,
    "backend": "auto",
    "executor": "auto",
    "dtype": "float32",
    "seed": 0,
}
SAMPLE = 16  # number of worlds that are compared with MuJoCo
SEEN = 64  # number of worlds whose contacts are counted


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("run", help="step a batch under random controls and check it against MuJoCo")
    parser.add_argument(
        "what", help=f"a preset ({', '.join(presets_of('run'))}), a model's short name, or an MJCF file"
    )
    parser.add_argument("--worlds", type=positive, help="worlds in the batch")
    parser.add_argument("--steps", type=positive, help="steps of each world")
    parser.add_argument("--executor", choices=EXECUTOR_CHOICES, help="how kernel calls are executed")
    add_batch_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command. The exit code is 1 if the results differ from MuJoCo's."""
    preset = options.what if options.what in presets_of("run") else None
    settings = resolve(options, "run", DEFAULTS, preset)
    model = load_model(settings.model or options.what)
    began = perf_counter()
    sim = stepping.build(model, settings, settings.worlds, settings.executor)
    controls = random_controls(model, settings.worlds, settings.seed)
    sets = stepping.on_backend(sim, controls)
    stepping.step(sim, sets, 1)
    first_step = perf_counter() - began
    elapsed = _step_with_bar(sim, sets, settings.steps, model.name)
    summary = _summary(sim, settings.steps, first_step, elapsed)
    agreement = oracle.compare(sim, controls[0], SAMPLE)
    if options.json:
        print(as_json({**summary, "mujoco": agreement.as_dict()}))
    else:
        _print(summary, agreement)
    return 0 if agreement.agrees else 1


def _step_with_bar(sim: Simulation, sets: list[Any], steps: int, name: str) -> float:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Without a terminal, a progress bar would fill a log with lines.
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(f"{name}: steps", total=steps)
        return stepping.step(sim, sets, steps, lambda done: bar.advance(task, done))


def _summary(sim: Simulation, steps: int, first_step: float, elapsed: float) -> dict[str, Any]:
    calls = len(sim.schedule.kernel_list)
    sim.forward()
    contacts = [sim.contacts(world).ncon for world in oracle.spread(sim.num_worlds, SEEN)]
    return {
        "model": sim.model.name,
        "worlds": sim.num_worlds,
        "steps": steps,
        "backend": sim.backend,
        "executor": sim.schedule.executor,
        "executor_reason": sim.schedule.reason,
        "dtype": sim.dtype,
        "first_step_s": round(first_step, 3),
        "seconds": round(elapsed, 3),
        "steps_per_s": round(sim.num_worlds * steps / elapsed),
        "kernels_per_step": calls,
        "contacts_mean": round(float(np.mean(contacts)), 2),
        "contacts_max": max(contacts),
    }


def _print(summary: dict[str, Any], agreement: oracle.Agreement) -> None:
    table = Table(title=f"{summary['model']}: {summary['worlds']} worlds, {summary['steps']} steps", show_header=False)
    verdict = "agrees" if agreement.agrees else "DIFFERS"
    rows = (
        ("backend", f"{summary['backend']}, executor {summary['executor']}, {summary['dtype']}"),
        (f"why {summary['executor']}", summary["executor_reason"]),
        ("first step after", f"{summary['first_step_s']:.2f} s, compilation included"),
        ("speed", f"{summary['steps_per_s']:,} steps/s ({summary['seconds']:.2f} s)"),
        ("kernel calls a step", str(summary["kernels_per_step"])),
        (
            "contacts a world",
            f"mean {summary['contacts_mean']}, most {summary['contacts_max']} (of at most {SEEN} worlds, at the end)",
        ),
        (
            "against MuJoCo",
            f"{verdict} in {agreement.worlds} worlds with {agreement.contacts} contacts: worst relative error "
            f"qacc {agreement.qacc:.1e}, next qpos {agreement.qpos:.1e}, next qvel {agreement.qvel:.1e}",
        ),
    )
    for row in rows:
        table.add_row(*row)
    if agreement.borderline:
        table.add_row("", f"{agreement.borderline} worlds at a contact's margin left out")
    console().print(table)
