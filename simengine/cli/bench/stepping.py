"""`simengine bench stepping`: physics steps per second, beside those of MuJoCo on the same cores in the same run."""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

from rich.table import Table

from simengine import Model, load_model
from simengine.cli.options.settings import EXECUTOR_CHOICES, add_batch_options, positive, resolve
from simengine.cli.results.machine import result_header
from simengine.cli.results.output import console
from simengine.cli.results.result_file import write_json
from simengine.cli.simulations import oracle, stepping
from simengine.cli.simulations.controls import random_controls
from simengine.cli.simulations.rollout import MujocoRollout
from simengine_scheduler.executors.processors import usable_processors

COMMAND = "bench stepping"
DEFAULTS: dict[str, Any] = {
    "model": ["ant"],
    "worlds": [64, 512],
    "executors": ["auto"],
    "backend": "auto",
    "dtype": "float32",
    "seed": 0,
    "warmup": 200,
    "steps": 500,
    "repeats": 3,
    "mujoco": False,
}
SAMPLE = 64  # number of worlds that are compared with MuJoCo


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "stepping",
        help="physics steps a second, beside MuJoCo's",
        description="Every repeat starts from the state that the warm-up left, so that all time the same physics; the "
        "median counts. With --mujoco each repeat is followed by mujoco.rollout from that state with those controls.",
    )
    parser.add_argument("--model", nargs="+", help="models: short names or files")
    parser.add_argument("--worlds", nargs="+", type=positive, help="batch sizes")
    parser.add_argument("--executors", nargs="+", choices=EXECUTOR_CHOICES, help="how kernel calls are executed")
    parser.add_argument("--warmup", type=positive, help="steps before the measurement")
    parser.add_argument("--steps", type=positive, help="steps measured in each repeat")
    parser.add_argument("--repeats", type=positive, help="repeats, of which the median counts")
    parser.add_argument(
        "--mujoco", action="store_true", default=None, help="measure mujoco.rollout on the same cores too"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the result there too; - prints it alone")
    add_batch_options(parser)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command. The exit code is 1 if the results differ from MuJoCo's."""
    settings = resolve(options, COMMAND, DEFAULTS, "stepping")
    models = {name: load_model(name) for name in settings.model}  # refuses an unknown name before any measurement
    only_json = str(options.json) == "-"
    result = {"benchmark": "stepping", **result_header("simengine " + shlex.join(sys.argv[1:])), "rows": []}
    for name, model in models.items():
        for worlds in settings.worlds:
            for executor in settings.executors:
                print(f"{name}, {worlds} worlds, executor {executor}", file=sys.stderr)
                result["rows"].append({"model": name, **_measure(model, worlds, executor, settings)})
    if not only_json:
        _print(result["rows"])
    write_json(result, options.json)
    return 0 if all(row["agrees"] for row in result["rows"]) else 1


def _measure(model: Model, worlds: int, executor: str, settings: SimpleNamespace) -> dict[str, Any]:
    began = perf_counter()
    sim = stepping.build(model, settings, worlds, executor)
    controls = random_controls(model, worlds, settings.seed)
    sets = stepping.on_backend(sim, controls)
    stepping.step(sim, sets, 1)
    row: dict[str, Any] = {
        "worlds": worlds,
        "backend": sim.backend,
        "dtype": sim.dtype,
        "steps": settings.steps,
        "repeats": settings.repeats,
        "first_step_s": round(perf_counter() - began, 3),
    }
    stepping.step(sim, sets, settings.warmup)
    row["executor"] = sim.schedule.executor  # `auto` has chosen by now
    qpos, qvel = stepping.on_host(sim.qpos), stepping.on_host(sim.qvel)
    ours, theirs = [], []
    with ExitStack() as stack:
        peer = stack.enter_context(MujocoRollout(model, usable_processors())) if settings.mujoco else None
        for _ in range(settings.repeats):
            sim.set_state(qpos=qpos, qvel=qvel)
            ours.append(stepping.step(sim, sets, settings.steps))
            if peer:
                theirs.append(peer.seconds(qpos, qvel, controls, settings.steps))
    seconds = statistics.median(ours)
    work = worlds * settings.steps
    row |= {
        "steps_per_s": round(work / seconds),
        "us_per_step": round(1e6 * seconds / settings.steps, 1),
        "spread": round((max(ours) - min(ours)) / seconds, 3),
        "all_steps_per_s": [round(work / taken) for taken in ours],
        "kernels_per_step": len(sim.schedule.kernel_list),
    }
    if theirs:
        their_seconds = statistics.median(theirs)
        row |= {
            "peer": f"{MujocoRollout.name}, {usable_processors()} threads, float64",
            "peer_steps_per_s": round(work / their_seconds),
            "all_peer_steps_per_s": [round(work / taken) for taken in theirs],
            "ratio": round(their_seconds / seconds, 3),
        }
    agreement = oracle.compare(sim, controls[0], SAMPLE)
    sim.close()
    errors = {"qacc_error": agreement.qacc, "step_error": max(agreement.qpos, agreement.qvel)}
    return {**row, **errors, "checked_worlds": agreement.worlds, "agrees": agreement.agrees}


def _print(rows: list[dict[str, Any]]) -> None:
    table = Table("model", "worlds", "backend, executor", "steps/s", "us a step", "calls a step", "first step [s]")
    if any("ratio" in row for row in rows):
        table.add_column("MuJoCo steps/s", justify="right")
        table.add_column("ratio", justify="right")
    table.add_column("qacc error")
    for row in rows:
        cells = [row["model"], str(row["worlds"]), f"{row['backend']}, {row['executor']}", f"{row['steps_per_s']:,}"]
        cells += [f"{row['us_per_step']:,}", str(row["kernels_per_step"]), str(row["first_step_s"])]
        if "ratio" in row:
            cells += [f"{row['peer_steps_per_s']:,}", f"{row['ratio']:.2f}"]
        table.add_row(*cells, f"{row['qacc_error']:.1e}" + ("" if row["agrees"] else " DIFFERS"))
    console().print(table)
