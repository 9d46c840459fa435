"""Validation: whether an execution was legal, by its program order, its log and the pairwise definition of a hazard."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.calls import KernelCall
from ..core.hazards import conflict, conflict_whole
from ..core.segments import Segments
from .trace import Trace


def validate(order: Sequence[KernelCall], trace: Trace, segments: Segments, slack: float = 0.0) -> list[str]:
    """Return the violations of an execution, one sentence each. An empty list means that it was legal.

    Three things are checked. Every call of `order` was issued exactly once. Of two calls that conflict, the earlier was
    certain to have ended before the later could start, by the order of a stream, recorded waits, or completions that
    the host had seen. And where times were recorded, the later call did not start before the earlier had ended. Times
    are not compared for calls that executor `device` lets wait for each other tile by tile.

    The work grows with the square of the number of calls.

    Args:
        order: the calls in program order.
        trace: what ran, recorded with "order" or "times".
        segments: the table of the calls' segments.
        slack: by how much clocks may disagree [s]. 0 suits clocks of the host; CUDA time stamps tick about every half
            microsecond, and 2e-6 suits them.

    Raises:
        ValueError: the trace has no log.
    """
    if trace.record == "off":
        raise ValueError("the trace has no log; run the executor with record='order' or record='times'")
    violations = _missing_or_repeated(order, trace)
    if violations:
        return violations
    before = _happens_before(len(order), trace)
    times = {e.seq: (e.start, e.end) for e in trace.events}
    by_tiles = trace.executor == "device"
    for later in range(len(order)):
        for earlier in range(later):
            if not conflict(order[earlier], order[later], segments.conflicts):
                continue
            pair = f"call {later} {order[later].name!r}", f"call {earlier} {order[earlier].name!r}"
            what = _shared(order[earlier], order[later], segments)
            if not before[later] >> earlier & 1:
                violations.append(f"{pair[0]} could start before {pair[1]} had ended, though both touch {what}")
            elif by_tiles and not conflict_whole(order[earlier], order[later], segments.conflicts):
                continue
            elif times[later][0] + slack < times[earlier][1]:  # never true of NaN
                violations.append(f"{pair[0]} started before {pair[1]} ended by the clock, though both touch {what}")
    return violations


def _missing_or_repeated(order: Sequence[KernelCall], trace: Trace) -> list[str]:
    issued = [0] * len(order)
    strangers = []
    for step in trace.log:
        if step.kind == "issue":
            if 0 <= step.seq < len(order):
                issued[step.seq] += 1
            else:
                strangers.append(f"call {step.seq} was issued but is not in the program order of {len(order)}")
    lost = [f"call {seq} {order[seq].name!r} was issued {n} times" for seq, n in enumerate(issued) if n != 1]
    return strangers + lost


def _happens_before(calls: int, trace: Trace) -> list[int]:
    """Return, for each call, the bit set of calls that are certain to have ended before it starts."""
    before = [0] * calls
    behind: dict[int, int] = {}  # stream -> what its next call comes after
    seen = 0  # what the host has seen complete
    for kind, seq, stream in trace.log:
        if kind == "issue":
            before[seq] = behind.get(stream, 0) | seen
            behind[stream] = before[seq] | 1 << seq
        elif kind == "wait":
            behind[stream] = behind.get(stream, 0) | before[seq] | 1 << seq
        else:
            seen |= before[seq] | 1 << seq
    return before


def _shared(earlier: KernelCall, later: KernelCall, segments: Segments) -> str:
    mine = later.reads + later.writes + later.updates
    theirs = earlier.reads + earlier.writes + earlier.updates
    return ", ".join(dict.fromkeys(segments.describe(a) for a in mine for b in theirs if b in segments.conflicts[a]))
