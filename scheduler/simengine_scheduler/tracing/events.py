"""What a trace consists of: events, steps of the log and counters, and the times that follow from events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..core.calls import Tag

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


def timed(events: Sequence[Event]) -> list[Event]:
    """Return the events that have times."""
    return [event for event in events if event.end == event.end]  # NaN differs from itself


def span(events: Sequence[Event]) -> float:
    """Return the time from the first start to the last end [s]."""
    found = timed(events)
    return max(e.end for e in found) - min(e.start for e in found) if found else 0.0


def concurrency(events: Sequence[Event]) -> float:
    """Return the mean number of calls that run over the span: the sum of their durations over the span."""
    whole = span(events)
    return sum(e.end - e.start for e in timed(events)) / whole if whole > 0 else 0.0


def idle_share(events: Sequence[Event]) -> float:
    """Return the share of the span during which no call runs, 0 to 1."""
    whole = span(events)
    return 1.0 - sum(end - start for start, end in _busy(events)) / whole if whole > 0 else 0.0


def _busy(events: Sequence[Event]) -> Iterator[tuple[float, float]]:
    """Yield the maximal intervals during which at least one call runs."""
    begin = finish = None
    for event in sorted(timed(events), key=lambda e: e.start):
        if begin is None or finish is None or event.start > finish:
            if begin is not None and finish is not None:
                yield begin, finish
            begin, finish = event.start, event.end
        else:
            finish = max(finish, event.end)
    if begin is not None and finish is not None:
        yield begin, finish
