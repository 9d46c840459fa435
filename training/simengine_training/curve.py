"""The learning curve, with one row for each update, as CSV and as a picture."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

Row = dict[str, float]  # NaN stands for a value that an update did not have, such as a return if no episode ended


def write_csv(path: Path, rows: list[Row]) -> None:
    """Write rows under the names of their columns. `read_csv` reads the same numbers bit for bit."""
    if not rows:
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[Row]:
    """Read the rows that `write_csv` wrote; none if there is no file."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: _number(text) for name, text in row.items()} for row in csv.DictReader(file)]


def _number(text: Any) -> float:
    return int(text) if text.isdigit() else float(text)


def plot(path: Path, rows: list[Row], title: str, evaluations: dict[int, float]) -> None:
    """Draw the mean return of the episodes that ended in each rollout, as PNG.

    All environments are reset together at a checkpoint, and the first episodes that end after it are short ones. The
    curve falls there although the policy is not worse.

    Args:
        path: file to write.
        rows: rows of the curve.
        title: title above the picture.
        evaluations: mean return of each evaluation, by the number of environment steps before it.
    """
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    seen = [row for row in rows if row["episodes"]]
    axes.plot([row["env_steps"] for row in seen], [row["return_mean"] for row in seen], label="while training")
    if evaluations:
        axes.plot(list(evaluations), list(evaluations.values()), "o", label="evaluation, most likely actions")
    axes.set(xlabel="environment steps", ylabel="mean return of an episode", title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
