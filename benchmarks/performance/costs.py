"""Tables of the scheduler's own costs: hazard checks, and lists of several processes."""

from __future__ import annotations

from .markdown import NONE, table
from .results import Result, Row

_LISTS = {
    "worlds": "shards of a batched simulation, step after step",
    "readers": "all read the same buffers and write their own",
    "random": "200 random combinations of 64 segments, again and again",
    "fresh": "no combination of segments comes twice",
}


def hazards_table(result: Result) -> str:
    """Time of a call on its way through the window [us]."""
    rows = {row["list"]: row for row in result["lists"]}
    lines = [[text, _us(rows[name]["median_ns"]), _us(rows[name]["best_ns"])] for name, text in _LISTS.items()]
    return table(["list", "median, us a call", "least"], lines)


def clients_table(calls: Result, graphs: Result) -> str:
    """Time until the lists of all clients have run [ms], with one owner of the GPU and with separate processes."""
    lines = []
    for name, result in (("calls on streams", calls), ("lists as graphs", graphs)):
        for row in result["rows"]:
            ratio = f"{row['speedup_over_at_once']:.2f}"
            trip = f"{row['round_trip_us'] / 1e3:.2f}" if row.get("round_trip_us") else NONE
            lines.append([name, str(row["clients"]), _ms(row, "owner"), _ms(row, "at_once"), ratio, trip])
    columns = ["lists", "clients", "one owner [ms]", "own processes [ms]", "own over owner", "round trip [ms]"]
    return table(columns, lines)


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e3:.2f}"


def _ms(row: Row, name: str) -> str:
    every = row["all"][name]
    return f"{1e3 * row[f'{name}_s']:.1f} ({1e3 * min(every):.1f} to {1e3 * max(every):.1f})"
