"""Runs jobs of unequal length with CUDA executors: `python -m benchmarks.pipeline --json out.json`. Needs a GPU.

A job is a chain of small kernels from its own input to its own output, through working memory of the worker that runs
it. As in SET (arXiv 2606.05495), jobs are independent and many run at once. `serial` runs them one after another on one
stream, `streams` spreads their calls over streams, and `pipeline` has a graph on each worker and updates its arguments.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from simengine.cli.results.result_file import write_json
from simengine_scheduler import CudaLaunch, Executor, KernelCall, Segments, make_executor
from simengine_scheduler.jobs import JobArguments, JobKind

_SOURCE = r"""
extern "C" __global__ void link(long long cycles, const float* from, float* to) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float value = from[i] * 0.5f + 1.0f;
  const long long began = clock64();
  while (clock64() - began < cycles) {}
  to[i] = value;
}
"""
_WIDTH, _BLOCKS = 128, 4
_CONFIGURATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "serial": ("serial", {"device": "cuda"}),
    "streams": ("streams", {"streams": 8}),
    "pipeline, 1 worker": ("pipeline", {"streams": 1}),
    "pipeline, depth 1": ("pipeline", {"streams": 8, "depth": 1}),
    "pipeline": ("pipeline", {"streams": 8, "depth": 2}),
    "pipeline, depth 4": ("pipeline", {"streams": 8, "depth": 4}),
}


def make_jobs(cupy: Any, table: Segments, jobs: int, calls: tuple[int, ...], microseconds: float) -> list[KernelCall]:
    """Make independent jobs, whose numbers of calls are those of `calls` in turn."""
    kernel = cupy.RawKernel(_SOURCE, "link")
    cycles = np.int64(microseconds * cupy.cuda.Device().attributes["ClockRate"] * 1e-3)
    shape = (_BLOCKS * _WIDTH,)

    def build(arguments: JobArguments, count: int) -> list[KernelCall]:
        work = [cupy.empty(shape, np.float32) for _ in range(2)]
        places = [arguments["source"], *(work[k % 2] for k in range(count - 1)), arguments["result"]]
        ids = [table.intern("work", k) for k in range(2)]
        made = []
        for k in range(count):
            args = (cycles, places[k], places[k + 1])
            launch = CudaLaunch.from_kernel(kernel, (_BLOCKS,), (_WIDTH,), args, buffers=arguments.buffers)
            made.append(KernelCall(f"link{k}", launch, (ids[(k + 1) % 2],), (ids[k % 2],)))
        return made

    kinds = [JobKind(f"chain of {n}", lambda arguments, n=n: build(arguments, n)) for n in calls]  # type: ignore[misc]
    made = []
    for k in range(jobs):
        source, result = (cupy.full(shape, k, np.float32) for _ in range(2))
        kind = kinds[k % len(kinds)]
        ids = table.intern("source", k), table.intern("result", k)
        made.append(KernelCall(kind.name, kind.job(source=source, result=result), ids[:1], ids[1:]))
    return made


def measure(cupy: Any, executor: Executor, jobs: list[KernelCall], repeats: int) -> dict[str, float]:
    """Median time of a job [s], from the first issue to the end on the device, and the host's part of it."""
    stream = cupy.cuda.get_current_stream()
    whole, host = [], []
    for _ in range(repeats + 2):
        stream.synchronize()
        began = perf_counter()
        trace = executor.run([jobs])
        host.append(perf_counter() - began)
        stream.synchronize()
        whole.append(perf_counter() - began)
    counters = trace.counters
    return {
        "us_a_job": median(whole[2:]) / len(jobs) * 1e6,
        "host_us_a_job": (counters.job_seconds or median(host[2:])) / len(jobs) * 1e6,
        "stolen": counters.stolen,
    }


def main() -> None:
    """Measure all executors, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=128, help="jobs a run")
    parser.add_argument("--calls", type=int, nargs="+", default=[4, 16, 32], help="kernels of a job, by kind in turns")
    parser.add_argument("--microseconds", type=float, nargs="+", default=[2, 5, 20], help="durations of a kernel")
    parser.add_argument("--repeats", type=int, default=15, help="runs of which the median is taken")
    parser.add_argument("--json", type=Path, help="where to write the results")
    args = parser.parse_args()
    import cupy  # type: ignore[import-untyped]

    rows = []
    for microseconds in args.microseconds:
        table = Segments()
        jobs = make_jobs(cupy, table, args.jobs, tuple(args.calls), microseconds)
        for name, (kind, options) in _CONFIGURATIONS.items():
            executor = make_executor(kind, segments=table, **options)
            row = {"kernel_us": microseconds, "executor": name, **measure(cupy, executor, jobs, args.repeats)}
            executor.close()
            rows.append(row)
            against = rows[-1 - list(_CONFIGURATIONS).index(name)]["us_a_job"] / row["us_a_job"]
            print(
                f"{microseconds:5g} us  {name:20} {row['us_a_job']:8.1f} us a job  {against:5.2f}x serial  "
                f"host {row['host_us_a_job']:6.1f} us a job  {row['stolen']:3} stolen",
                flush=True,
            )
    write_json({"arguments": vars(args) | {"json": None}, "rows": rows}, args.json)


if __name__ == "__main__":
    main()
