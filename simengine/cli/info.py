"""`simengine info`: what can run here, what a model consists of, and the plan of its step."""

from __future__ import annotations

import argparse
from typing import Any

from rich.table import Table

from simengine import Model, Simulation, load_model
from simengine.backends.select import BACKENDS, available_backends
from simengine.cli.options.errors import UsageError
from simengine.cli.options.settings import positive, presets_of
from simengine.cli.results.machine import hardware, versions
from simengine.cli.results.output import console
from simengine.cli.results.result_file import as_json
from simengine.loading import model_names
from simengine_scheduler.native.cache import cache_dir

SIZES = ("nq", "nv", "nu", "nbody", "njnt", "ngeom", "ncand")


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("info", help="backends, versions, and what a model is made of")
    parser.add_argument("model", nargs="?", help="a model's short name, or an MJCF file")
    parser.add_argument("--worlds", type=positive, default=512, help="worlds whose memory to reckon (default 512)")
    parser.add_argument("--plan", action="store_true", help="print how a step of so many worlds is executed")
    parser.add_argument("--backend", choices=["auto", *BACKENDS], default="auto", help="backend of the plan")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    facts: dict[str, Any] = {
        "hardware": hardware(),
        "versions": versions(),
        "backends": available_backends(),
        "kernel_cache": str(cache_dir()),
        "presets": {"run": presets_of("run"), "bench": [*presets_of("bench stepping"), *presets_of("bench scheduler")]},
        "models": model_names(),
    }
    if options.plan and not options.model:
        raise UsageError("--plan needs a model; name one, for example `simengine info ant --plan`")
    if options.plan:
        with Simulation(options.model, num_worlds=options.worlds, backend=options.backend) as sim:
            plan = sim.schedule.plan()
        print(as_json(plan.facts()) if options.json else plan)
        return 0
    if options.model:
        facts["model"] = _model_facts(load_model(options.model), options.worlds)
    if options.json:
        print(as_json(facts))
    else:
        _print(facts)
    return 0


def _model_facts(model: Model, worlds: int) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": model.name,
        "sizes": {name: int(model.table.sizes[name]) for name in SIZES},
        "integrator": model.table.opt_integrator,
        "timestep": model.opt.timestep,
        "nefc_max": model.table.nefc_max,
    }
    sim = Simulation(model, num_worlds=1)
    facts["backend"] = sim.backend
    if sim.backend != "jax":
        sim.step()
        facts["calls"] = list(dict.fromkeys(call.name for call in sim.schedule.kernel_list))
        needs = sim.groups[0].footprint(worlds)
        facts["bytes"] = {**needs._asdict(), "at_first": needs.at_first, "at_most": needs.at_most}
    sim.close()
    return facts


def _print(facts: dict[str, Any]) -> None:
    table = Table(show_header=False)
    for name, value in facts["hardware"].items():
        table.add_row(name, str(value))
    table.add_row("versions", ", ".join(f"{name} {version}" for name, version in facts["versions"].items()))
    for name, reason in facts["backends"].items():
        table.add_row(f"backend {name}", f"not here: {reason}" if reason else "available")
    table.add_row("compiled kernels", facts["kernel_cache"])
    for command, names in facts["presets"].items():
        table.add_row(f"presets of {command}", ", ".join(names))
    table.add_row("models by name", ", ".join(facts["models"]))
    if "model" in facts:
        _add_model(table, facts["model"])
    console().print(table)


def _add_model(table: Table, model: dict[str, Any]) -> None:
    table.add_section()
    table.add_row("model", model["name"])
    table.add_row("sizes", ", ".join(f"{name} {size}" for name, size in model["sizes"].items()))
    table.add_row("time step", f"{model['timestep']} s, {model['integrator']}")
    table.add_row("constraint rows", f"at most {model['nefc_max']} in a world")
    if "calls" in model:
        table.add_row(f"calls of the first step on {model['backend']}", ", ".join(model["calls"]))
        needs = model["bytes"]
        world = needs["world"] + needs["scratch"]
        each = f"{world:,} bytes a world, {needs['contact']:,} a contact, {needs['row']:,} a row of constraints"
        table.add_row("memory, float32", each)
        first, most = (needs[name] / 2**20 for name in ("at_first", "at_most"))
        table.add_row(f"{needs['worlds']:,} worlds", f"{first:,.1f} MiB at first, at most {most:,.1f} MiB")
