"""The console on which the command line prints tables, its progress bar, and its notice of kernels that compile."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from simengine_scheduler.native import cache

_WIDTH = 140  # columns of a table in a file or a pipe, which have no width of their own


def console(width: int = _WIDTH) -> Console:
    """Return a console on standard output. It prints square brackets as they are, as in simengine[cuda13].

    Args:
        width: number of columns if the output is not a terminal.
    """
    return Console(width=None if sys.stdout.isatty() else width, markup=False, highlight=False)


@contextmanager
def progress_bar(label: str, total: int, done: int = 0) -> Iterator[Callable[[int], None]]:
    """Show on stderr how much of something is done.

    Args:
        label: what is counted.
        total: its number.
        done: how many are done already.

    Returns:
        A function that is called with the number of those that were done since its last call.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    # Without a terminal, a progress bar would fill a log with lines.
    with Progress(
        *columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()
    ) as bar:
        task = bar.add_task(label, total=total, completed=done)
        yield lambda more: bar.advance(task, more)


@contextmanager
def step_bar(name: str, steps: int, done: int = 0) -> Iterator[Callable[[int], None]]:
    """Show on stderr how many steps of a run of model `name` are done; see `progress_bar`."""
    with progress_bar(f"{name}: steps", steps, done) as advance:
        yield advance


class _Notice(logging.Handler):
    """Prints one sentence, when the first kernel is compiled."""

    _printed = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._printed:
            self._printed = True
            print(f"compiling kernels, which later runs find in {cache.cache_dir()}", file=sys.stderr)


@contextmanager
def compile_notice() -> Iterator[None]:
    """Say on stderr that kernels are being compiled, once and only on a terminal, because it may take half a minute."""
    log, notice = logging.getLogger(cache.__name__), _Notice(logging.INFO)
    level = log.level
    if sys.stderr.isatty():
        log.setLevel(logging.INFO)
        log.addHandler(notice)
    try:
        yield
    finally:
        log.removeHandler(notice)
        log.setLevel(level)
