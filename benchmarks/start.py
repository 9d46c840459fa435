"""From the start of Python to the first step: `python -m benchmarks.start --json out/start.json`.

Each case is a process of its own. It starts cold, with an empty folder of compiled kernels, and then warm, with the
kernels that the cold one has left there. Before them a process imports the package, so that its bytecode is there, as
after an installation. A case has one model, or many in one batch: random robots by seed, or robots of public packages.
Times are wall-clock seconds: until Python has started and the package is imported, until the models are loaded, and
until the first step is done.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, time
from typing import Any

from simengine.cli.bench.robots import ROBOTS, missing
from simengine.cli.results.machine import result_header
from simengine.cli.results.result_file import write_json

Row = dict[str, Any]

_CACHES = ("SIMENGINE_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")

_CHILD_IMPORTS = "import simengine; import simengine.cli.bench.peers.models"

_CHILD = """
import sys, time
began, models, worlds, backend, folder = float(sys.argv[1]), sys.argv[2].split(","), *sys.argv[3:6]
import simengine
imported = time.time()
from pathlib import Path
from simengine.cli.bench.peers.models import chosen_models
found, _ = chosen_models(models, [], Path(folder) if folder else None)
models = [(simengine.Model(model.mj), int(worlds)) for model in found]
loaded = time.time()
sim = simengine.Simulation(models, backend=backend)
sim.step()
sim.synchronize()
stepped = time.time()
import json
print(json.dumps({"import_s": imported - began, "load_s": loaded - imported, "step_s": stepped - loaded}))
"""


def _with_bytecode() -> dict[str, str]:
    """The environment, in which Python keeps the bytecode of the modules that it imports."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def started(models: Sequence[str], worlds: int, backend: str, cache: str, folder: Path | None) -> Row:
    """Start a process that makes one step of a batch; returns its times [s].

    Raises:
        RuntimeError: the process failed.
    """
    environment = _with_bytecode() | dict.fromkeys(_CACHES, cache)
    given = [",".join(models), str(worlds), backend, str(folder or "")]
    began = perf_counter()
    answer = subprocess.run(
        [sys.executable, "-c", _CHILD, str(time()), *given],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = perf_counter() - began
    if answer.returncode:
        raise RuntimeError(f"a step of {', '.join(models)} failed: {answer.stderr.strip().splitlines()[-1]}")
    parts = json.loads(answer.stdout.strip().splitlines()[-1])
    return {
        "first_step_s": round(sum(parts.values()), 2),
        **{k: round(v, 2) for k, v in parts.items()},
        "whole_process_s": round(seconds, 2),
    }


def measure(name: str, models: Sequence[str], worlds: int, backend: str, folder: Path | None) -> list[Row]:
    """A cold start and a warm one."""
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for start in ("cold", "warm"):
            case = {"case": name, "models": len(models), "worlds_each": worlds, "start": start}
            rows.append(case | started(models, worlds, backend, cache, folder))
            print(rows[-1], flush=True)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the cases in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=["ant", "humanoid"], help="models that start alone")
    parser.add_argument("--random", type=int, nargs="*", default=[1, 100], help="numbers of random robots in one batch")
    parser.add_argument(
        "--robots", action="store_true", help="also all robots of public packages that are here, in one batch"
    )
    parser.add_argument("--worlds", type=int, default=64, help="worlds of each model")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--robots-dir", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    command = shlex.join(["python", "-m", "benchmarks.start", *(sys.argv[1:] if arguments is None else arguments)])
    cases = [(name, [name]) for name in options.models]
    cases += [(f"{number} random robots", [f"robot:{seed}" for seed in range(number)]) for number in options.random]
    if options.robots:
        here = [robot.name for robot in ROBOTS if not missing(robot, options.robots_dir)]
        cases.append((f"{len(here)} robots of public packages", here))
    subprocess.run([sys.executable, "-c", _CHILD_IMPORTS], env=_with_bytecode(), check=True)
    rows: list[Row] = []
    for name, models in cases:
        rows += measure(name, models, options.worlds, options.backend, options.robots_dir)
        write_json({"benchmark": "start", **result_header(command), "rows": rows}, options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
