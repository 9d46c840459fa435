"""`simengine run`: step a batch under random or given controls, report what happened, and record it.

Environments are run by `environments/run`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
from rich.table import Table

from simengine import Model, Simulation, load_model
from simengine.cli.environments.acting import add_acting_options, chosen_environment
from simengine.cli.environments.ids import add_import_option
from simengine.cli.options.keyframe import keyframe_of
from simengine.cli.options.settings import EXECUTOR_CHOICES, add_batch_options, positive, presets_of, resolve
from simengine.cli.recordings.recorded_run import RecordedRun, add_recording_options, digest
from simengine.cli.recordings.recording import RecordedSimulation
from simengine.cli.results.output import console, step_bar
from simengine.cli.results.result_file import as_json
from simengine.cli.simulations import oracle, stepping
from simengine.cli.simulations.controls import check_size, random_controls, read_controls

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
    parser = commands.add_parser("run", help="step a batch, record it, and check it against MuJoCo")
    parser.add_argument(
        "what",
        help=f"a preset ({', '.join(presets_of('run'))}), a model's short name, an MJCF file, or an environment's id",
    )
    parser.add_argument("--worlds", type=positive, help="worlds in the batch")
    parser.add_argument("--steps", type=positive, help="steps of each world")
    parser.add_argument("--executor", choices=EXECUTOR_CHOICES, help="how kernel calls are executed")
    add_batch_options(parser)
    parser.add_argument(
        "--ctrl",
        metavar="FILE.npy",
        type=Path,
        help="controls, (nu,), (steps, nu) or (steps, worlds, nu), in place of random ones",
    )
    parser.add_argument("--keyframe", metavar="NAME", help="name or number of the keyframe from which all worlds start")
    add_acting_options(parser)
    add_import_option(parser)
    add_recording_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command. The exit code is 1 if the results of a model differ from MuJoCo's."""
    preset = options.what if options.what in presets_of("run") else None
    settings = resolve(options, "run", DEFAULTS, preset)
    environment = chosen_environment(settings.model or options.what, options)
    if environment is not None:
        from simengine.cli.environments.run import run_environment  # it loads JAX, for which models need not wait

        return run_environment(options, settings, environment)
    model = load_model(settings.model or options.what)
    controls = _given_controls(options, settings, model)
    keyframe = keyframe_of(model, options.keyframe)
    given = {
        "--seed": None if options.ctrl else settings.seed,
        "--ctrl": digest(options.ctrl) if options.ctrl else None,
        "--keyframe": options.keyframe,
    }
    recorded = RecordedRun.asked(options, settings, model, given)
    began = perf_counter()
    sim = stepping.build(model, settings, settings.worlds, settings.executor)
    sets: Any = controls if controls is None else np.atleast_2d(controls)
    if controls is None:
        controls = random_controls(model, settings.worlds, settings.seed)
        sets = stepping.on_backend(sim, controls)
    stepping.step(sim, sets, 1)
    sim.reset(keyframe=keyframe)
    first_step = perf_counter() - began
    if recorded:
        elapsed = recorded.step(RecordedSimulation(sim), lambda number: sim.step(ctrl=sets[number % len(sets)]))
        if recorded.stopped:
            return recorded.explain()
    else:
        with step_bar(model.name, settings.steps) as advance:
            elapsed = stepping.step(sim, sets, settings.steps, advance)
    steps = recorded.steps_made if recorded else settings.steps
    summary = _summary(sim, settings.steps, steps, first_step, elapsed)
    first = np.broadcast_to(np.atleast_2d(controls)[0], (settings.worlds, model.nu))
    agreement = oracle.compare(sim, first, SAMPLE)
    code = 0
    if recorded:
        code = recorded.draw()
        summary |= recorded.facts
    if options.json:
        print(as_json({**summary, "mujoco": agreement.as_dict()}))
    else:
        _print(summary, agreement)
    return code or (0 if agreement.agrees else 1)


def _given_controls(options: argparse.Namespace, settings: SimpleNamespace, model: Model) -> np.ndarray | None:
    """Return the controls of a file; None if they are random. A file also gives the numbers of steps and worlds."""
    if options.ctrl is None:
        return None
    controls = read_controls(options.ctrl, model, settings.dtype)
    if controls.ndim > 1 and options.steps is None:
        settings.steps = len(controls)
    if controls.ndim == 3 and options.worlds is None:
        settings.worlds = controls.shape[1]
    check_size(options.ctrl, controls, settings.steps, settings.worlds)
    return controls


def _summary(sim: Simulation, steps: int, made: int, first_step: float, elapsed: float) -> dict[str, Any]:
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
        "steps_per_s": round(sim.num_worlds * made / elapsed) if elapsed else 0,
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
        ("speed", f"{summary['steps_per_s']:,} steps/s, added up over the worlds ({summary['seconds']:.2f} s)"),
        ("kernels a step", f"{summary['kernels_per_step']}, of all shards"),
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
    if "saved" in summary:
        table.add_row("trajectory", f"{summary['frames']} frames of {summary['recorded_worlds']} worlds")
        table.add_row("in", summary["saved"])
    if "video" in summary:
        table.add_row("video", summary["video"])
    if agreement.borderline:
        table.add_row("", f"{agreement.borderline} worlds at a contact's margin left out")
    console().print(table)
