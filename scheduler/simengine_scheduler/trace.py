"""Traces: what an executor did, in which order and, if asked, when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from .calls import KernelCall, Tag
from .segments import Segments

Record = Literal["off", "order", "times"]
By = Literal["stream", "kernel"]


class Event(NamedTuple):
    """One executed call. Times are seconds since the run began: issue on the host clock, start and end on the device's.

    `stream` is the index of the stream or worker. Times are NaN unless the run recorded them.
    """

    seq: int
    name: str
    stream: int
    issue: float
    start: float
    end: float
    tag: Tag


class Step(NamedTuple):
    """One entry of the log, in the order in which the host did it.

    kind `issue`: call `seq` entered `stream`. `wait`: `stream` was made to wait for call `seq`.
    `observe`: the host learnt that call `seq` had completed, and everything issued afterwards comes after it.
    """

    kind: Literal["issue", "wait", "observe"]
    seq: int
    stream: int


@dataclass
class Counters:
    """Totals of a run. `issue_seconds` and `check_seconds` are measured only when times are recorded.

    `compare_seconds` is of `device` only: the part of `check_seconds` from when the window has what a call touches
    until it knows with which calls in flight that conflicts. The rest goes to fetching the one and telling the other.

    Waits are those of a call for one on another stream, by an event, or the edges of a graph. `waits_asked` says how
    many the hazard check asked for: one for each call it names that had not been seen complete. Those that stream
    order and other waits imply were removed, the rest inserted.

    `jobs` and `stolen` count the jobs of `pipeline` and those that another worker took; `launches` the calls and graphs
    that it launched for them, and `job_seconds` the host's time for that.
    """

    calls: int = 0
    awaits: int = 0
    waits_inserted: int = 0
    waits_removed: int = 0
    issue_seconds: float = 0.0
    check_seconds: float = 0.0
    compare_seconds: float = 0.0
    jobs: int = 0
    stolen: int = 0
    launches: int = 0
    job_seconds: float = 0.0

    @property
    def waits_asked(self) -> int:
        """Waits before those that others imply were removed."""
        return self.waits_inserted + self.waits_removed

    def add_waits(self, asked: int, inserted: int) -> None:
        """Count the waits of some calls."""
        self.waits_inserted += inserted
        self.waits_removed += asked - inserted


@dataclass
class Trace:
    """The record of one run. `order` is program order: `order[seq]` is the call. Empty lists when recording was off."""

    executor: str
    record: Record = "off"
    order: list[KernelCall] = field(default_factory=list)
    log: list[Step] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)

    def span(self) -> float:
        """Seconds from the first start to the last end."""
        timed = self._timed()
        return max(e.end for e in timed) - min(e.start for e in timed) if timed else 0.0

    def concurrency(self) -> float:
        """Mean number of calls running over the span: busy seconds of all calls over the span's seconds."""
        span = self.span()
        return sum(e.end - e.start for e in self._timed()) / span if span > 0 else 0.0

    def idle_share(self) -> float:
        """Share of the span during which no call ran, 0 to 1."""
        span = self.span()
        return 1.0 - sum(end - start for start, end in self._busy()) / span if span > 0 else 0.0

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
        from .perfetto import write_chrome

        write_chrome(self, self._needs_times("to_chrome", by), path, segments, by)

    def plot(self, path: str | Path, segments: Segments | None = None, by: By = "stream") -> None:
        """Write a PNG timeline: rows by stream and colours by stage, or by kernel and stream; grey where none runs.

        Args:
            path: the file.
            segments: the table of the calls' segments; with it arrows show the hazards between rows, bold where the
                later call waited for the earlier one.
            by: a row for each "stream", or for each "kernel".

        Raises:
            ValueError: the run did not record times, or `by` is neither.
            RuntimeError: matplotlib is not installed.
        """
        from .timeline import plot_timeline

        plot_timeline(self, self._needs_times("plot", by), path, segments, by)

    def _timed(self) -> list[Event]:
        return [e for e in self.events if e.end == e.end]  # NaN differs from itself

    def _needs_times(self, method: str, by: str) -> list[Event]:
        if by not in get_args(By):
            raise ValueError(f"Trace.{method}(by={by!r}) is unknown; choose one of {', '.join(get_args(By))}")
        timed = self._timed()
        if not timed:
            raise ValueError(f"Trace.{method}() needs times, but the run kept {self.record!r}; run with record='times'")
        return timed

    def _busy(self) -> Iterator[tuple[float, float]]:
        """Yield the maximal intervals during which at least one call ran."""
        begin = finish = None
        for event in sorted(self._timed(), key=lambda e: e.start):
            if begin is None or finish is None or event.start > finish:
                if begin is not None and finish is not None:
                    yield begin, finish
                begin, finish = event.start, event.end
            else:
                finish = max(finish, event.end)
        if begin is not None and finish is not None:
            yield begin, finish
