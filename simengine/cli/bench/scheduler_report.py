"""The report of `simengine bench scheduler`: ratios, tables, and a chart."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from simengine.cli.bench.published import PUBLISHED, published_ratio
from simengine.cli.results.output import console
from simengine.cli.simulations.workloads import FIVE, is_whole
from simengine_scheduler.study.specs import Spec

_RATIOS = ("over_serial", "over_graph_cached", "over_best_serial")
_WIDTH = 180
_LEGEND = """\
steps/s: of worlds, inputs or images. /serial, /graph-c.: speed over serial and graph-cached on this list, and /best s.
over the best serial on any list of the same worlds, kernel by kernel. paper: over serial, as published of the systems
below. calls: kernels a step, with their median duration [us]. check, issue: host's us for hazards and launch of one.
dispatch: us from the end of what a call waited for to its start, while times are recorded.
waits: asked for by hazards/made/saved. running: mean kernels at a time, of those that the hazards would allow. idle:
share of the time without a kernel. order, bits: whether all recorded steps were legal, and the results as serial's."""


def add_ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add ratios of speed to each row, and the published ratio of its counterpart.

    `over_serial` and `over_graph_cached` compare with those executors on the same list. `over_best_serial` compares
    with the fastest `serial` in the row's family, which steps the same worlds with other shards or another emission.
    Whole steps are not lists of kernels, so that they never count as the fastest `serial`.
    """
    speed = {(row["workload"], row["executor"]): row["units_per_s"] for row in rows}
    best: dict[str, float] = {}
    for row in rows:
        if row["executor"] == "serial" and row["units_per_s"] and not is_whole(Spec.parse(row["workload"])):
            best[row["family"]] = max(best.get(row["family"], 0.0), row["units_per_s"])
    for row in rows:
        others = {
            "over_serial": speed.get((row["workload"], "serial")),
            "over_graph_cached": speed.get((row["workload"], "graph-cached")),
            "over_best_serial": best.get(row["family"]),
        }
        own = row["units_per_s"]
        row |= {name: own / other if own and other else None for name, other in others.items()}
        published = published_ratio(row["family"], row["executor"])
        row["published"] = {"system": published[0], "over_serial": published[1]} if published else None
    return rows


def means_of_five(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return mean ratios of each executor over the five simulations, if all five were measured with equal options."""
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in rows:
        name, _, options = row["workload"].partition(":")
        if name in FIVE:
            found.setdefault((options, row["executor"]), {})[name] = row
    means = []
    for (options, executor), of_name in found.items():
        if len(of_name) == len(FIVE):
            mean: dict[str, Any] = {"options": options, "executor": executor}
            for ratio in _RATIOS:
                values = [row[ratio] for row in of_name.values() if row[ratio]]
                mean[ratio] = statistics.fmean(values) if len(values) == len(FIVE) else None
            means.append(mean)
    return means


