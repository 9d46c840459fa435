"""The table of lists that vary, on a GPU, as docs/executors.md has it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

Row = dict[str, Any]
HEAD = [
    "| list | calls | work | longest chain | launches | `serial` | window | graphs | `auto` |",
    "|---|---|---|---|---|---|---|---|---|",
]


def by_list(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Rows by list and executor."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row["workload"], {})[row["executor"]] = row
    return found


def best(of: dict[str, Row], kind: str) -> Row:
    """The fastest executor of a kind: with a window, or with graphs."""
    names = [name for name in of if name not in ("auto", "serial") and name.startswith("graph") == (kind == "graphs")]
    return min((of[name] for name in names), key=lambda row: float(row["us_per_step"]))


def varies(name: str) -> bool:
    """Whether the form of a list is new in each step."""
    return "form=fixed" not in name and not name.startswith("wired")


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table, in microseconds a step."""
    lines = list(HEAD)
    for name, of in by_list(rows).items():
        bound = of["serial"]["bound"]
        numbers = [bound[part] for part in ("calls", "work_us", "chain_us", "launch_us")]
        numbers.append(of["serial"]["us_per_step"])
        chosen = [
            f"{row['us_per_step']:,.0f} (`{row['executor']}`)" for row in (best(of, "window"), best(of, "graphs"))
        ]
        cells = [f"`{name}`", *(f"{number:,.0f}" for number in numbers), *chosen, f"{of['auto']['us_per_step']:,.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def sentences(rows: Sequence[Row]) -> list[str]:
    """What the page says of the table."""
    lists = by_list(rows)
    varying = {name: of for name, of in lists.items() if varies(name)}

    def gains(over: str) -> list[float]:
        others = [best(of, "graphs") if over == "graphs" else of["serial"] for of in varying.values()]
        pairs = zip(others, varying.values(), strict=True)
        return [other["us_per_step"] / best(of, "window")["us_per_step"] for other, of in pairs]

    def gained(over: str) -> str:
        found = gains(over)
        mean = statistics.geometric_mean(found)
        return f"{mean:.2f} times as fast as {over} in the mean ({min(found):.2f} to {max(found):.2f})"

    shares = []
    for of in lists.values():
        fastest = min(row["us_per_step"] for name, row in of.items() if name != "auto")
        shares.append(of["auto"]["us_per_step"] / fastest)
    within = sum(share <= 1.05 for share in shares)
    return [
        f"On the {len(varying)} lists whose form is new in each step, the best executor with a window is",
        gained("graphs"),
        gained("`serial`"),
        f"`auto` is within 5 % of the fastest on {within} of {len(lists)} lists",
        f"and takes at most {max(shares):.2f} times as long",
    ]


STAGES = [
    "| list | `serial` | bound | `serial` over bound | `serial` over `streams:completion=polling` "
    "| `serial` over the best of `streams` |",
    "|---|---|---|---|---|---|",
]


def by_stages(rows: Sequence[Row]) -> dict[str, tuple[float, float, float, float, float]]:
    """For each model by stages: `serial` and the bound [us], and `serial` over the bound, polling and streams."""
    found = {}
    for name, of in by_list(rows).items():
        model, _, form = name.partition(":")
        if form != "emission=stages":
            continue
        serial, bound = of["serial"]["us_per_step"], of["serial"]["bound"]["least_us"]
        polling = of["streams:completion=polling"]["us_per_step"]
        chained = min(row["us_per_step"] for name, row in of.items() if name in ("streams", "streams:streams=3"))
        found[model] = (serial, bound, serial / bound, serial / polling, serial / chained)
    return found


def stages_table(rows: Sequence[Row]) -> list[str]:
    """What a window could gain at most on the lists of the ACS paper, and what windows gained."""
    lines = list(STAGES)
    for model, (serial, bound, *ratios) in by_stages(rows).items():
        cells = [model, f"{serial:.0f}", f"{bound:.0f}", *(f"{ratio:.2f}" for ratio in ratios)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def reach_of(rows: Sequence[Row], column: int) -> str:
    """The least and the most of a column of `by_stages`."""
    found = [of[column] for of in by_stages(rows).values()]
    return f"{min(found):.2f} to {max(found):.2f}"


PIECES = [
    "| list | calls | `serial` | `streams`, call by call | `streams` | kept graphs | `auto` |",
    "|---|---|---|---|---|---|---|",
]
CALL_BY_CALL = "streams:pieces=false"


def pieces_table(rows: Sequence[Row]) -> list[str]:
    """What runs of calls that are launched as graphs gain, in microseconds a step."""
    lines = list(PIECES)
    for name, of in by_list(rows).items():
        executors = ("serial", CALL_BY_CALL, "streams", "graph-cached", "auto")
        times = (f"{of[each]['us_per_step']:,.0f}" if each in of else "" for each in executors)
        lines.append(f"| `{name}` | {of['serial']['bound']['calls']:.0f} | {' | '.join(times)} |")
    return lines


def pieces_sentences(rows: Sequence[Row]) -> list[str]:
    """What the page says of that table."""
    lists = by_list(rows)

    def gained(over: str, names: Iterable[str]) -> str:
        found = [lists[name][over]["us_per_step"] / lists[name]["streams"]["us_per_step"] for name in names]
        return f"{statistics.geometric_mean(found):.2f} times as fast ({min(found):.2f} to {max(found):.2f})"

    varying = [name for name in lists if varies(name)]
    networks = [name for name in varying if ":" not in name and name != "pile"]
    robots = [name for name in varying if name not in networks]
    with_graphs = [name for name in varying if "graph-cached" in lists[name]]
    windows = [lists[name]["serial"]["us_per_step"] / best(lists[name], "window")["us_per_step"] for name in varying]
    shares = []
    for of in lists.values():
        fastest = min(row["us_per_step"] for name, row in of.items() if name != "auto")
        shares.append(of["auto"]["us_per_step"] / fastest)
    return [
        f"On the {len(networks)} networks whose lists vary, `streams` is {gained(CALL_BY_CALL, networks)} as call by",
        f"{gained('serial', networks)} as `serial`",
        f"{gained('graph-cached', networks)} as kept graphs",
        f"On the {len(robots)} lists of robots and heaps it is {gained(CALL_BY_CALL, robots)} as call by call",
        f"On all {len(varying)} lists that vary it is {gained('serial', varying)} as `serial`",
        f"on the {len(with_graphs)} that kept graphs ran {gained('graph-cached', with_graphs)} as these",
        f"and the best executor with a window {statistics.geometric_mean(windows):.2f} times",
        f"`auto` is within 5 % of the fastest on {sum(s <= 1.05 for s in shares)} of {len(lists)} lists",
        f"and takes at most {max(shares):.2f} times as long",
    ]


TRAINING = [
    "| way | lists | us a step | environment steps a second | over one by one |",
    "|---|---|---|---|---|",
]


def training_table(rows: Sequence[Row]) -> list[str]:
    """The table of a training of many robots."""
    lines = list(TRAINING)
    (alone,) = (row for row in rows if row["way"] == "one by one")
    for row in rows:
        rate = row["environment_steps_per_s"]
        cells = [
            row["way"],
            f"`{row['executor']}`, `{row['emission']}`",
            f"{row['us_per_step']:,.0f}",
            f"{rate:,}",
            f"{rate / alone['environment_steps_per_s']:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines
