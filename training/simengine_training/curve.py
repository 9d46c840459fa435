"""Tables that grow while a training runs: the learning curve, evaluations and times, as CSV and as a picture."""

from __future__ import annotations

import csv
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Row = dict[str, float]  # NaN stands for a value that an update did not have, such as a return if no episode ended

MEAN_OVER = 100  # finished episodes, the latest ones, over which a return is averaged


class RowFile:
    """A CSV file to which rows are appended.

    Args:
        path: the file.
        updates: rows of later updates are removed, since they are done again.
        writes: whether the file is written; if not, its rows are read and later ones are kept in memory only.
    """

    def __init__(self, path: Path, updates: int = 0, writes: bool = True):
        self.path, self.writes = path, writes
        self.rows = [row for row in read_csv(path) if row["update"] <= updates]
        if not writes:
            return
        text = "".join(_line(row) for row in self.rows)
        part = path.with_suffix(".part")
        part.write_text(_header(self.rows[0]) + text if self.rows else "", encoding="utf-8")
        part.replace(path)

    def append(self, row: Row) -> None:
        """Write one more row. All rows have the same names."""
        if self.writes:
            with self.path.open("a", encoding="utf-8") as file:
                file.write((_header(row) if not self.rows else "") + _line(row))
        self.rows.append(row)


def _header(row: Row) -> str:
    return ",".join(row) + "\n"


def _line(row: Row) -> str:
    return ",".join(repr(value) for value in row.values()) + "\n"


def read_csv(path: Path) -> list[Row]:
    """Read rows, the same numbers bit for bit; none if there is no file. A last line without an end is left out."""
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    return [{name: _number(value) for name, value in row.items()} for row in csv.DictReader(whole.splitlines())]


def _number(text: Any) -> float:
    return int(text) if text.isdigit() else float(text)


def latest_mean(rows: list[Row], sums: str) -> float:
    """Mean of a number over the latest finished episodes, at least `MEAN_OVER` of them if there are so many.

    Args:
        rows: rows with "episodes", and with sums over the episodes that ended in the update.
        sums: name of the column of sums.
    """
    number = total = 0.0
    for row in reversed(rows):
        number, total = number + row["episodes"], total + row[sums]
        if number >= MEAN_OVER:
            break
    return total / number if number else float("nan")


class Picture:
    """The learning curve as PNG, which a thread draws while the training goes on.

    Leaving its `with` block waits for the last picture.

    Args:
        path: file to write.
        title: title above the picture.
    """

    def __init__(self, path: Path, title: str):
        self._path, self._title = path, title
        self._pool = ThreadPoolExecutor(1, "picture")
        self._drawing: Future[None] | None = None

    def draw(self, rows: list[Row], evaluations: list[Row]) -> None:
        """Draw these rows, once the picture before is done.

        Raises:
            OSError: the picture before could not be written.
        """
        self._wait()
        self._drawing = self._pool.submit(plot, self._path, list(rows), list(evaluations), self._title)

    def _wait(self) -> None:
        if self._drawing is not None:
            self._drawing.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        if kind is None:
            self._wait()


def plot(path: Path, rows: list[Row], evaluations: list[Row], title: str) -> None:
    """Draw the mean return of the latest finished episodes, and the evaluations, as PNG.

    Args:
        path: file to write.
        rows: rows of the curve.
        evaluations: rows of the evaluations.
        title: title above the picture.
    """
    from matplotlib.figure import Figure  # takes a second to import

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(
        [row["env_steps"] for row in rows],
        [row["return_mean"] for row in rows],
        label=f"while training, mean of {MEAN_OVER} episodes",
    )
    if evaluations:
        steps, means, deviations = (
            [row[name] for row in evaluations] for name in ("env_steps", "return_mean", "return_std")
        )
        axes.errorbar(steps, means, deviations, fmt="o", capsize=3, label="evaluation, most likely actions")
    axes.set(title=title, xlabel="environment steps", ylabel="return of an episode")
    axes.grid(alpha=0.3)
    axes.legend()
    part = path.with_suffix(".part")
    figure.savefig(part, dpi=110, format="png", metadata={"Software": None})
    part.replace(path)
