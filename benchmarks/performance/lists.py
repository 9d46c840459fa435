"""Tables of kernel lists under every executor: duration of a step [us], with the range of the repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .markdown import NONE, percent, table
from .results import Row

NAMES = {"counted": "waits for counts", "ahead": "fixed", "whole": "whole steps"}
"""Names of the kinds of lists in tables, by their emission."""

EXECUTORS = (
    "serial",
    "streams:completion=polling",
    "streams",
    "streams:stream_policy=kesco",
    "streams:stream_policy=opara",
    "pipeline",
    "graph",
    "graph-cached",
    "graph-cached:stream_policy=opara",
    "device",
    "device:tiled=false",
    "auto",
)

FIVE = ("ant", "half_cheetah", "walker2d", "grasp", "humanoid")
"""The simulations of the ACS paper."""

FIXED = {**{name: f"{name}:emission=ahead" for name in (*FIVE, "mixed")}, "wired network": "wired"}
COUNTED = {name: name for name in (*FIVE, "mixed", "population", "pile")}
LARGE = {name: f"{name}:worlds=8192,emission=ahead" for name in FIVE}
WHOLE = {name: f"{name}:emission=whole" for name in (*FIVE, "mixed")}


def repeats(rows: Sequence[Row]) -> int:
    """The number of repeats of each row.

    Raises:
        ValueError: the rows have different numbers of repeats.
    """
    (count,) = {row["repeats"] for row in rows}
    return int(count)


def executors_table(rows: Sequence[Row], workloads: Mapping[str, str]) -> str:
    """A line for each executor that ran some list, and a column for each list. The fastest of a column is bold.

    Args:
        rows: rows of `simengine bench scheduler`.
        workloads: name of a list in the rows, by the name of its column.
    """
    found = by_case(rows)
    best = {name: min(row["us_per_step"] for row in rows if row["workload"] == name) for name in workloads.values()}
    lines = []
    for executor in EXECUTORS:
        cells = [_cell(found.get((name, executor)), best[name]) for name in workloads.values()]
        if set(cells) != {NONE}:
            lines.append([f"`{executor}`", *cells])
    return table(["executor", *workloads], lines)


def whole_table(rows: Sequence[Row]) -> str:
    """Whole steps and the fixed list of the same worlds, both as kept graphs and on one stream."""
    found = by_case(rows)
    names = [name for name in WHOLE if not same_list(rows, name)]
    lines = []
    for kind, workloads in (("whole steps", WHOLE), ("fixed list", FIXED)):
        for executor in ("graph-cached", "serial"):
            of = [found[workloads[name], executor] for name in names]
            lines.append([f"{kind}, `{executor}`", *(_cell(row) for row in of)])
        lines.append([f"{kind}, kernels a step", *(f"{row['kernels_per_step']:.0f}" for row in of)])
    return table(["", *names], lines)


def shards_table(rows: Sequence[Row]) -> str:
    """Lists that wait for counts, in one shard and in four: the cost of splitting, and the gain of `auto`."""
    found = by_case(rows)
    lines = []
    for name in FIVE:
        split = f"{name}:shards=4"
        serial, of_four = found[name, "serial"], found[split, "serial"]
        auto, auto_of_four = found[name, "auto"], found[split, "auto"]
        gains = [over(serial, auto), over(of_four, auto_of_four), over(serial, auto_of_four)]
        cells = [_cell(row) for row in (serial, auto, of_four, auto_of_four)]
        lines.append([name, *cells, *(f"{gain:.2f}" for gain in gains)])
    columns = [
        "model",
        "`serial`, 1 shard",
        "`auto`, 1 shard",
        "`serial`, 4 shards",
        "`auto`, 4 shards",
        "`auto` over `serial`, both 1 shard",
        "both 4 shards",
        "`auto` on 4 over `serial` on 1",
    ]
    return table(columns, lines)


def lost_by_shards(rows: Sequence[Row]) -> str:
    """For how many models `auto` on four shards is slower than `serial` on one, such as "4 of 5 models"."""
    found = by_case(rows)
    slower = [over(found[name, "serial"], found[f"{name}:shards=4", "auto"]) < 1 for name in FIVE]
    return f"{sum(slower)} of {len(slower)} models"


def kept_graphs_table(rows: Sequence[Row]) -> str:
    """`auto` on lists that wait for counts, with kept graphs of the same list and of the fixed list."""
    found = by_case(rows)
    lines = []
    for name in COUNTED:
        auto, kept = found[name, "auto"], found[name, "graph-cached"]
        fixed = found.get((FIXED.get(name, ""), "graph-cached"))
        compared = f"{over(kept, auto):.2f}"
        lines.append([name, f"`{chosen(auto)}`", _cell(auto), _cell(kept), compared, _cell(fixed)])
    columns = [
        "list",
        "`auto` chose",
        "`auto`",
        "`graph-cached`",
        "`auto` over `graph-cached`",
        "`graph-cached`, fixed list",
    ]
    return table(columns, lines, words=2)


def by_case(rows: Sequence[Row]) -> dict[tuple[str, str], Row]:
    """Rows by workload and executor."""
    return {(row["workload"], row["executor"]): row for row in rows}


def over(slow: Row, fast: Row) -> float:
    """The speed of the second row divided by that of the first."""
    return float(slow["us_per_step"] / fast["us_per_step"])


def chosen(auto: Row) -> str:
    """The executor that `auto` chose, which is the first word of its reason."""
    return str(auto["reason"].split()[0])


def same_list(rows: Sequence[Row], name: str) -> bool:
    """Whether a model has no whole steps, so that the rows for whole steps ran the fixed list."""
    found = by_case(rows)
    kernels = [found[workloads[name], "graph-cached"]["kernels_per_step"] for workloads in (WHOLE, FIXED)]
    return bool(kernels[0] == kernels[1])


def coverage(rows: Sequence[Row]) -> dict[str, int]:
    """The number of lists, and the number of lists that each executor ran."""
    counts = {executor: sum(row["executor"] == executor for row in rows) for executor in EXECUTORS}
    return {"lists": len({row["workload"] for row in rows}), **counts}


def _cell(row: Row | None, best: float | None = None) -> str:
    if row is None:
        return NONE
    time = f"{row['us_per_step']:,.0f}"
    return f"{f'**{time}**' if row['us_per_step'] == best else time} ({percent(row['spread'])})"
