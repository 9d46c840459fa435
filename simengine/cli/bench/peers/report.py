"""The table and the plot of a comparison of engines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from simengine.cli.results.output import console

Row = dict[str, Any]
_WIDTH = 170
_LEGEND = """\
ours/its: speed of simengine over that of the engine. spread: slowest less fastest repeat over the median. qacc error:
largest and median relative error of accelerations against MuJoCo's C over sampled worlds, in the states in which timed
steps start; outside: worlds beyond the bound, without those in which rounding decides MuJoCo's own; ROUNDING: it does
in most worlds, so that they tell nothing. room: contacts and rows of a world for which the engine had memory. contacts,
rows: what MuJoCo finds in a world, in the median."""


def print_report(rows: Sequence[Row], models: Sequence[Row], changes: Sequence[str]) -> None:
    """Print a table of the cases, what was changed for all engines, and what failed."""
    out = console(_WIDTH)
    of_model = {(model["model"], model["worlds"]): model for model in models}
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for heading in ("model", "worlds", "engine", "on"):
        table.add_column(heading, no_wrap=True)
    for heading in ("steps/s", "spread", "us a step", "ours/its", "first [s]", "qacc error", "outside", "room"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("contacts, rows", justify="right", no_wrap=True)
    for row in rows:
        first = row["engine"] == rows[0]["engine"]
        table.add_row(*_cells(row), _counts(of_model.get((row["model"], row["worlds"]))) if first else "")
    out.print(table)
    for row in rows:
        if "error" in row:
            out.print(f"{row['engine']} on {row['model']}, {row['worlds']} worlds: {row['error']}")
    for change in changes:
        out.print(change)
    out.print(_LEGEND)


def _cells(row: Row) -> list[str]:
    head = [row["model"], f"{row['worlds']:,}", row["engine"], row["runs_on"]]
    if "error" in row:
        return [*head, "FAILED", *[""] * 7]
    room = f"{row['room_contacts']}, {row['room_rows']}" if "room_rows" in row else ""
    outside = f"{row['worlds_outside'] - row['worlds_borderline']} of {row['checked_worlds']}"
    return [
        *head,
        f"{row['steps_per_s']:,}",
        f"{row['spread']:.0%}",
        f"{row['us_per_step']:,}",
        f"{row['ratio']:.2f}" if "ratio" in row else "",
        f"{row['first_step_s']}",
        f"{row['qacc_error']:.0e}, {row['qacc_error_median']:.0e}",
        f"{outside}{_verdict(row)}",
        room,
    ]


def _verdict(row: Row) -> str:
    """What stands behind the worlds outside, unless the engine agrees."""
    if row["agrees"]:
        return ""
    return " ROUNDING" if row["worlds_outside"] == row["worlds_borderline"] else " DIFFERS"


def _counts(model: Row | None) -> str:
    return f"{model['contacts']:.0f}, {model['rows']:.0f}" if model and "rows" in model else ""


def plot_speeds(rows: Sequence[Row], path: Path) -> None:
    """Write a picture with a panel for each model: steps a second over worlds, a line for each engine.

    Args:
        rows: rows of results. Those without a speed are left out.
        path: the file; its ending says the format.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = [row for row in rows if "steps_per_s" in row]
    models = list(dict.fromkeys(row["model"] for row in drawn))
    engines = list(dict.fromkeys(row["engine"] for row in drawn))
    columns = min(4, max(1, len(models)))
    lines = -(-max(1, len(models)) // columns)
    figure = Figure(figsize=(3.4 * columns + 0.6, 2.8 * lines + 0.8), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat[len(models) :]:
        axes.set_axis_off()
    for axes, model in zip(grid.flat, models, strict=False):
        for place, engine in enumerate(engines):
            points = sorted((r["worlds"], r) for r in drawn if r["model"] == model and r["engine"] == engine)
            if points:
                _line(axes, engine, [row for _, row in points], f"C{place}")
        axes.set(xscale="log", yscale="log", title=model, xlabel="worlds", ylabel="steps/s")
        sizes = sorted({row["worlds"] for row in drawn if row["model"] == model})
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
        axes.set_xticks([], minor=True)
        axes.grid(alpha=0.3)
    handles = {
        label: handle for axes in grid.flat for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if handles:
        figure.legend(
            handles.values(), handles.keys(), loc="outside upper center", ncols=min(len(handles), 2 * columns)
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _line(axes: Any, engine: str, rows: Sequence[Row], colour: str) -> None:
    worlds = [row["worlds"] for row in rows]
    medians = [row["steps_per_s"] for row in rows]
    low = [median - min(row["all_steps_per_s"]) for median, row in zip(medians, rows, strict=True)]
    high = [max(row["all_steps_per_s"]) - median for median, row in zip(medians, rows, strict=True)]
    bars = [[max(0, value) for value in side] for side in (low, high)]
    axes.errorbar(worlds, medians, yerr=bars, marker="o", markersize=4, color=colour, label=engine, capsize=2)
