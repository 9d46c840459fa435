"""Measures what a run of an executor costs the host besides its calls: `python -m benchmarks.run_costs --json FILE`.

The driver does nothing, and every call has ended as soon as it is asked for. Compiled code issues lists of generators,
which yield calls that were made before. `run_us` is a run without calls of one emitter. `call_us` is what each more
call adds. `resume_us` is what it adds that an emitter waits for a call, which the host sees to end, and goes on: the
emitters take turns, but each wait is looked at by itself. Times are the least of many repeats.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

from benchmarks.stepping import print_and_write
from simengine_scheduler import KernelCall, Segments, make_executor
from simengine_scheduler.core import AwaitCounts, Item
from simengine_scheduler.executors.base import Executor
from simengine_scheduler.launch.arguments import BufferSet
from simengine_scheduler.testing.null_driver import NullDriver, NullLaunch

CALLS, AWAITS, RUNS, REPEATS = 128, 16, 50, 20
EXECUTORS: dict[str, dict[str, Any]] = {
    "serial": {"device": "cuda"},
    "streams": {"pieces": False},
    "streams:completion=polling": {"completion": "polling"},
}


def emitted(calls: Sequence[KernelCall], awaits: int) -> Iterator[Item]:
    """The calls, the first of which are awaited."""
    for number, call in enumerate(calls):
        yield call
        if number < awaits:
            yield AwaitCounts(call)


def least(executor: Executor, calls: Sequence[KernelCall], awaits: int = 0) -> float:
    """The least time of a run over some repeats [us]."""
    found = []
    for _ in range(REPEATS):
        began = perf_counter()
        for _ in range(RUNS):
            executor.run([emitted(calls, awaits)])
        found.append(perf_counter() - began)
    return 1e6 * min(found) / RUNS


def measured() -> list[dict[str, Any]]:
    """A row for each executor."""
    segments, buffers = Segments(), BufferSet()
    updated = [segments.intern(str(number)) for number in range(8)]
    calls = [KernelCall(str(n), NullLaunch(1, buffers), (), (), (updated[n % 8],)) for n in range(CALLS)]
    rows = []
    for spec, options in EXECUTORS.items():
        name = spec.partition(":")[0]
        with make_executor(name, segments=segments, driver=NullDriver(), **options) as executor:
            empty, full, awaited = (least(executor, *given) for given in (([], 0), (calls, 0), (calls, AWAITS)))
        costs = {"run_us": empty, "call_us": (full - empty) / CALLS, "resume_us": (awaited - full) / AWAITS}
        rows.append({"executor": spec, **{what: round(us, 2) for what, us in costs.items()}})
    return rows


if __name__ == "__main__":
    sys.exit(print_and_write("benchmarks.run_costs", __doc__, measured))
