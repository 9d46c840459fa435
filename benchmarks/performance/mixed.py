"""Tables of different models in one batch, by executor and list."""

from __future__ import annotations

from .lists import NAMES
from .markdown import NONE, ratio, span, table, three_digits
from .results import Result, Row

ORDER = ("graph-cached", "device", "pipeline", "streams", "serial", "graph")


def six_table(result: Result, again: Result) -> str:
    """Duration of a step of all worlds [us], with two figures if a later run has the case, too."""
    sizes = sorted({row["worlds_each"] for row in result["rows"]})
    columns = ["executor", "list", "kernels a step", *(f"{size:,} worlds of each" for size in sizes)]
    lines = []
    for executor, emission in _kinds(result):
        rows = [_row(result, size, executor, emission) for size in sizes]
        repeated = [_row(again, size, executor, emission) for size in sizes]
        kernels = " / ".join(f"{row['kernels_per_step']:.0f}" for row in rows)
        cells = [_runs(row, other) for row, other in zip(rows, repeated, strict=True)]
        lines.append([f"`{executor}`", _list(executor, emission), kernels, *cells])
    default = [_row(result, size, "graph-cached", "whole") for size in sizes]
    for name, key in (("simengine", "one_after_another_us"), ("MuJoCo Warp", "peer_us")):
        times = [f"{row[key]:,.0f}" for row in default]
        lines.append([f"{name}, the models one after another", NONE, NONE, *times])
    lines.append(["MuJoCo Warp's time over the first row", NONE, NONE, *(ratio(row["over_peer"]) for row in default)])
    return table(columns, lines, words=2)


def robots_table(result: Result) -> str:
    """Duration of a step [us], and steps of single worlds per second."""
    columns = ["executor", "list", "kernels a step", "us a step", "world steps a second"]
    lines = []
    for executor, emission in _kinds(result):
        row = next(row for row in result["rows"] if (row["executor"], row["emission"]) == (executor, emission))
        speed = f"{three_digits(row['world_steps_per_s'] / 1e6)} M"
        lines.append(
            [
                f"`{executor}`",
                _list(executor, emission),
                str(row["kernels_per_step"]),
                f"{row['us_per_step']:,.0f}",
                speed,
            ]
        )
    return table(columns, lines, words=2)


def _kinds(result: Result) -> list[tuple[str, str]]:
    """Executors and emissions, in the order of the tables."""
    found = dict.fromkeys((row["executor"], row["emission"]) for row in result["rows"])
    return sorted(found, key=lambda kind: (ORDER.index(kind[0]), kind[1] != "whole"))


def _list(executor: str, emission: str) -> str:
    return NAMES[emission] + (", two shards of each model" if executor == "pipeline" else "")


def _row(result: Result, size: int, executor: str, emission: str) -> Row:
    """The row of a case; empty if there is none."""
    wanted = (size, executor, emission)
    rows = (row for row in result["rows"] if (row["worlds_each"], row["executor"], row["emission"]) == wanted)
    return next(rows, {})


def _runs(row: Row, other: Row) -> str:
    return span([run["us_per_step"] for run in (row, other) if run])
