"""Why no call of a recorded run started earlier: it waited for a call that it conflicts with, or for its stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from ..core.calls import KernelCall
from ..core.dependencies import dependencies
from ..core.segments import Segments
from .events import Event, timed


class Hazard(NamedTuple):
    """Call `later` must come after call `earlier`, and no other hazards imply this.

    Attributes:
        earlier, later: numbers in program order.
        held: whether `later` waited for `earlier`: of all calls that had to end before, `earlier` ended last.
    """

    earlier: int
    later: int
    held: bool


class Hold(NamedTuple):
    """What ended last before call `seq` could start.

    Attributes:
        seq: the call.
        kind: `hazard` if call `by` touches the same memory, `stream` if it merely ran before on the same stream,
            `start` if there was no such call.
        by: the call that ended last, or -1.
        idle: time from that end to the start of the call [s]: for its launch, or because host or processor were busy.
    """

    seq: int
    kind: Literal["hazard", "stream", "start"]
    by: int
    idle: float


def holds(
    order: Sequence[KernelCall], recorded: Sequence[Event], segments: Segments
) -> tuple[list[Hold], list[Hazard]]:
    """Find what held each call back, in the order of starts, and the hazards of the list.

    Where a call that conflicts and the call before it on its stream ended at once, the hazard is named.

    Args:
        order: the calls in program order.
        recorded: what ran, recorded with times.
        segments: the table of the calls' segments.
    """
    events = {event.seq: event for event in timed(recorded)}
    before = dependencies(order, segments.conflicts)
    found: list[Hold] = []
    latest: dict[int, Event] = {}  # stream -> the call that started last on it
    origin = min((event.start for event in events.values()), default=0.0)
    for event in sorted(events.values(), key=lambda e: (e.start, e.seq)):
        upstream = [events[seq] for seq in before[event.seq] if seq in events]
        hazard = max(upstream, key=lambda e: e.end, default=None)
        stream = latest.get(event.stream)
        if hazard is not None and (stream is None or hazard.end >= stream.end):
            found.append(Hold(event.seq, "hazard", hazard.seq, event.start - hazard.end))
        elif stream is not None:
            found.append(Hold(event.seq, "stream", stream.seq, event.start - stream.end))
        else:
            found.append(Hold(event.seq, "start", -1, event.start - origin))
        latest[event.stream] = event
    held = {(hold.by, hold.seq) for hold in found if hold.kind == "hazard"}
    edges = [Hazard(e, later, (e, later) in held) for later, direct in enumerate(before) for e in direct]
    return found, [edge for edge in edges if edge.earlier in events and edge.later in events]


def idle_spans(events: Sequence[Event]) -> Iterator[tuple[float, float]]:
    """Yield the intervals (from, to) [s] between the first start and the last end in which no call ran."""
    finish = None
    for event in sorted(events, key=lambda e: e.start):
        if finish is not None and event.start > finish:
            yield finish, event.start
        finish = event.end if finish is None else max(finish, event.end)
