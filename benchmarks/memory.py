"""Bytes of a world, and the largest batches: `python -m benchmarks.memory --json out/memory.json`.

Batches grow from 8192 worlds on until the engine refuses one, which it does before it allocates anything, or
until memory ends. Each batch is stepped, so that its memory for contacts and rows has grown to what its states need.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from simengine import BackendError, Model, Simulation
from simengine.cli.bench.peers.models import chosen_models
from simengine.cli.results.machine import result_header
from simengine.cli.results.result_file import write_json

Row = dict[str, Any]


def measure(model: Model, worlds: int, backend: str, steps: int) -> Row:
    """Return the bytes of a world before and after steps, and the speed of these.

    Raises:
        BackendError: there is too little memory.
    """
    with Simulation(model, worlds, backend=backend) as sim:
        needs = sim.groups[0].footprint()
        sim.step(steps)
        sim.synchronize()
        began = perf_counter()
        sim.step(steps)
        sim.synchronize()
        seconds = perf_counter() - began
        return {
            "planned_bytes_per_world": round(needs.at_first / worlds),
            "bytes_per_world": round(sim.nbytes() / worlds),
            "gib": round(sim.nbytes() / 2**30, 3),
            "steps_per_s": round(worlds * steps / seconds),
        }


def grow(model: Model, backend: str, steps: int, sizes: Iterable[int]) -> Iterator[Row]:
    """Measure batches of growing sizes until one does not fit. The last row says why it ended."""
    for worlds in sizes:
        row: Row = {"worlds": worlds}
        try:
            row |= measure(model, worlds, backend, steps)
        except (BackendError, MemoryError) as error:
            row["error"] = " ".join(str(error).split())[:300]
        yield row
        if "error" in row:
            return


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure models in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["ant", "unitree_g1", "humanoid"])
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--first", type=int, default=8192)
    parser.add_argument("--most", type=int, default=2**26)
    parser.add_argument("--times", type=int, default=2, help="by how much batches grow")
    parser.add_argument("--robots-dir", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    command = shlex.join(["python", "-m", "benchmarks.memory", *(sys.argv[1:] if arguments is None else arguments)])
    sizes = [options.first]
    while sizes[-1] * options.times <= options.most:
        sizes.append(sizes[-1] * options.times)
    rows: list[Row] = []
    for name in options.models:
        (found,), _ = chosen_models([name], [], options.robots_dir)
        for row in grow(Model(found.mj), options.backend, options.steps, sizes):
            rows.append({"model": name, **row})
            print(rows[-1], flush=True)
            write_json({"benchmark": "memory", **result_header(command), "rows": rows}, options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
