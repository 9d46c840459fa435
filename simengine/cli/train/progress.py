"""Shows how a training goes: a bar on a terminal, and a line for each update elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isnan
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from simengine_training import Arguments
    from simengine_training.curve import Row


@contextmanager
def shown(arguments: Arguments, name: str) -> Iterator[Callable[[Row], None]]:
    """Show a training on stderr, and return the function that takes its rows.

    Args:
        arguments: arguments of the training.
        name: what is shown before everything else.
    """
    lines = _Lines(arguments, name)
    if not sys.stderr.isatty():
        yield lambda row: print(lines.of(row), file=sys.stderr, flush=True)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=arguments.num_updates)

        def on_row(row: Row) -> None:
            text = lines.of(row)
            if "return_std" in row:
                bar.console.print(text, highlight=False)
            else:
                bar.update(task, completed=int(row["update"]), description=lines.short(row))

        yield on_row


class _Lines:
    """The lines of a training, which know its speed."""

    def __init__(self, arguments: Arguments, name: str):
        self.arguments, self.name = arguments, name
        self._last: tuple[float, float] | None = None
        self._speed = float("nan")

    def of(self, row: Row) -> str:
        """The line of an update or of an evaluation."""
        head = f"{self.name} {row['seconds']:7.1f} s  {row['env_steps']:13,.0f} steps"
        if "return_std" in row:
            self._last = None  # the time of an evaluation is not one of updates
            return (
                f"{head}  evaluation: return {row['return_mean']:.1f} +- {row['return_std']:.1f}, "
                f"length {row['length_mean']:.0f}"
            )
        self._measure(row)
        return (
            f"{head}  update {row['update']:.0f}/{self.arguments.num_updates}  {self._returns(row)}"
            f"{'' if isnan(self._speed) else f'  {self._speed:,.0f} steps/s'}  kl {row['approx_kl']:.4f}"
        )

    def short(self, row: Row) -> str:
        """What the bar says before its picture."""
        speed = "" if isnan(self._speed) else f", {self._speed:,.0f} steps/s"
        return f"{self.name}: {self._returns(row)}{speed}"

    def _measure(self, row: Row) -> None:
        if self._last and row["seconds"] > self._last[1]:
            self._speed = (row["env_steps"] - self._last[0]) / (row["seconds"] - self._last[1])
        self._last = row["env_steps"], row["seconds"]

    @staticmethod
    def _returns(row: Row) -> str:
        if isnan(row["return_mean"]):
            return "no episode ended"
        return f"return {row['return_mean']:.1f}  length {row['length_mean']:.0f}"
