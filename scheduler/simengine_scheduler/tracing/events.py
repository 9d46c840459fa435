"""What a trace consists of: events, steps of the log and counters, and the times that follow from events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..core.calls import Tag

Record = Literal["off", "order", "times"]
By = Literal["stream", "kernel"]
StepKind = Literal["issue", "wait", "observe"]


class Event(NamedTuple):
    """One executed call.

    Attributes:
        seq: its number in program order.
        name: of the call.
        stream: index of the stream or worker.
        issue: time of the issue, by the clock of the host [s since the run began]; NaN unless the run recorded times.
        start, end: times by the clock of the device [s since the run began]; NaN unless the run recorded times.
        tag: of the call.
    """

    seq: int
    name: str
    stream: int
    issue: float
    start: float
    end: float
    tag: Tag


class Step(NamedTuple):
    """One entry of the log. The log is in the order in which the host acted.

    Kind `issue`: call `seq` entered `stream`. Kind `wait`: `stream` was made to wait for call `seq`. Kind `observe`:
    the host learnt that call `seq` had completed, so everything issued afterwards comes after it.
    """

    kind: StepKind
    seq: int
    stream: int


@dataclass
class Counters:
    """Totals of a run.

    A wait is an event on another stream that a call waits for, or an edge of a CUDA graph.

    Attributes:
        calls: how many calls ran.
        awaits: how many awaits the emitters yielded.
        waits_inserted: waits that were made.
        waits_removed: waits that hazards ask for, but that the order of a stream or another wait implies.
        issue_seconds: time of the host for launches; measured only where times are recorded.
        check_seconds: time of the hazard checks; measured only where times are recorded.
        compare_seconds: executor `device` only. The part of `check_seconds` that compares a call with those in flight;
            the rest fetches calls and reports their completion.
        jobs: executor `pipeline` only, as all that follow. Jobs that ran.
        stolen: jobs that a worker took from the queue of another.
        launches: calls and graphs that were launched for jobs.
        job_seconds: time of the host for these launches.
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
        """Waits that hazards ask for."""
        return self.waits_inserted + self.waits_removed

    def add_waits(self, asked: int, inserted: int) -> None:
        """Count waits: those that hazards asked for, and those that were inserted."""
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
