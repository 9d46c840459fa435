"""Traces: what an executor did, in which order and, if asked, when."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from ..core.calls import KernelCall
from ..core.errors import choose_one
from ..core.segments import Segments
from .events import By, Counters, Event, Record, Step, concurrency, idle_share, span, timed
from .perfetto import write_chrome
from .timeline import plot_timeline


@dataclass
class Trace:
    """The record of one run. Its lists are empty where recording was off.

    Attributes:
        executor: the name of what ran.
        record: what was recorded.
        order: the calls in program order: `order[seq]` is call `seq`.
        log: what the host did, in order.
        events: what ran.
        counters: totals.
    """

    executor: str
    record: Record = "off"
    order: list[KernelCall] = field(default_factory=list)
    log: list[Step] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)

    def span(self) -> float:
        """Return the time from the first start to the last end [s]."""
        return span(self.events)

    def concurrency(self) -> float:
        """Return the mean number of calls that ran over the span: the sum of their durations over the span."""
        return concurrency(self.events)

    def idle_share(self) -> float:
        """Return the share of the span during which no call ran, 0 to 1."""
        return idle_share(self.events)

    def to_chrome(self, path: str | Path, segments: Segments | None = None, by: By = "stream") -> None:
        """Write Chrome trace JSON, for ui.perfetto.dev or chrome://tracing, in microseconds.

        Args:
            path: the file.
            segments: the table of the calls' segments; with it each call says what it touches and what it waited for,
                and arrows show the hazards.
            by: a track for each "stream", or for each "kernel".

        Raises:
            ValueError: the run did not record times, or `by` is neither.
        """
        write_chrome(self.executor, self.order, self._needs_times("to_chrome", by), path, segments, by)

    def plot(self, path: str | Path, segments: Segments | None = None, by: By = "stream") -> None:
        """Write the timeline as a PNG. Grey shows when no call ran.

        Rows are streams and colours are stages, or rows are kernels and colours are streams.

        Args:
            path: the file.
            segments: the table of the calls' segments; with it arrows show the hazards between rows. They are bold
            where
                the later call waited for the earlier one.
            by: a row for each "stream", or for each "kernel".

        Raises:
            ValueError: the run did not record times, or `by` is neither.
            RuntimeError: matplotlib is not installed.
        """
        plot_timeline(self.executor, self.order, self._needs_times("plot", by), path, segments, by)

    def _needs_times(self, method: str, by: str) -> list[Event]:
        if by not in get_args(By):
            raise ValueError(f"Trace.{method}(by={by!r}) is unknown; {choose_one(by, get_args(By))}")
        found = timed(self.events)
        if not found:
            raise ValueError(
                f"Trace.{method}() needs times, but the run recorded {self.record!r}; run with record='times'"
            )
        return found
