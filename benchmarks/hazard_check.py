"""Measures the window's hazard check: insertion, check and completion of one call, in processor time [ns].

    python benchmarks/hazard_check.py [--window 32] [--segments-per-call 10] [--json FILE]

The window stays full: for each measured call, the oldest call of the window is started and completed, and the next call
is inserted. Calls are built beforehand on interned segments. Four lists are measured:

    worlds    a batched simulation: shards in turn, each a pipeline of stages over its own buffers, for many steps
    readers   all calls read the same buffers, and each writes its own
    random    200 random combinations out of 64 segments, repeated, which give very many hazards
    fresh     every call has a new combination of segments, as when a list comes for the first time

Starting a call, which takes it off the ready list, is not part of the check. Its time is measured separately and
subtracted. The target is at most 1500 ns for `worlds`, in Python, with a window of 32 and 10 segments for each call.
`random` and `fresh` show how much longer other lists take.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import sys
from pathlib import Path
from time import process_time_ns

from simengine.cli.results.machine import result_header
from simengine.cli.results.result_file import write_json
from simengine_scheduler import KernelCall, PythonLaunch, Segments, Window

CALLS = 2000  # calls of a list, which are timed together
LISTS = ("worlds", "readers", "random", "fresh")
LAUNCH = PythonLaunch(lambda: None)


def make_call(name: str, segments: list[int]) -> KernelCall:
    """Make a call that uses segments like a stage: it reads about two thirds, writes the rest, and updates the last."""
    written = max(1, len(segments) // 3)
    return KernelCall(name, LAUNCH, tuple(segments[:-written]), tuple(segments[-written:-1]), tuple(segments[-1:]))


def build(kind: str, per_call: int, table: Segments) -> list[KernelCall]:
    """Build a list of one kind."""
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
    """Run a list through a window in program order, and return the mean time of a call [ns]."""
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
    """The median time of starting a call in a full window [ns]."""
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
    """Median and best time of a call [ns] over several runs of one list, without the time of starting calls."""
    table = Segments()
    calls = build(kind, per_call, table)
    window = Window(table, capacity)
    samples = []
    for _ in range(repeats):
        if kind == "fresh":
            window = Window(table, capacity)  # a new window knows no combinations
        samples.append(batch_nanoseconds(calls, window) - start)
    timed = samples[5:] if kind != "fresh" else samples  # in the first runs the window learns the combinations
    return {"list": kind, "median_ns": round(statistics.median(timed)), "best_ns": round(min(timed))}


def main() -> None:
    """Measure all lists, and print or write the times."""
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