def print_means(means: Sequence[dict[str, Any]]) -> None:
    """Print the mean ratios over the five simulations."""
    if not means:
        return
    table = Table(title="mean of the five simulations", title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    for heading in ("options", "executor", "/serial", "/graph-c.", "/best s."):
        side: Any = "left" if heading in ("options", "executor") else "right"
        table.add_column(heading, justify=side, no_wrap=True)
    for mean in means:
        shown = ("" if mean[ratio] is None else f"{mean[ratio]:.2f}" for ratio in _RATIOS)
        table.add_row(mean["options"], mean["executor"], *shown)
    console(_WIDTH).print(table)


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print a table of each workload, without its empty columns, and then the published figures."""
    out = console(_WIDTH)
    for workload in dict.fromkeys(row["workload"] for row in rows):
        mine = [row for row in rows if row["workload"] == workload]
        cells = [_cells(row) for row in mine]
        if mine[0]["bound"]:
            out.print(_bound_line(workload, mine[0]["bound"]))
        headings = [name for name in cells[0] if any(cell[name] for cell in cells)]
        table = Table(title=workload, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
        for heading in headings:
            side: Any = "left" if heading in ("executor", "order, bits") else "right"
            table.add_column(heading, justify=side, no_wrap=True)
        for cell in cells:
            table.add_row(*(cell[name] for name in headings))
        out.print(table)
        for row in mine:
            for name in ("error", "violation", "reason"):
                if row[name]:
                    out.print(f"{row['executor'] or workload}: {row[name]}")
        out.print()
    out.print(_LEGEND)
    for entry in PUBLISHED:
        out.print(f"{entry['system']} (here {entry['counterpart']}): {entry['says']}")


def _bound_line(workload: str, bound: dict[str, Any]) -> str:
    launch = "" if bound["launch_us"] is None else f", and {bound['launch_us']:,.0f} us for launches one by one"
    return (
        f"{workload}: {bound['calls']:,.0f} calls a step and {bound['awaits']:,.0f} waits of the host; "
        f"{bound['work_us']:,.0f} us of work, {bound['chain_us']:,.0f} us in the longest chain "
        f"(up to {bound['parallelism']:.2f} calls at once){launch}"
    )


def _cells(row: dict[str, Any]) -> dict[str, str]:
    def number(name: str, form: str) -> str:
        return "" if row[name] is None else format(row[name], form)

    waits = [number(f"waits_{name}", ".0f") or "?" for name in ("asked", "inserted", "removed")]
    verdict = ("legal" if row["legal"] else "ILLEGAL") + (", equal" if row["equal"] else ", DIFFERENT")
    return {
        "executor": row["executor"],
        "us a step": number("us_per_step", ",.1f"),
        "steps/s": number("units_per_s", ",.0f"),
        "/serial": number("over_serial", ".2f"),
        "paper": f"{row['published']['over_serial']:.2f}" if row["published"] else "",
        "/graph-c.": number("over_graph_cached", ".2f"),
        "/best s.": number("over_best_serial", ".2f"),
        "calls": number("kernels_per_step", ".0f"),
        "us each": number("kernel_us", ".1f"),
        "check": number("check_us", ".1f"),
        "issue": number("issue_us", ".1f"),
        "dispatch": number("dispatch_us", ".1f"),
        "waits": "/".join(waits) if row["waits_inserted"] else "",
        "running": f"{row['concurrency']:.2f}/{row['parallelism']:.2f}" if row["concurrency"] is not None else "",
        "idle": number("idle_share", ".0%"),
        "order, bits": "FAILED" if row["error"] else verdict,
    }


def plot_ratios(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write a PNG with a bar chart for each workload.

    Bars show the speed of every executor over `serial`. Marks show published figures.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    workloads = list(dict.fromkeys(row["workload"] for row in rows if row["over_serial"]))
    columns = min(3, max(1, len(workloads)))
    most = max((sum(row["workload"] == w for row in rows) for w in workloads), default=1)
    lines = -(-max(1, len(workloads)) // columns)
    figure = Figure(figsize=(max(7.0, 5.4 * columns), (0.8 + 0.24 * most) * lines + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat[len(workloads) :]:
        axes.set_axis_off()
    for axes, workload in zip(grid.flat, workloads, strict=False):
        _plot_workload(axes, workload, [row for row in rows if row["workload"] == workload and row["over_serial"]])
    title = "bars: speed over serial on the same list; circles: over the best serial; diamonds: published"
    figure.suptitle(title, fontsize="medium")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", dpi=110)


def _plot_workload(axes: Any, workload: str, rows: Sequence[dict[str, Any]]) -> None:
    places = range(len(rows))
    ratios = [row["over_serial"] for row in rows]
    colours = ["tab:blue" if row["good"] else "tab:red" for row in rows]
    bars = axes.barh(places, ratios, color=colours, height=0.7)
    axes.bar_label(bars, fmt="%.2f", padding=3, fontsize="small")
    published = [(row["published"]["over_serial"], i) for i, row in enumerate(rows) if row["published"]]
    best = [(row["over_best_serial"], i) for i, row in enumerate(rows) if row["over_best_serial"]]
    for marks, style in ((published, {"marker": "D", "color": "black"}), (best, {"marker": "o", "color": "orange"})):
        if marks:
            axes.scatter(*zip(*marks, strict=True), s=18, zorder=3, **style)
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.set_yticks(places, [row["executor"] for row in rows], fontsize="small")
    axes.set_xlim(0, 1.18 * max([*ratios, *(ratio for ratio, _ in published + best), 1.0]))
    axes.invert_yaxis()
    axes.set_title(workload, fontsize="medium", loc="left")
