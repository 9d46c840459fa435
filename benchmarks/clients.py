"""Several processes on one processor: `python -m benchmarks.clients [--device cuda] --json out.json`.

Every process has the same work: lists of small calls in `--width` independent chains. The work is done in three ways:

    alone     each process has its own scheduler, and the processes run one after another
    at once   the same processes run at the same time; on a GPU their contexts take turns
    owner     the processes are clients of one owner, which runs the calls of all clients at the same time

Each process submits a list while the one before it runs. Starting up is not measured. A time is from the first start to
the last end, as the median over `--repeats`. `round_trip_us` is the time from the submission of an empty list until its
client sees its end, while the owner is idle.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import multiprocessing
import os
import platform
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import simengine_scheduler
from simengine_scheduler import service
from simengine_scheduler.launch import BufferSet

BODY = "float x = data[i]; for (int k = 0; k < work; k++) x = x * 0.999f + 0.5f; data[i] = x;"
HOST_SOURCE = f"""
#include <cstdint>
extern "C" void chew(const uint64_t* slots) {{
    const int32_t work = static_cast<int32_t>(slots[0]);
    float* data = reinterpret_cast<float*>(slots[1]);
    for (int i = 0; i < 8; i++) {{ {BODY} }}
}}
"""
CUDA_SOURCE = f"""
extern "C" __global__ void chew(int work, float* data) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    {BODY}
}}
"""
BLOCK = 128
_PATIENCE = 300.0  # seconds that a process may take from its start


@dataclass(frozen=True)
class Work:
    """The work of each process. `work` is the number of multiply-adds of a thread, `blocks` that of a call's blocks."""

    device: str
    executor: str
    lists: int
    calls: int
    width: int
    work: int
    blocks: int
    library: str
    graph: bool

    @property
    def size(self) -> int:
        """Number of elements of a chain's array."""
        return self.blocks * BLOCK if self.device == "cuda" else 8


Start = Callable[[], None]
Outcome = tuple[float, float, float, bytes]  # begin, end [monotonic seconds], round trip [s], bytes of the arrays


def own(work: Work, start: Start) -> Outcome:
    """Do the work with a scheduler of this process."""
    table = simengine_scheduler.Segments()
    on_gpu = work.device == "cuda"
    arrays, launches = _own_launches(work)
    ids = [table.intern(f"x{k}") for k in range(work.width)]
    calls = [
        simengine_scheduler.KernelCall(f"chew{k}", launches[k % work.width], (), (), (ids[k % work.width],))
        for k in range(work.calls)
    ]
    executor = simengine_scheduler.make_executor("graph-cached" if work.graph else work.executor, segments=table)
    step = simengine_scheduler.FixedList(calls)

    def run(lists: int) -> None:
        for _ in range(lists):
            executor.run([step])
        executor.synchronize()

    run(4)
    start()
    began = time.monotonic()
    run(work.lists)
    ended = time.monotonic()
    executor.close()
    content = [a.get() if on_gpu else a for a in arrays]
    return began, ended, 0.0, b"".join(a.tobytes() for a in content)


def _own_launches(work: Work) -> tuple[list[Any], list[Any]]:
    if work.device == "cuda":
        import cupy

        kernel = cupy.RawKernel(CUDA_SOURCE, "chew")
        arrays = [cupy.zeros(work.size, np.float32) for _ in range(work.width)]
        from_kernel = simengine_scheduler.CudaLaunch.from_kernel
        return arrays, [from_kernel(kernel, (work.blocks,), (BLOCK,), (work.work, a)) for a in arrays]
    function = ctypes.CDLL(work.library).chew
    buffers = BufferSet()
    arrays = [np.zeros(work.size, np.float32) for _ in range(work.width)]
    memory = [buffers.add(f"x{k}", a.ctypes.data, a.nbytes) for k, a in enumerate(arrays)]
    return arrays, [simengine_scheduler.HostLaunch(function, (work.work, m), buffers) for m in memory]


def client(work: Work, address: str, start: Start) -> Outcome:
    """A client of an owner."""
    with service.connect(address, timeout=60) as owner:
        names = [f"x{k}" for k in range(work.width)]
        arrays = [owner.allocate(name, work.size) for name in names]
        on_gpu = work.device == "cuda"
        kernel = owner.cuda(CUDA_SOURCE, "chew") if on_gpu else owner.library(work.library, "chew")
        grid, block = ((work.blocks,), (BLOCK,)) if on_gpu else ((), ())
        chosen = [names[k % work.width] for k in range(work.calls)]
        step = owner.define(
            [
                service.ClientCall(f"chew{k}", kernel, (work.work, x), updates=[x], grid=grid, block=block)
                for k, x in enumerate(chosen)
            ],
            graph=work.graph,
        )

        def run(lists: int) -> None:
            tickets = [owner.submit(step) for _ in range(lists)]
            tickets[-1].wait()

        run(4)
        empty, trips = owner.define([]), []
        for _ in range(200):
            began = time.monotonic()
            owner.submit(empty).wait()
            trips.append(time.monotonic() - began)
        start()
        began = time.monotonic()
        run(work.lists)
        ended = time.monotonic()
        content = [a.get() if on_gpu else a for a in arrays]
        return began, ended, statistics.median(trips), b"".join(a.tobytes() for a in content)


