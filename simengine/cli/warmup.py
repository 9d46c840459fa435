"""`simengine warmup`: compiles the kernels of models, so that programs which step them start without compiling."""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import product
from typing import Any, NamedTuple

from rich.table import Table

from simengine import Model, Simulation, load_model
from simengine.backends.select import BACKENDS
from simengine.cli.options.settings import positive
from simengine.cli.results.output import console, progress_bar
from simengine.cli.results.result_file import as_json
from simengine_scheduler.native.cache import cache_dir

_WORLDS = (1, 512)


class _Case(NamedTuple):
    """A model in the form in which some number of worlds is stepped."""

    name: str
    model: Model
    worlds: int
    dtype: str


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("warmup", help="compile the kernels of models beforehand")
    parser.add_argument("models", nargs="+", metavar="MODEL", help="short names of models, or MJCF files")
    parser.add_argument("--worlds", type=positive, nargs="+", default=_WORLDS, help="as stepped later (1 and 512)")
    parser.add_argument("--backend", choices=["auto", *BACKENDS], default="auto")
    parser.add_argument("--dtype", choices=["float32", "float64"], nargs="+", default=["float32"])
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    models = {name: load_model(name) for name in options.models}
    cases = [
        _Case(name, model, worlds, dtype)
        for (name, model), worlds, dtype in product(models.items(), options.worlds, options.dtype)
    ]
    began = time.perf_counter()
    # one case compiles its kernels side by side, but few cases have as many as a machine has cores
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool, progress_bar("models", len(cases)) as advance:
        running = [pool.submit(_warm_up, case, options.backend) for case in cases]
        for done in as_completed(running):
            done.result()
            advance(1)
    rows = [work.result() for work in running]
    facts = {"seconds": round(time.perf_counter() - began, 3), "kernel_cache": str(cache_dir()), "models": rows}
    if options.json:
        print(as_json(facts))
        return 0
    table = Table("model", "worlds", "dtype", "backend", "seconds")
    for row in rows:
        table.add_row(row["model"], f"{row['worlds']:,}", row["dtype"], row["backend"], f"{row['seconds']:.1f}")
    console().print(table)
    console().print(f"{facts['seconds']:.1f} s; the kernels are in {facts['kernel_cache']}")
    return 0


def _warm_up(case: _Case, backend: str) -> dict[str, Any]:
    """Make a step and an evaluation, which compile all that later ones need."""
    began = time.perf_counter()
    with Simulation(case.model, case.worlds, backend=backend, dtype=case.dtype) as sim:
        sim.step(2)
        sim.forward()
        row = {"model": case.name, "worlds": case.worlds, "dtype": case.dtype, "backend": sim.backend}
    return {**row, "seconds": round(time.perf_counter() - began, 3)}
