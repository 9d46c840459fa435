"""Time the window's hazard check: insertion, check, start and completion of one call, median nanoseconds.

    python benchmarks/hazard_check.py [--window 32] [--segments-per-call 10] [--json]

The window is kept full: each measured call completes the oldest call of the window and inserts the next. Calls and
their segments are built beforehand and come again and again, as in an emitter. Three lists are measured:

    worlds    shards in turn, each a pipeline of stages over its own buffers: the list of a batched simulation step
    random    every segment drawn at random: as many hazards as can be
    readers   all read the same buffers and write their own: long lists of readers

The target, from Python, at a window of 32 and 10 segments a call, is at most 1500 ns.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import random
import statistics
from time import perf_counter_ns

from scheduler import KernelCall, PythonLaunch, Segments, Window

CALLS = 2000  # a list; measured as one batch


def split(segments: list[int]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Share segments out as a stage does: about two thirds read, the rest written, the last updated."""
    written = max(1, len(segments) // 3)
    return tuple(segments[:-written]), tuple(segments[-written:-1]), tuple(segments[-1:])


def build(kind: str, per_call: int, table: Segments) -> list[KernelCall]:
    """Build one list of calls."""
    draw = random.Random(0)
    launch = PythonLaunch(lambda: None)
    calls = []
    for k in range(CALLS):
        if kind == "worlds":
            shard, stage = k % 8, (k // 8) % 12
            chosen = [table.intern(f"field{(stage * 3 + i) % 40}", shard) for i in range(per_call)]
        elif kind == "random":
            chosen = [table.intern(f"field{i}") for i in draw.sample(range(max(64, per_call)), per_call)]
        else:
            chosen = [table.intern(f"model{i}") for i in range(per_call - max(1, per_call // 3))]
            chosen += [table.intern(f"out{i}", k % 64) for i in range(per_call - len(chosen))]
        reads, writes, updates = split(chosen)
        calls.append(KernelCall(f"{kind}{k}", launch, reads, writes, updates))
    return calls


def batch_nanoseconds(calls: list[KernelCall], window: Window) -> float:
    """Run the list through a window in program order; return the mean nanoseconds a call."""
    insert, start, complete = window.insert, window.start, window.complete
    for call in calls[: window.capacity]:
        insert(call)
    oldest = window.following - window.capacity
    timed = calls[window.capacity :]
    began = perf_counter_ns()
    for seq, call in enumerate(timed, oldest):
        start(seq)
        complete(seq)
        insert(call)
    elapsed = perf_counter_ns() - began
    window.clear()
    return elapsed / len(timed)


def measure(kind: str, per_call: int, capacity: int, repeats: int) -> dict[str, float | str]:
    """Return the median and the best of several batches of one list."""
    table = Segments()
    calls = build(kind, per_call, table)
    window = Window(table, capacity)
    batch_nanoseconds(calls, window)  # the first sight of each combination of segments costs more, once
    gc.disable()
    samples = [batch_nanoseconds(calls, window) for _ in range(repeats)]
    gc.enable()
    return {"list": kind, "median_ns": round(statistics.median(samples)), "best_ns": round(min(samples))}


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--window", type=int, default=32, help="calls in the window")
    parser.add_argument("--segments-per-call", type=int, default=10, help="segments that each call touches")
    parser.add_argument("--repeats", type=int, default=31, help=f"batches of {CALLS} calls")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    rows = [
        measure(kind, options.segments_per_call, options.window, options.repeats)
        for kind in ("worlds", "random", "readers")
    ]
    if options.json:
        about = {"window": options.window, "segments_per_call": options.segments_per_call}
        machine = {"python": platform.python_version(), "machine": platform.machine()}
        print(json.dumps({**about, **machine, "lists": rows}))
        return
    print(f"insertion + check + start + completion, window {options.window}, {options.segments_per_call} segments a call")
    for row in rows:
        print(f"  {row['list']:8} median {row['median_ns']:5} ns   best {row['best_ns']:5} ns")


if __name__ == "__main__":
    main()
