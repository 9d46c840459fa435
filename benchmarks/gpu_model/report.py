"""Prints the results as Markdown tables, and draws a picture of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as a Markdown table, with the columns of the first row."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_shown(row.get(key)) for key in columns) + " |" for row in rows]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def validation_table(validated: Sequence[dict[str, Any]]) -> str:
    """A table with a row for each workload: errors of the times, and of the order of executors."""
    rows = [
        {
            "workload": found["workload"],
            "fitted": "yes" if found["fitted"] else "",
            "rms log": found["rms_log"],
            "worst ratio": max((row["ratio"] for row in found["rows"]), key=lambda r: max(r, 1 / r)),
            "pairs in order": f"{found['pairs_in_order']} of {found['pairs']}",
            "tau": found["tau"],
            "fastest, measured": found["fastest_measured"],
            "fastest, predicted": found["fastest_predicted"],
        }
        for found in validated
    ]
    return table(rows)


def plot(validated: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw predicted against measured time of a step for each measurement, with a colour for each executor."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 6.2), layout="constrained")
    axes = figure.subplots()
    rows = [(row, found["fitted"]) for found in validated for row in found["rows"]]
    for number, executor in enumerate(dict.fromkeys(row["executor"] for row, _ in rows)):
        for fitted, marker in ((True, "x"), (False, "o")):
            mine = [row for row, own in rows if row["executor"] == executor and own == fitted]
            label = None if fitted else executor
            points = [row["us"] for row in mine], [row["predicted_us"] for row in mine]
            axes.scatter(*points, marker=marker, color=f"C{number}", label=label, s=28)
    ends = [min(row["us"] for row, _ in rows) / 1.3, max(row["us"] for row, _ in rows) * 1.3]
    axes.plot(ends, ends, color="0.5", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="measured [us a step]", ylabel="predicted [us a step]")
    axes.set_title("GPU model: x fitted, o not")
    axes.legend(fontsize="small")
    figure.savefig(path, format="png", dpi=120)
