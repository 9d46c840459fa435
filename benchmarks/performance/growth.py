"""How the time of a step grows, memory of a world, the step of a single one, and the way to the first step.

Each part is there if its result file is.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.scaling import bend, exponents

from .markdown import NONE, ratio, speed, table, three_digits
from .results import RESULTS, Result, Row, load, origin

SCALING, GPUS, MEMORY, ONE_WORLD = "scaling_h200", "scaling_gpus_h200", "memory_h200", "one_world_2_cores"
START, START_ON_CPU = "start_h200", "start_2_cores"


def growth() -> str:
    """The sections whose results are committed, each with its heading."""
    return "\n\n".join(part for part in (*_scaling(), *_gpus(), *_memory(), *_one_world(), *_start()) if part)


def scaling_table(result: Result) -> str:
    """The time of a step at each size of each curve, the exponent to the size before, and where the curve bends."""
    lines = []
    for curve in dict.fromkeys(row["curve"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["curve"] == curve]
        points = [(row["value"], row["us_per_step"]) for row in rows]
        shown = (_point(row, slope) for row, slope in zip(rows, exponents(points), strict=True))
        bent = bend(points)
        lines.append([curve, "; ".join(shown), NONE if bent is None else f"{bent:,.0f}"])
    return table(["curve", "size: us a step (exponent)", "bends at"], lines, words=2)


def gpus_table(result: Result) -> str:
    """The time of a step and the speed of all GPUs together, and the speed over that of one GPU."""
    alone = {row["curve"]: row["steps_per_s"] for row in result["rows"] if row["value"] == 1}
    lines = [
        [
            row["curve"],
            f"{row['value']}",
            three_digits(row["us_per_step"]),
            speed(row["steps_per_s"]),
            f"{row['steps_per_s'] / alone[row['curve']]:.2f}x",
        ]
        for row in result["rows"]
    ]
    return table(["curve", "GPUs", "us a step", "steps a second", "over one GPU"], lines, words=1)


def memory_table(result: Result) -> str:
    """Bytes of a world in each batch, speeds if they were measured, and which batch did not fit."""
    timed = any("steps_per_s" in row for row in result["rows"])
    heads = ["model", "worlds", "KiB a world", "GiB", *(("steps a second",) if timed else ())]
    return table(heads, [_batch(row)[: len(heads)] for row in result["rows"]], words=1)


def one_world_table(result: Result) -> str:
    """Microseconds of a step of one world and of `mj_step`, medians with the range of the repeats, and their ratio."""
    lines = []
    for row in result["rows"]:
        times = (row[f"all_{key}"] for key in ("us_per_step", "mj_step_us"))
        shown = (f"{statistics.median(every):.1f} ({min(every):.1f} to {max(every):.1f})" for every in times)
        lines.append([row["model"], *shown, ratio(row["ratio"])])
    return table(["model", "simengine", "mj_step", "simengine over mj_step"], lines, words=1)


def start_table(result: Result) -> str:
    """Seconds from the start of Python to the first step, cold and warm."""
    names = ("import_s", "load_s", "step_s", "first_step_s")
    rows = [[row["case"], row["start"], *(f"{row[name]:.2f}" for name in names)] for row in result["rows"]]
    return table(["case", "kernels", "import", "load", "first step", "together"], rows, words=2)


def _point(row: Row, slope: float | None) -> str:
    return f"{row['value']:,}: {three_digits(row['us_per_step'])}" + ("" if slope is None else f" ({slope:.1f})")


def _batch(row: Row) -> list[str]:
    head = [row["model"], f"{row['worlds']:,}"]
    if "error" in row:
        return [*head, NONE, "does not fit", NONE]
    steps = speed(row["steps_per_s"]) if "steps_per_s" in row else NONE
    return [*head, f"{row['bytes_per_world'] / 1024:.1f}", f"{row['gib']:.2f}", steps]


def _scaling() -> Iterator[str]:
    if _there(SCALING):
        yield "## How the time of a step grows"
        yield (
            "Microseconds a step of all worlds. The exponent is the slope from the size before on logarithmic axes: 0 "
            "where\nmore costs nothing, 1 where the time grows in proportion. A curve bends where its exponent passes "
            "one half for good:\nbefore, a step takes as long as its launches and its longest chain of dependent work, "
            "and behind it the GPU is full."
        )
        yield scaling_table(load(SCALING))
        yield origin(SCALING)


def _gpus() -> Iterator[str]:
    if _there(GPUS):
        yield "## Several GPUs"
        yield (
            "Each GPU has a process of its own, and all begin a repeat together. Where each GPU has the same number of "
            "worlds, a\nstep of all takes as long as a step of one as long as nothing is shared. Where GPUs share a "
            "number of worlds, the time\nfalls until a GPU has too few worlds to be full."
        )
        yield gpus_table(load(GPUS))
        yield origin(GPUS)


def _memory() -> Iterator[str]:
    if _there(MEMORY):
        yield "## Memory of a world"
        yield "Memory of all arrays of a batch after it was stepped, with contacts and rows, for growing batches."
        yield memory_table(load(MEMORY))
        yield origin(MEMORY)


def _one_world() -> Iterator[str]:
    if _there(ONE_WORLD):
        result = load(ONE_WORLD)
        twice = sum(row["ratio"] <= 2 for row in result["rows"])
        yield "## One world on a CPU, beside mj_step"
        yield (
            "Microseconds of a step where Python makes one step of one world a call, with new controls in each, from "
            "the same\nstates, in turns. simengine is made for many worlds: most of a call for a small model is time "
            "of Python. It\ntakes at most twice as long as `mj_step` for "
            f"{twice} of {len(result['rows'])} models."
        )
        yield one_world_table(result)
        yield origin(ONE_WORLD)


def _start() -> Iterator[str]:
    if _there(START) or _there(START_ON_CPU):
        yield "## Start"
        yield (
            "Seconds of processes that make one step, with an empty cache of kernels (cold) and then with the kernels "
            "that the\nfirst left there (warm)."
        )
    for name, where in ((START, "On a GPU:"), (START_ON_CPU, "On two cores of a CPU:")):
        if _there(name):
            yield where
            yield start_table(load(name))
            yield origin(name)


def _there(name: str) -> bool:
    return (RESULTS / f"{name}.json").is_file()
