"""How the time of a step grows, what a world takes of memory, and how long a program takes to its first step.

Each part is there if its result file is.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.scaling import bend, exponents

from .markdown import NONE, speed, table, three_digits
from .results import RESULTS, Result, Row, load, origin

SCALING, GPUS, MEMORY, START = "scaling_h200", "scaling_gpus_h200", "memory_h200", "start_h200"


def growth() -> str:
    """The sections whose results are committed, each with its heading."""
    return "\n\n".join(part for part in (*_scaling(), *_gpus(), *_memory(), *_start()) if part)


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


def _start() -> Iterator[str]:
    if _there(START):
        yield "## Start"
        yield (
            "Seconds of processes that make one step, with an empty cache of kernels (cold) and then with the kernels "
            "that the\nfirst left there (warm)."
        )
        yield start_table(load(START))
        yield origin(START)


def _there(name: str) -> bool:
    return (RESULTS / f"{name}.json").is_file()
