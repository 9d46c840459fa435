"""Lists that vary through other schedulers, in C++: Taskflow's CUDA graphs, CUDASTF, and neither.

    python -m benchmarks.scheduler_peers --taskflow DIR --cccl DIR --workloads population --json FILE

`--taskflow` and `--cccl` are folders with the sources of Taskflow (4.0) and of NVIDIA's CCCL, which has CUDASTF.
Without one of them its systems are left out. `nvcc` builds them.

The calls of each step are recorded, and issued again from the same memory by each system without Python: `stream` on
one stream, `graph` as a CUDA graph built for each batch, `taskflow` the same by `tf::cudaGraph`, `cudastf` as tasks on
streams, and `cudastf-graph` as tasks of a graph. What must wait for what is given to `graph` and `taskflow`; CUDASTF
infers it from what calls touch. A batch has the calls between two waits of the host. This project's executors run the
same steps as they always do, with Python where it makes calls. All must leave the same bits. Calls that take
structures, as those of robots do, are not recorded. Controls of simulations stay as they are.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.scheduler_peers.libraries import SYSTEMS, System, runtime_kernels, systems
from benchmarks.scheduler_peers.recording import Code, Noted, Program, RecordingExecutor, noting_code, program_of
from benchmarks.stepping import document
from simengine.cli.results.result_file import write_json
from simengine.cli.simulations.workloads import make_workload
from simengine_scheduler import make_executor
from simengine_scheduler.study.specs import Spec
from simengine_scheduler.study.workloads.base import Workload

EXECUTORS = ("serial", "streams", "graph-cached", "auto")
WORKLOADS = ("population", "products", "clients", "skipping")


def still(workload: Any) -> Workload:
    """The workload with controls that stay as they are, since they are copied beside its calls."""
    if hasattr(workload, "_next"):
        workload._next, workload._takes_controls = lambda n: None, False
    return workload


def recorded(workload: Workload, steps: int, codes: dict[int, Code], folder: Path, with_taskflow: bool) -> Program:
    """The program of the first steps."""
    found: list[list[list[Noted]]] = []
    for _ in range(2):  # buffers may grow in the first pass
        found.clear()
        workload.reset()
        for _ in range(steps):
            recorder = RecordingExecutor()
            workload.run(recorder, 1)
            found.append(recorder.batches)
    shared: dict[int, int] = {}
    for one in (one for step in found for batch in step for one in batch):
        shared[one.function] = max(one.shared, shared.get(one.function, 0))
    load = runtime_kernels(folder) if with_taskflow else None

    @cache
    def kernel_of(function: int) -> int:
        return 0 if load is None or function not in codes else load(*codes[function], shared[function])

    return program_of(found, workload.segments, kernel_of)


def rows_of(
    name: str, args: argparse.Namespace, found: Sequence[System], codes: dict[int, Code]
) -> list[dict[str, Any]]:
    """A row for each system and executor."""
    workload = still(make_workload(Spec.parse(name), "cuda"))
    last = args.warmup + args.steps
    program = recorded(workload, last, codes, args.libraries, any(one.name == "taskflow" for one in found))
    takes: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
        one.name: (partial(one.replay, program, 0, args.warmup), partial(one.replay, program, args.warmup, last))
        for one in found
    }
    made = {}
    for spec in map(Spec.parse, args.executors):
        executor = made[str(spec)] = make_executor(
            spec.name, **{**workload.options, **spec.options, "segments": workload.segments}
        )
        workload.reset()
        workload.run(executor, args.learn)
        while getattr(executor, "undecided", False):
            workload.run(executor, args.steps)

        def run(steps: int, executor: Any = executor) -> None:
            workload.run(executor, steps)
            executor.synchronize()

        takes[str(spec)] = partial(run, args.warmup), partial(run, args.steps)
    seconds: dict[str, list[float]] = {what: [] for what in takes}
    states: dict[str, set[bytes]] = {what: set() for what in takes}
    errors: dict[str, str] = {}
    for _ in range(args.repeats):
        for what, (begin, go_on) in takes.items():
            if what in errors:
                continue
            workload.reset()
            try:
                begin()
                began = perf_counter()
                go_on()
                seconds[what].append(perf_counter() - began)
            except RuntimeError as error:
                errors[what] = str(error)
                continue
            states[what].add(workload.state())
    wanted = states.get("serial") or states["stream"]
    batches = int(program.arrays[4][-1] - program.arrays[4][args.warmup]) / args.steps
    calls = sum(program.arrays[3]["count"][program.arrays[4][args.warmup] :].tolist()) / args.steps
    rows = []
    for what, own in seconds.items():
        row: dict[str, Any] = {"workload": name, "system": what, "recorded": what in {one.name for one in found}}
        row |= {"calls": calls, "batches": batches, "error": errors.get(what, "")}
        if own:
            middle = statistics.median(own)
            row |= {
                "us_per_step": round(1e6 * middle / args.steps, 1),
                "spread": round((max(own) - min(own)) / middle, 2),
            }
            row["equal"] = states[what] == wanted
        rows.append(row)
        print(row, flush=True)
    for executor in made.values():
        executor.close()
    workload.close()
    return rows


def main() -> int:
    """Run the workloads, and print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS))
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--executors", nargs="+", default=list(EXECUTORS))
    parser.add_argument("--taskflow", type=Path, help="folder that has taskflow/cuda/cudaflow.hpp")
    parser.add_argument("--cccl", type=Path, help="folder that has cudax and c/experimental/stf")
    parser.add_argument("--libraries", type=Path, default=Path("peers"), help="where built libraries are kept")
    parser.add_argument("--learn", type=int, default=300, help="steps of an executor before any other")
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found = systems(args.systems, args.libraries, args.taskflow, args.cccl)
    with noting_code() as codes:
        rows = [row for name in args.workloads for row in rows_of(name, args, found, codes)]
    write_json(document("benchmarks.scheduler_peers", rows), args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
