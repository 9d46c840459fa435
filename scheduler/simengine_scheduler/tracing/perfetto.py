"""Traces as Chrome trace JSON, for ui.perfetto.dev.

The file has a track for each stream or kernel, arrows for hazards, and a counter of the kernels that run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..core.calls import KernelCall
from ..core.segments import Segments
from .events import By, Event
from .holds import Hold, holds

_US = 1e6
_KERNELS, _HOST = 0, 1  # processes of the file


def write_chrome(
    executor: str,
    order: Sequence[KernelCall],
    events: Sequence[Event],
    path: str | Path,
    segments: Segments | None,
    by: By,
) -> None:
    """Write the events of a run.

    Args:
        executor: the name of what ran.
        order: the calls in program order.
        events: what ran, with times.
        path: the file.
        segments: the table of the calls' segments; with it the file says what each call touches and what it waited
            for, and shows the hazards as arrows.
        by: a track for each "stream", or for each "kernel".
    """
    track = tracks(events, by)
    found, hazards = holds(order, events, segments) if segments is not None else ([], [])
    held = {hold.seq: hold for hold in found}
    rows = list(_names(executor, track))
    rows += [_slice(order, event, track[label(event, by)], segments, held.get(event.seq)) for event in events]
    rows += [_issue(event) for event in events if event.issue == event.issue]
    rows += _running(events)
    of = {event.seq: event for event in events}
    for number, hazard in enumerate(hazards):
        ends = of[hazard.earlier], of[hazard.later]
        rows += _arrow(number, "held" if hazard.held else "hazard", *ends, lambda e: track[label(e, by)])
    Path(path).write_text(json.dumps({"traceEvents": rows, "displayTimeUnit": "ns"}), encoding="utf-8")


def label(event: Event, by: By) -> str | int:
    """Return the key of an event's track: its stream, or the stage or name of its kernel."""
    return event.stream if by == "stream" else event.tag.stage or event.name


def tracks(events: Sequence[Event], by: By) -> dict[str | int, int]:
    """Return the number of each track: that of the stream, or the position of the kernel by its first start."""
    if by == "stream":
        return {stream: stream for stream in sorted({event.stream for event in events})}
    names = dict.fromkeys(label(event, by) for event in sorted(events, key=lambda e: e.start))
    return {name: number for number, name in enumerate(names)}


def _names(executor: str, track: dict[str | int, int]) -> Iterator[dict[str, Any]]:
    for process, title in ((_KERNELS, executor), (_HOST, "host")):
        yield {"name": "process_name", "ph": "M", "pid": process, "args": {"name": title}}
    for name, number in track.items():
        args = {"name": f"{executor} {name}" if isinstance(name, int) else name}
        yield {"name": "thread_name", "ph": "M", "pid": _KERNELS, "tid": number, "args": args}
        yield {"name": "thread_sort_index", "ph": "M", "pid": _KERNELS, "tid": number, "args": {"sort_index": number}}
    yield {"name": "thread_name", "ph": "M", "pid": _HOST, "tid": 0, "args": {"name": "issue"}}


def _slice(
    order: Sequence[KernelCall], event: Event, track: int, segments: Segments | None, hold: Hold | None
) -> dict[str, Any]:
    tag = event.tag
    args: dict[str, Any] = {"seq": event.seq, "stream": event.stream, "shard": tag.shard, "groups": list(tag.groups)}
    args["issue_us"] = event.issue * _US
    if segments is not None:
        call = order[event.seq]
        args |= {n: list(map(segments.describe, getattr(call, n))) for n in ("reads", "writes", "updates")}
    if hold is not None:
        waited_for = order[hold.by].name if hold.by >= 0 else ""
        args |= {"held_by": hold.kind, "held_by_call": waited_for, "started_us_later": hold.idle * _US}
    return {
        "name": event.name,
        "cat": tag.stage or "call",
        "ph": "X",
        "pid": _KERNELS,
        "tid": track,
        "ts": event.start * _US,
        "dur": (event.end - event.start) * _US,
        "args": args,
    }


def _issue(event: Event) -> dict[str, Any]:
    args = {"seq": event.seq, "stream": event.stream}
    at = {"ts": event.issue * _US, "pid": _HOST, "tid": 0}
    return {"name": f"issue {event.name}", "cat": "issue", "ph": "i", "s": "t", **at, "args": args}


def _running(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    """Yield how many kernels run, wherever this changes. An end comes before a start at the same time."""
    changes = sorted([(e.start, 1) for e in events] + [(e.end, -1) for e in events])
    running = 0
    for time, change in changes:
        running += change
        yield {"name": "kernels running", "ph": "C", "pid": _KERNELS, "ts": time * _US, "args": {"running": running}}


def _arrow(
    number: int, category: str, earlier: Event, later: Event, track: Callable[[Event], int]
) -> Iterator[dict[str, Any]]:
    """Yield a flow from one slice to another. Its ends lie within the slices, because viewers bind them by that."""
    common = {"name": category, "cat": category, "id": number, "pid": _KERNELS}
    inside = earlier.start + 0.999 * (earlier.end - earlier.start)
    yield {**common, "ph": "s", "tid": track(earlier), "ts": inside * _US}
    yield {**common, "ph": "f", "bp": "e", "tid": track(later), "ts": later.start * _US}