def _process(function: Callable[..., Outcome], arguments: tuple[Any, ...], barrier: Any, results: Any) -> None:
    faulthandler.dump_traceback_later(_PATIENCE, exit=True)  # a process that hangs prints where
    try:
        results.put(function(*arguments, barrier.wait))
    except BaseException:
        barrier.abort()
        results.put(traceback.format_exc())  # as text, since some exceptions cannot be pickled
        raise


def together(function: Callable[..., Outcome], arguments: tuple[Any, ...], count: int) -> list[Outcome]:
    """Run a function in `count` new processes that start their work at the same time.

    Raises RuntimeError if a process failed, hung or died.
    """
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(count), context.Queue()
    processes = [
        context.Process(target=_process, args=(function, arguments, barrier, results), daemon=True)
        for _ in range(count)
    ]
    for process in processes:
        process.start()
    outcomes: list[Outcome] = []
    while len(outcomes) < count:
        ended = [process.exitcode for process in processes if process.exitcode]
        try:
            outcome = results.get(timeout=1)
        except queue.Empty:
            if ended:
                raise RuntimeError(f"a process has ended with exit code {ended[0]}; see its output above") from None
            continue
        if isinstance(outcome, str):
            raise RuntimeError(outcome)
        outcomes.append(outcome)
    for process in processes:
        process.join()
    return outcomes


@contextmanager
def owner_process(work: Work, folder: str) -> Iterator[str]:
    """Run an owner in a new process, and yield its address."""
    address = os.path.join(folder, "owner")
    command = [sys.executable, "-m", "simengine_scheduler.service", "--address", address, "--executor", work.executor]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError("the owner did not start")
            yield address
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def span(outcomes: list[Outcome]) -> float:
    """Seconds from the first start to the last end."""
    return max(o[1] for o in outcomes) - min(o[0] for o in outcomes)


def measure(work: Work, count: int, repeats: int, folder: str) -> dict[str, Any]:
    """Measure `count` processes, and return a row of results."""
    alone, at_once, shared, trips, contents = [], [], [], [], set()
    for _ in range(repeats):
        outcomes = [together(own, (work,), 1)[0] for _ in range(count)]
        alone.append(sum(o[1] - o[0] for o in outcomes))
        others = together(own, (work,), count)
        at_once.append(span(others))
        with owner_process(work, folder) as address:
            clients = together(client, (work, address), count)
        shared.append(span(clients))
        trips.append(max(o[2] for o in clients))
        contents |= {o[3] for o in (*outcomes, *others, *clients)}
    seconds = {"alone": alone, "at_once": at_once, "owner": shared}
    medians = {f"{name}_s": statistics.median(values) for name, values in seconds.items()}
    calls = count * work.lists * work.calls
    return {
        "clients": count,
        "calls": calls,
        **medians,
        "owner_us_per_call": medians["owner_s"] / calls * 1e6,
        "speedup_over_alone": medians["alone_s"] / medians["owner_s"],
        "speedup_over_at_once": medians["at_once_s"] / medians["owner_s"],
        "round_trip_us": statistics.median(trips) * 1e6,
        "equal": len(contents) == 1,
        "all": seconds,
    }


def _compile(folder: str) -> str:
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise RuntimeError("the host's kernel needs a C++ compiler; install g++ or clang++, or set CXX")
    source, library = Path(folder) / "chew.cpp", str(Path(folder) / "chew.so")
    source.write_text(HOST_SOURCE)
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", str(source), "-o", library], check=True)
    return library


def main(argv: list[str] | None = None) -> int:
    """Measure and print. The exit code is 1 if the ways of running give different results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("host", "cuda"), default="host")
    parser.add_argument("--executor", help="default: threads, or streams on a GPU")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--lists", type=int, default=200)
    parser.add_argument("--calls", type=int, default=32, help="of a list")
    parser.add_argument("--width", type=int, default=4, help="chains of a list")
    parser.add_argument("--work", type=int, default=5000, help="multiply-adds of each element, one after another")
    parser.add_argument("--blocks", type=int, default=4, help="of a CUDA call")
    parser.add_argument("--graph", action="store_true", help="lists as CUDA graphs; alone with executor graph-cached")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    executor = args.executor or ("streams" if args.device == "cuda" else "threads")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        library = _compile(folder) if args.device == "host" else ""
        work = Work(
            args.device, executor, args.lists, args.calls, args.width, args.work, args.blocks, library, args.graph
        )
        print("clients  alone s  at once s  owner s  us/call  over alone  over at once  round trip us  equal")
        for count in args.clients:
            row = measure(work, count, args.repeats, folder)
            rows.append(row)
            print(
                f"{count:7d} {row['alone_s']:8.3f} {row['at_once_s']:10.3f} {row['owner_s']:8.3f}"
                f" {row['owner_us_per_call']:8.1f} {row['speedup_over_alone']:11.2f}"
                f" {row['speedup_over_at_once']:13.2f} {row['round_trip_us']:14.0f}  {row['equal']}",
                flush=True,
            )
    if args.json is not None:
        from benchmarks.stepping import hardware
        from simengine.cli.results.result_file import write_json

        document = {
            "hardware": hardware(),
            "versions": {"python": platform.python_version(), "numpy": np.__version__},
            "date": time.strftime("%Y-%m-%d"),
            "command": "python -m benchmarks.clients " + " ".join(argv if argv is not None else sys.argv[1:]),
            "work": {"executor": executor, **{k: v for k, v in vars(args).items() if k not in ("json", "executor")}},
            "rows": rows,
        }
        write_json(document, args.json)
    return 0 if all(row["equal"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
