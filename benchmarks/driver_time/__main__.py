"""Measures where the time of a step goes: `python -m benchmarks.driver_time ant:emission=stages --json FILE`.

Executors run the steps of workloads, as `simengine bench scheduler` names them. Compiled code calls the driver through
functions that take the time. A row has, for a step, how long it takes, how much of it is spent in each function and how
often it is called. What is left are Python, compiled code, and what the host waits between queries. Medians over parts
[us].
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.stepping import document
from simengine.cli.results.result_file import write_json
from simengine.cli.simulations.workloads import make_workload
from simengine_scheduler import make_executor
from simengine_scheduler.cuda.driver import CudaDriver
from simengine_scheduler.native.compiling import build
from simengine_scheduler.native.issuer import Functions
from simengine_scheduler.study.specs import Spec
from simengine_scheduler.study.workloads.base import Workload

_NAMES = ("launch", "record", "wait", "query", "graph")
_POLLING = "streams:completion=polling"
_EXECUTORS = ("serial", "streams:pieces=false", "streams", _POLLING, f"{_POLLING},chains=true")


class TimedDriver(CudaDriver):
    """CUDA, whose functions for compiled code take the time."""

    def __init__(self) -> None:
        super().__init__()
        self._library = ctypes.CDLL(str(build("timed_driver.so", [Path(__file__).with_name("timed.cpp")])))
        known = super().functions()
        if known is None:
            raise RuntimeError("the CUDA driver's functions are not found; run this where compiled code issues calls")
        of_cuda = array("q", known[: len(_NAMES)])
        self._library.timed_set(ctypes.c_void_p(of_cuda.buffer_info()[0]))
        addresses = (ctypes.cast(self._library[f"timed_{name}"], ctypes.c_void_p).value or 0 for name in _NAMES)
        self._functions = Functions(*addresses, *known[len(_NAMES) :])

    def functions(self) -> Functions:
        """Return the functions that take the time."""
        return self._functions

    def take(self) -> tuple[list[float], list[int]]:
        """Return the seconds in each function since the last time, and how often it was called."""
        seconds, calls = (ctypes.c_double * len(_NAMES))(), (ctypes.c_int64 * len(_NAMES))()
        self._library.timed_take(seconds, calls)
        return list(seconds), list(calls)


def measured(
    workload: Workload, name: str, spec: Spec, args: argparse.Namespace, driver: TimedDriver
) -> dict[str, Any]:
    """The measurements of an executor on a workload."""
    options = {**workload.options, **spec.options, "segments": workload.segments, "driver": driver}
    parts: list[tuple[float, list[float], list[int]]] = []
    with make_executor(spec.name, **options) as executor:
        workload.reset()
        workload.run(executor, args.warmup)
        for _ in range(args.parts):
            executor.synchronize()
            driver.take()
            began = perf_counter()
            workload.run(executor, args.steps)
            executor.synchronize()
            parts.append((perf_counter() - began, *driver.take()))

    def median(of: Callable[[tuple[float, list[float], list[int]]], float], scale: float) -> float:
        return round(scale * statistics.median(map(of, parts)) / args.steps, 1)

    us = {part: median(lambda own, at=at: own[1][at], 1e6) for at, part in enumerate(_NAMES)}  # type: ignore[misc]
    calls = {part: median(lambda own, at=at: own[2][at], 1.0) for at, part in enumerate(_NAMES)}  # type: ignore[misc]
    return {
        "workload": name,
        "executor": str(spec),
        "us_per_step": median(lambda own: own[0], 1e6),
        "driver_us": us,
        "calls": calls,
        "left_us": median(lambda own: own[0] - sum(own[1]), 1e6),
    }


def main() -> int:
    """Measure, and print and write the measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="+")
    parser.add_argument("--executors", nargs="+", default=list(_EXECUTORS))
    parser.add_argument("--warmup", type=int, default=200, help="steps before those that are timed")
    parser.add_argument("--steps", type=int, default=20, help="timed steps of a part")
    parser.add_argument("--parts", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    driver, rows = TimedDriver(), []
    for name in args.workloads:
        workload = make_workload(Spec.parse(name), "cuda")
        for executor in args.executors:
            rows.append(measured(workload, name, Spec.parse(executor), args, driver))
            print(rows[-1], flush=True)
        workload.close()
    write_json(document("benchmarks.driver_time", rows), args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
