"""Time the window's hazard check: insertion, check and completion of one call, in nanoseconds of processor time.

    python benchmarks/hazard_check.py [--window 32] [--segments-per-call 10] [--json FILE]

The window is kept full: each measured call starts and completes the oldest call of the window, and inserts the next.
Calls are built beforehand on interned segments. Four lists are measured:

    worlds    shards in turn, each a pipeline of stages over its own buffers, step after step: a batched simulation
    readers   all read the same buffers and write their own
    random    200 combinations of segments drawn from 64, again and again: as many hazards as can be
    fresh     no combination of segments ever comes twice: what the first sight of a combination costs

Starting a call (taking it off the ready list) is not part of the check; it is measured apart and subtracted. The
target, from Python, at a window of 32 and 10 segments a call, is at most 1500 ns on `worlds`; `random` and `fresh` show
how far other lists are from it.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import sys
from pathlib import Path
from time import process_time_ns

from simengine.cli.machine import result_header
from simengine.cli.result_file import write_json
from simengine_scheduler import KernelCall, PythonLaunch, Segments, Window

CALLS = 2000  # a list; measured as one batch
LISTS = ("worlds", "readers", "random", "fresh")
LAUNCH = PythonLaunch(lambda: None)


def make_call(name: str, segments: list[int]) -> KernelCall:
    """Share segments out as a stage does: about two thirds read, the rest written, the last updated."""
    written = max(1, len(segments) // 3)
    return KernelCall(name, LAUNCH, tuple(segments[:-written]), tuple(segments[-written:-1]), tuple(segments[-1:]))


def build(kind: str, per_call: int, table: Segments) -> list[KernelCall]:
    """Build one list of calls."""
    draw = random.Random(0)
    several = [[table.intern(f"field{i}") for i in draw.sample(range(max(64, per_call)), per_call)] for _ in range(200)]
    calls = []
    for k in range(CALLS):
        if kind == "worlds":
            shard, stage = k % 8, (k // 8) % 12
            chosen = [table.intern(f"field{(stage * 3 + i) % 40}", shard) for i in range(per_call)]
        elif kind == "readers":
            chosen = [table.intern(f"model{i}") for i in range(per_call - max(1, per_call // 3))]
            chosen += [table.intern(f"out{i}", k % 64) for i in range(per_call - len(chosen))]
        elif kind == "random":
            chosen = several[k % len(several)]
        else:
            chosen = [table.intern(f"layer{k + i}") for i in range(per_call)]
        calls.append(make_call(f"{kind}{k}", chosen))
    return calls


def batch_nanoseconds(calls: list[KernelCall], window: Window) -> float:
    """Run the list through a window in program order; return the mean nanoseconds a call."""
    insert, start, complete = window.insert, window.start, window.complete
    for call in calls[: window.capacity]:
        insert(call)
    oldest = window.following - window.capacity
    timed = calls[window.capacity :]
    began = process_time_ns()
    for seq, call in enumerate(timed, oldest):
        start(seq)
        complete(seq)
        insert(call)
    elapsed = process_time_ns() - began
    window.clear()
    return elapsed / len(timed)


def start_nanoseconds(capacity: int, repeats: int) -> float:
    """Return the median nanoseconds of starting a call in a full window."""
    table = Segments()
    window = Window(table, capacity)
    calls = [make_call(f"k{i}", [table.intern(f"b{i}")]) for i in range(capacity)]
    samples = []
    for _ in range(20 * repeats):
        for call in calls:
            window.insert(call)
        numbers = list(window.ready)
        began = process_time_ns()
        for seq in numbers:
            window.start(seq)
        samples.append((process_time_ns() - began) / capacity)
        window.clear()
    return statistics.median(samples)


def measure(kind: str, per_call: int, capacity: int, repeats: int, start: float) -> dict[str, float | str]:
    """Return median and best of several batches of one list, without the cost of starting."""
    table = Segments()
    calls = build(kind, per_call, table)
    window = Window(table, capacity)
    samples = []
    for _ in range(repeats):
        if kind == "fresh":
            window = Window(table, capacity)  # and so every combination is seen for the first time again
        samples.append(batch_nanoseconds(calls, window) - start)
    timed = samples[5:] if kind != "fresh" else samples  # the first batches learn the combinations
    return {"list": kind, "median_ns": round(statistics.median(timed)), "best_ns": round(min(timed))}


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--window", type=int, default=32, help="calls in the window")
    parser.add_argument("--segments-per-call", type=int, default=10, help="segments that each call touches")
    parser.add_argument("--repeats", type=int, default=31, help=f"batches of {CALLS} calls, at least 7")
    parser.add_argument("--json", type=Path, help="file for the results; - prints them instead of the table")
    options = parser.parse_args()
    repeats = max(options.repeats, 7)
    gc.disable()
    start = start_nanoseconds(options.window, repeats)
    rows = [measure(kind, options.segments_per_call, options.window, repeats, start) for kind in LISTS]
    about = {"window": options.window, "segments_per_call": options.segments_per_call, "start_ns": round(start)}
    header = result_header("python benchmarks/hazard_check.py " + " ".join(sys.argv[1:]))
    write_json({**header, **about, "lists": rows}, options.json)
    if str(options.json) == "-":
        return
    print(f"insertion + check + completion, window {options.window}, {options.segments_per_call} segments a call")
    for row in rows:
        print(f"  {row['list']:8} median {row['median_ns']:5} ns   best {row['best_ns']:5} ns")
    print(f"  starting a call, not included: {start:.0f} ns")


if __name__ == "__main__":
    main()
