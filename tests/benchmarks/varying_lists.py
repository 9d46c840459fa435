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
    return "form=fixed" not in name and "-ahead" not in name and not name.startswith("wired")


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


CALL_BY_CALL = "streams:pieces=false"
POLLING = "streams:completion=polling"
CHAINS = "streams:completion=polling,chains=true"
STAGES = [
    "| list | `serial` | bound | `serial` over bound | over polling | over polling with chains | over `streams` |",
    "|---|---|---|---|---|---|---|",
]


def by_stages(rows: Sequence[Row]) -> dict[str, tuple[float, ...]]:
    """For each model by stages: `serial` and the bound [us], and `serial` over bound, polling, chains and `streams`."""
    found = {}
    for name, of in by_list(rows).items():
        model, _, form = name.partition(":")
        if form != "emission=stages":
            continue
        us = {executor: float(row["us_per_step"]) for executor, row in of.items()}
        serial, bound = us["serial"], float(of["serial"]["bound"]["least_us"])
        others = (bound, us[POLLING], us[CHAINS], min(us["streams"], us[CALL_BY_CALL]))
        found[model] = (serial, bound, *(serial / other for other in others))
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
    "| list | calls | bound | `serial` | `streams`, call by call | `streams` | best window | kept graphs | `auto` |",
    "|---|---|---|---|---|---|---|---|---|",
]


def pieces_table(rows: Sequence[Row]) -> list[str]:
    """What windows gain, in microseconds a step."""
    lines = list(PIECES)
    for name, of in by_list(rows).items():
        bound = of["serial"]["bound"]

        def us(executor: str, of: dict[str, Row] = of) -> str:
            return f"{of[executor]['us_per_step']:,.0f}" if executor in of else ""

        times = (us("serial"), us(CALL_BY_CALL), us("streams"), us(best(of, "window")["executor"]))
        cells = [
            f"`{name}`",
            f"{bound['calls']:.0f}",
            f"{bound['least_us']:,.0f}",
            *times,
            us("graph-cached"),
            us("auto"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def pieces_sentences(rows: Sequence[Row]) -> list[str]:
    """What the page says of that table."""
    lists = by_list(rows)
    varying = [name for name in lists if varies(name)]
    networks = [name for name in varying if ":" not in name and name != "pile"]

    def us(name: str, executor: str) -> float:
        row = best(lists[name], "window") if executor == "window" else lists[name][executor]
        return float(row["us_per_step"])

    def gained(over: str, by: str, names: Iterable[str]) -> str:
        found = [us(name, over) / us(name, by) for name in names]
        return f"{statistics.geometric_mean(found):.2f} times as fast ({min(found):.2f} to {max(found):.2f})"

    with_graphs = [name for name in varying if "graph-cached" in lists[name]]
    shares = [
        of["auto"]["us_per_step"] / min(row["us_per_step"] for name, row in of.items() if name != "auto")
        for of in lists.values()
        if "auto" in of
    ]
    reached = {name: lists[name]["serial"]["bound"]["least_us"] / us(name, "window") for name in varying}
    return [
        f"On the {len(varying)} lists that vary, the best window is {gained('serial', 'window', varying)} as `serial`",
        f"over kept graphs on {len(with_graphs)} of them it is {gained('graph-cached', 'window', with_graphs)}",
        f"`streams` is {gained(CALL_BY_CALL, 'streams', networks)} as call by call on the {len(networks)} networks",
        f"{gained(CALL_BY_CALL, 'streams', (name for name in varying if name not in networks))} on the lists of robots",
        f"It reaches 90 % of the bound on {sum(share >= 0.9 for share in reached.values())} of the {len(varying)}",
        f"`auto` is within 5 % of the fastest on {sum(s <= 1.05 for s in shares)} of {len(shares)} lists",
        f"and takes at most {max(shares):.2f} times as long",
        *(
            f"`{name}` takes the best window {us(name, 'window') / us(name, other):.2f} times as long as `{other}`"
            for name in varying
            for other in ("serial", "graph-cached")
            if other in lists[name] and us(name, "window") > 1.05 * us(name, other)
        ),
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
