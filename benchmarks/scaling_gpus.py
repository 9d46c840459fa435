"""How speed grows with GPUs: `python -m benchmarks.scaling_gpus --gpus 1 2 4 --json out/scaling_gpus.json`.

Each GPU has a process of its own, as where a user starts one training or one search a GPU. The processes start every
repeat together, and a repeat takes as long as the last of them. There are two curves a model: the same number of worlds
on each GPU, and one number of worlds that the GPUs share.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.scaling import Row
from simengine import Simulation, load_model
from simengine.cli.results.machine import result_header
from simengine.cli.results.result_file import write_json
from simengine.cli.simulations.controls import random_controls
from simengine.cli.simulations.stepping import on_device

Process = subprocess.Popen[str]


def serve(name: str, worlds: int, backend: str) -> None:
    """Step a model as often as standard input asks for: a number of steps a line. Answers each with its seconds."""
    model = load_model(name)
    with Simulation(model, worlds, backend=backend) as sim:
        controls = random_controls(model, worlds, 0)[0].astype("float32")
        options = {"ctrl": on_device(controls, sim.backend)} if model.nu else {}
        for line in _requests():
            began = perf_counter()
            sim.step(int(line), **options)
            sim.synchronize()
            print(perf_counter() - began, flush=True)


def measure(name: str, worlds: int, gpus: int, backend: str, steps: int, repeats: int) -> Row:
    """Return the time of a step of all worlds [us] and steps a second of all GPUs together.

    Args:
        name: a model's name.
        worlds: worlds of one GPU.
        gpus: number of GPUs, each with a process of its own.
        backend: backend that steps.
        steps: steps of a repeat, and of the warm-up before the first.
        repeats: repeats, of which the median counts.
    """
    with _processes([name, str(worlds), backend], gpus) as processes:
        _together(processes, steps)
        times = [_together(processes, steps) / steps for _ in range(repeats)]
    median = statistics.median(times)
    return {
        "us_per_step": round(1e6 * median, 2),
        "spread": round((max(times) - min(times)) / median, 3),
        "steps_per_s": round(gpus * worlds / median),
    }


def _requests() -> Iterator[str]:
    print("ready", flush=True)
    yield from sys.stdin


def _together(processes: Sequence[Process], steps: int) -> float:
    """Let all processes step at once. Returns the time of the last [s]."""
    began = perf_counter()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(f"{steps}\n")
        process.stdin.flush()
    for process in processes:
        _answer(process)
    return perf_counter() - began


@contextmanager
def _processes(arguments: Sequence[str], gpus: int) -> Iterator[list[Process]]:
    command = [sys.executable, "-m", "benchmarks.scaling_gpus", "--serve", *arguments]
    processes = [
        subprocess.Popen(
            command,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": str(gpu)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for gpu in range(gpus)
    ]
    try:
        for process in processes:
            _answer(process)
        yield processes
    finally:
        for process in processes:
            process.communicate()


def _answer(process: Process) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"a process of the benchmark ended with code {process.wait()}; its error stands above")
    return line


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["ant", "humanoid"])
    parser.add_argument("--gpus", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--worlds", type=int, default=8192, help="worlds of each GPU")
    parser.add_argument("--shared", type=int, default=32768, help="worlds that all GPUs share")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--steps", type=int, default=500, help="steps of a repeat")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", nargs=3, metavar=("MODEL", "WORLDS", "BACKEND"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        serve(options.serve[0], int(options.serve[1]), options.serve[2])
        return 0
    command = shlex.join(
        ["python", "-m", "benchmarks.scaling_gpus", *(sys.argv[1:] if arguments is None else arguments)]
    )
    rows: list[Row] = []
    for curve, name, gpus, worlds in _cases(options):
        found = measure(name, worlds, gpus, options.backend, options.steps, options.repeats)
        rows.append({"curve": curve, "size": "GPUs", "value": gpus, "worlds": gpus * worlds, **found})
        print(rows[-1], flush=True)
        write_json({"benchmark": "scaling_gpus", **result_header(command), "rows": rows}, options.json)
    return 0


def _cases(options: Any) -> Iterator[tuple[str, str, int, int]]:
    """Yield the curve, the model, the number of GPUs and the worlds of each of them."""
    for name in options.models:
        for gpus in options.gpus:
            yield f"GPUs with {options.worlds:,} worlds of {name} each", name, gpus, options.worlds
        for gpus in options.gpus:
            yield f"GPUs that share {options.shared:,} worlds of {name}", name, gpus, options.shared // gpus


if __name__ == "__main__":
    raise SystemExit(main())
