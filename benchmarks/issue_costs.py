"""Measures what issuing a call costs the host by itself: `python -m benchmarks.issue_costs --json FILE`.

The driver does nothing, so that what is left is the work of the executor: pulling calls from emitters, hazard checks,
the window, streams and waits. Times are processor time. Executors `serial` and `streams` issue each list from Python
and by compiled code. A list has 64 shards, each a pipeline of 20 stages over its own buffers. A random tenth of the
shards is left out in each run.

    emitted   generators yield calls that were made before
    fixed     the shards' calls are fixed lists
    counted   the shards' calls are counted lists: three calls, a wait for 16 counts, and a call for each that is not
              0; the counts are drawn anew for each run
    numbers   the same as emitted, and a number among the arguments of each call is changed before it is yielded
    scalars   generators yield new calls, with arguments of their own, over combinations of segments that are known
    fresh     the same, and no combination of segments came before
    made      the same, and generators make the calls when they are asked for them; what making them takes by itself
              stands beside

The hazard check alone, with a window of 32, is measured on the lists of `benchmarks/hazard_check.py`: `first` when all
calls are new to the check, and `again` afterwards.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import sys
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.hazard_check import LISTS, build, measure, start_nanoseconds
from simengine.cli.results.machine import result_header
from simengine.cli.results.result_file import write_json
from simengine_scheduler import FixedList, KernelCall, Segments, make_executor
from simengine_scheduler.core import Arrival, Counted, CountedList
from simengine_scheduler.executors.compiled import CompiledCalls
from simengine_scheduler.launch import BufferSet
from simengine_scheduler.native.issuer import Issuer
from simengine_scheduler.testing.null_driver import NullDriver, NullLaunch

SHARDS, STAGES, FIELDS = 64, 20, 6


class Work:
    """Calls of all shards."""

    def __init__(self, table: Segments) -> None:
        self._table = table
        self._buffers = BufferSet()
        self._made = 0
        self.shards = [[self.call(shard, stage) for stage in range(STAGES)] for shard in range(SHARDS)]
        self.lists = [FixedList(calls) for calls in self.shards]
        self._numbers = [[self._buffers.scalar(0) for _ in calls] for calls in self.shards]
        self.counted = [_Counted(calls) for calls in self.shards]

    def call(self, shard: int, stage: int, prefix: str = "field") -> KernelCall:
        """Make a call that reads what the stage before has written."""
        self._made += 1
        ids = [self._table.intern(f"{prefix}{stage + k}", shard) for k in range(FIELDS)]
        launch = NullLaunch(self._made, self._buffers)
        return KernelCall(f"stage{stage}", launch, tuple(ids[:3]), tuple(ids[3:5]), tuple(ids[5:]))

    def run(self, kind: str, chosen: list[int]) -> list[Any]:
        """Return the emitters of a run of some shards."""
        if kind == "fixed":
            return [self.lists[shard] for shard in chosen]
        if kind == "counted":
            for shard in chosen:
                self.counted[shard].draw()
            return [self.counted[shard].list for shard in chosen]
        if kind == "numbers":
            return [self._numbered(shard) for shard in chosen]
        if kind == "emitted":
            return [iter(self.shards[shard]) for shard in chosen]
        prefix = "field" if kind == "scalars" else f"run{self._made}"
        new = [self._new(shard, prefix) for shard in chosen]
        return new if kind == "made" else [iter(list(calls)) for calls in new]

    def _new(self, shard: int, prefix: str) -> Iterator[KernelCall]:
        for stage in range(STAGES):
            yield self.call(shard, stage, prefix)

    def _numbered(self, shard: int) -> Iterator[KernelCall]:
        self._made += 1
        for call, number in zip(self.shards[shard], self._numbers[shard], strict=True):
            number.value = self._made
            yield call


class _Counted:
    """A counted list over the calls of a shard. A count chooses among calls that differ in their launch only."""

    def __init__(self, calls: list[KernelCall]) -> None:
        self._counts = np.ones(len(calls) - 4, np.int32)
        self._draw = np.random.default_rng(0)
        self._calls: dict[tuple[str, int], KernelCall] = {}
        chosen = [Counted(self._counts[k : k + 1], partial(self._sized, call)) for k, call in enumerate(calls[3:-1])]
        self.list = CountedList([*calls[:3], Arrival(calls[1], lambda: None), *chosen, calls[-1]])

    def draw(self) -> None:
        """Draw other counts."""
        self._counts[:] = self._draw.integers(0, 4, len(self._counts))

    def _sized(self, call: KernelCall, count: int) -> KernelCall:
        if (call.name, count) not in self._calls:
            self._calls[call.name, count] = replace(call)
        return self._calls[call.name, count]


def issue_us(executor: str, kind: str, compiled: bool, repeats: int) -> dict[str, Any]:
    """Median and least time of a call [us] over runs of random shards."""
    table, driver, draw = Segments(), NullDriver(), random.Random(0)
    work = Work(table)
    samples, making = [], []
    with make_executor(
        executor, segments=table, driver=driver, device="cuda", stream=0, compiled=compiled, graphs=64
    ) as runs:
        for repeat in range(repeats + 5):
            chosen = [shard for shard in range(SHARDS) if draw.random() > 0.1]
            emitters = work.run(kind, chosen)
            before = driver.called
            began = process_time()
            calls = runs.run(emitters).counters.calls
            elapsed = process_time() - began
            assert driver.called - before == (calls if compiled else 0)
            if repeat >= 5:
                samples.append(1e6 * elapsed / calls)
                if kind == "made":
                    began = process_time()
                    deque(chain(*work.run(kind, chosen)), maxlen=0)
                    making.append(1e6 * (process_time() - began) / calls)
    found = {"median_us": round(statistics.median(samples), 3), "least_us": round(min(samples), 3)}
    if making:
        found["making_us"] = round(statistics.median(making), 3)
    return {"executor": executor, "list": kind, "compiled": compiled, **found}


def timed(step: Callable[[], None], calls: int) -> float:
    """Time of a call [ns]."""
    began = process_time()
    step()
    return 1e9 * (process_time() - began) / calls


def check_ns(kind: str, repeats: int) -> dict[str, Any]:
    """Time of a compiled hazard check [ns]: the first of a call, and the median of later ones."""
    first, again = [], []
    for _ in range(5):
        table = Segments()
        calls = build(kind, 10, table)
        known = CompiledCalls(Issuer(NullDriver().functions()), table.conflicts, 64)
        numbers = known.numbers(calls)
        known.hand_over()

        def check(known: CompiledCalls = known, numbers: array[int] = numbers) -> None:
            known.issuer.check_only(numbers, 32)

        first.append(timed(check, len(calls)))
        again += [timed(check, len(calls)) for _ in range(repeats)]
    return {"list": kind, "first_ns": round(statistics.median(first)), "again_ns": round(statistics.median(again))}


def main() -> int:
    """Measure all lists, and print or write the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--json", type=Path, help="file for the results; - prints them instead of the table")
    options = parser.parse_args()
    gc.disable()
    rows = [
        issue_us(executor, kind, compiled, options.repeats)
        for executor in ("serial", "streams")
        for kind in ("emitted", "fixed", "counted", "numbers", "scalars", "fresh", "made")
        for compiled in (False, True)
    ]
    start = start_nanoseconds(32, 31)
    checks = [
        {**check_ns(kind, options.repeats), "python_ns": measure(kind, 10, 32, 31, start)["median_ns"]}
        for kind in LISTS
    ]
    header = result_header("python -m benchmarks.issue_costs " + " ".join(sys.argv[1:]))
    write_json({**header, "issue": rows, "checks": checks}, options.json)
    if str(options.json) != "-":
        for python, compiled in zip(rows[::2], rows[1::2], strict=True):
            times = f"{python['median_us']:7.2f} us in Python {compiled['median_us']:7.2f} us compiled"
            making = f", of which making {compiled['making_us']:.2f} us" if "making_us" in compiled else ""
            print(f"{python['executor']:8} {python['list']:8} {times}{making}")
        for row in checks:
            times = f"{row['python_ns']:5} ns in Python, {row['first_ns']:4} ns first and {row['again_ns']:4} ns again"
            print(f"check    {row['list']:8} {times}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
