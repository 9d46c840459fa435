"""Tables and sentences on docs/simulated.md about lists that vary, made from the committed results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

Row = dict[str, Any]
EXECUTORS = {
    "serial": "`serial`",
    "streams:pieces=false": "call by call",
    "streams": "with pieces",
    "streams:completion=polling": "polling",
    "streams:completion=polling,chains=true": "polling, chains",
}
REASONS = ("as it is", "device alone", "host alone", "runs and waits without Python", "two threads launch kernels")
FAR = 1.15
"""Measured times that differ by less count as equal."""


def by_list(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Rows by list and executor."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row["workload"], {})[row["executor"]] = row
    return found


def ratios_table(rows: Sequence[Row]) -> list[str]:
    """Modelled over measured times."""
    lines = ["| list | " + " | ".join(EXECUTORS.values()) + " |", "|---" * (1 + len(EXECUTORS)) + "|"]
    for name, own in by_list(rows).items():
        cells = (f"{own[executor]['ratio']:.2f}" if executor in own else "" for executor in EXECUTORS)
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return lines


def later_table(rows: Sequence[Row]) -> list[str]:
    """Modelled over measured times where polling was not measured."""
    names = {executor: name for executor, name in EXECUTORS.items() if "polling" not in executor}
    lines = ["| list | " + " | ".join(names.values()) + " |", "|---" * (1 + len(names)) + "|"]
    for name, own in by_list(rows).items():
        cells = (f"{own[executor]['ratio']:.2f}" if executor in own else "" for executor in names)
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return lines


def reasons_table(rows: Sequence[Row]) -> list[str]:
    """What lists would take without some of the costs."""
    lines = ["| list | " + " | ".join(REASONS) + " |", "|---" * (1 + len(REASONS)) + "|"]
    return [
        *lines,
        *(f"| `{row['workload']}` | " + " | ".join(f"{row[w]:.0f}" for w in REASONS) + " |" for row in rows),
    ]


STAGES = ("serial", "serial, ahead", "graph-cached, ahead", "device", "bodies as long as kernels")
STAGES_WITHOUT = ("calls follow as in a graph", "both, and a free window")


def stages_table(rows: Sequence[Row]) -> list[str]:
    """What robots by stages take with `device`, and would take without some of its costs."""
    columns = (*STAGES, *STAGES_WITHOUT)
    lines = ["| list | " + " | ".join(columns) + " |", "|---" * (1 + len(columns)) + "|"]
    return [
        *lines,
        *(f"| `{row['workload']}` | " + " | ".join(f"{row[w]:.0f}" for w in columns) + " |" for row in rows),
    ]


def stages_sentences(rows: Sequence[Row]) -> list[str]:
    """What the page says of them."""
    of_counts, of_ahead, best = (
        [row[over] / row[under] for row in rows]
        for over, under in (("serial", "device"), ("serial, ahead", "device"), ("serial", STAGES_WITHOUT[1]))
    )
    longer, following = (
        100 * (1 - mean(row[what] / row["device"] for row in rows)) for what in (STAGES[-1], STAGES_WITHOUT[0])
    )
    return [
        f"{mean(of_counts):.2f} times as fast as `serial` by counts ({min(of_counts):.2f} to {max(of_counts):.2f})",
        f"{mean(of_ahead):.2f} times as fast as `serial` on the same list",
        f"bodies that last longer in workers cost it {longer:.0f} % of a step",
        f"the time from one call to the next {following:.0f} %",
        f"Without these and with a window that costs nothing it would be {mean(best):.2f} times as fast",
    ]


def mean(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    values = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(values) / len(values))


def ratios_of(rows: Sequence[Row], executor: str) -> list[float]:
    """Ratios of an executor on all lists but `clutter`."""
    return [row["ratio"] for row in rows if row["executor"] == executor and not row["workload"].startswith("clutter")]


def pairs(rows: Sequence[Row]) -> tuple[int, int]:
    """How many pairs of executors of a list the model puts in order, of those whose measured times differ."""
    good = total = 0
    for own in by_list(rows).values():
        for a, b in combinations(own.values(), 2):
            if max(a["measured_us"], b["measured_us"]) > FAR * min(a["measured_us"], b["measured_us"]):
                total += 1
                good += (a["measured_us"] < b["measured_us"]) == (a["modelled_us"] < b["modelled_us"])
    return good, total


def sentences(rows: Sequence[Row]) -> list[str]:
    """What the page says of the ratios."""
    serial, single, pieces = (ratios_of(rows, name) for name in ("serial", "streams:pieces=false", "streams"))
    polling = [ratio for name in EXECUTORS if "polling" in name for ratio in ratios_of(rows, name)]
    return [
        f"`serial` is within {100 * max(abs(ratio - 1) for ratio in serial):.0f} % on {len(serial)} lists",
        f"call by call `streams` is at {mean(single):.2f} in the mean ({min(single):.2f} to {max(single):.2f})",
        f"with pieces at {mean(pieces):.2f} ({min(pieces):.2f} to {max(pieces):.2f})",
        f"with polling at {mean(polling):.2f} ({min(polling):.2f} to {max(polling):.2f})",
        "{} of {} pairs of executors are in order".format(*pairs(rows)),
    ]


def later_sentences(rows: Sequence[Row]) -> list[str]:
    """What the page says of these ratios."""
    serial, pieces = (ratios_of(rows, name) for name in ("serial", "streams"))
    of_groups = [row["ratio"] for row in rows if row["executor"] == "streams" and ":worlds=16" in row["workload"]]
    return [
        f"`serial` is at {mean(serial):.2f} in the mean ({min(serial):.2f} to {max(serial):.2f})",
        f"with pieces at {mean(pieces):.2f} ({min(pieces):.2f} to {max(pieces):.2f})",
        f"lists of groups take {1 / max(of_groups):.1f} to {1 / min(of_groups):.1f} times as long as the model says",
    ]


def reason_sentences(rows: Sequence[Row]) -> list[str]:
    """What the page says of the reasons."""
    of = {row["workload"]: row for row in rows}
    robots = [row for name, row in of.items() if name.endswith("=stages")]
    shares = [row["device alone"] / row["as it is"] for row in robots]
    least, most = (f"{100 * share:.0f}" for share in (min(shares), max(shares)))
    python = {name: row["as it is"] - row["runs and waits without Python"] for name, row in of.items()}
    events = max(1 - row["no events and waits"] / row["as it is"] for row in rows)
    return [
        f"the device by itself takes {least} to {most} % of a step",
        f"`skipping` spends {python['skipping']:.0f} of {of['skipping']['as it is']:.0f} us in Python",
        f"`population` {python['population']:.0f} of {of['population']['as it is']:.0f} us",
        f"events and waits between streams take at most {100 * events:.0f} % of a step",
    ]
