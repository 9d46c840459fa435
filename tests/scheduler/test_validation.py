"""`validate` finds what is wrong with an execution."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from simengine_scheduler import KernelCall, PythonLaunch, Segments, Trace, make_executor, validate
from simengine_scheduler.core import Tag
from simengine_scheduler.tracing import Event, Step

TABLE = Segments()
X, Y = TABLE.intern("x"), TABLE.intern("y", 1, ("size", 2))


def call(name: str, reads: tuple[int, ...] = (), writes: tuple[int, ...] = ()) -> KernelCall:
    return KernelCall(name, PythonLaunch(lambda: None), reads, writes)


WRITE, READ, APART = call("write", (), (X,)), call("read", (X,), ()), call("apart", (), (Y,))


def trace_of(*steps: tuple[Literal["issue", "wait", "observe"], int, int]) -> Trace:
    log = [Step(*s) for s in steps]
    nan = float("nan")
    events = [Event(s.seq, "", s.stream, nan, nan, nan, Tag()) for s in log if s.kind == "issue"]
    return Trace("hand-made", "order", log=log, events=events)


@pytest.mark.parametrize(
    "steps",
    [
        [("issue", 0, 0), ("issue", 1, 0)],  # one stream
        [("issue", 0, 0), ("wait", 0, 1), ("issue", 1, 1)],  # an event
        [("issue", 0, 0), ("observe", 0, 0), ("issue", 1, 1)],  # seen by the host
    ],
)
def test_ways_to_be_ordered(steps: list[Any]) -> None:
    assert validate([WRITE, READ], trace_of(*steps), TABLE) == []


def test_order_through_a_third_call() -> None:
    steps: list[Any] = [("issue", 0, 0), ("wait", 0, 1), ("issue", 1, 1), ("wait", 1, 2), ("issue", 2, 2)]
    assert validate([WRITE, APART, READ], trace_of(*steps), TABLE) == []


@pytest.mark.parametrize(
    "steps",
    [
        [("issue", 0, 0), ("issue", 1, 1)],
        [("issue", 1, 0), ("issue", 0, 0)],  # swapped
        [("issue", 0, 0), ("issue", 1, 1), ("wait", 0, 1), ("observe", 0, 0)],  # too late
        [("issue", 0, 0), ("wait", 0, 2), ("issue", 1, 1)],  # the wrong stream waited
    ],
)
def test_conflicting_calls_that_are_not_ordered(steps: list[Any]) -> None:
    assert validate([WRITE, READ], trace_of(*steps), TABLE) == [
        "call 1 'read' could start before call 0 'write' had ended, though both touch x"
    ]
    assert validate([WRITE, APART], trace_of(*steps), TABLE) == []


def test_lost_repeated_and_strange_calls() -> None:
    log = trace_of(("issue", 0, 0), ("issue", 0, 0), ("issue", 5, 0))
    assert validate([WRITE, READ], log, TABLE) == [
        "call 5 was issued but is not in the program order of 2",
        "call 0 'write' was issued 2 times",
        "call 1 'read' was issued 0 times",
    ]


def test_clock_contradicts_the_log() -> None:
    trace = trace_of(("issue", 0, 0), ("issue", 1, 0))
    trace.events = [Event(0, "", 0, 0.0, 0.0, 1.0, Tag()), Event(1, "", 0, 0.0, 0.9, 2.0, Tag())]
    assert validate([WRITE, READ], trace, TABLE) == [
        "call 1 'read' started before call 0 'write' ended by the clock, though both touch x"
    ]
    assert validate([WRITE, READ], trace, TABLE, slack=0.2) == []


def test_a_trace_without_a_log_is_refused() -> None:
    trace = make_executor("serial").run([[WRITE]])
    assert trace.log == trace.order == trace.events == []
    assert trace.counters.calls == 1
    with pytest.raises(ValueError, match="record='order'"):
        validate([WRITE], trace, TABLE)
