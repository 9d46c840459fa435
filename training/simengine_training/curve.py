"""The learning curve: one row an update, as CSV and as a picture."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

Row = dict[str, float]  # None never occurs: what an update did not see is NaN


def write_csv(path: Path, rows: list[Row]) -> None:
    """Write rows under the names of their columns; numbers come back bit for bit."""
    if not rows:
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[Row]:
    """Read what `write_csv` wrote; no rows if there is no file."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: _number(text) for name, text in row.items()} for row in csv.DictReader(file)]


def _number(text: Any) -> float:
    return int(text) if text.isdigit() else float(text)


def plot(path: Path, rows: list[Row], title: str, evaluations: dict[int, float]) -> None:
    """Draw the mean return of the episodes that ended in each rollout, as PNG.

    After environments were started anew together, at a checkpoint, the first episodes to end are short ones: the curve
    falls there though the policy is none the worse.

    Args:
        path: file to write.
        rows: of the curve.
        title: above the picture.
        evaluations: mean return of an evaluation, by the environment steps before it.
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
