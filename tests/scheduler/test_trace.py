"""Traces: totals, concurrency, Chrome JSON, the picture; policies' choices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler import Cost, Event, KernelCall, PythonLaunch, Tag, Trace, make_executor
from scheduler.policies import StreamState, critical, fifo, follow, least_loaded, lifo, round_robin


def event(seq: int, stream: int, start: float, end: float, stage: str = "s") -> Event:
    return Event(seq, f"k{seq}", stream, 0.0, start, end, Tag((0,), 1, stage))


def trace() -> Trace:
    events = [event(0, 0, 1.0, 3.0), event(1, 1, 2.0, 4.0, "t"), event(2, 0, 8.0, 9.0)]
    return Trace("threads", "times", events=events)


def test_concurrency_and_idle_share() -> None:
    assert trace().span() == 8.0
    assert trace().concurrency() == pytest.approx(5 / 8)
    assert trace().idle_share() == pytest.approx(4 / 8)
    assert Trace("serial").concurrency() == Trace("serial").idle_share() == 0.0


def test_chrome_json(tmp_path: Path) -> None:
    trace().to_chrome(tmp_path / "trace.json")
    written = json.loads((tmp_path / "trace.json").read_text())
    rows = [e for e in written["traceEvents"] if e["ph"] == "X"]
    assert [(r["name"], r["tid"], r["ts"], r["dur"], r["cat"]) for r in rows] == [
        ("k0", 0, 1e6, 2e6, "s"),
        ("k1", 1, 2e6, 2e6, "t"),
        ("k2", 0, 8e6, 1e6, "s"),
    ]
    names = [e["args"]["name"] for e in written["traceEvents"] if e["ph"] == "M"]
    assert names == ["threads 0", "threads 1"]


def test_picture(tmp_path: Path) -> None:
    trace().plot(tmp_path / "trace.png")
    assert (tmp_path / "trace.png").read_bytes().startswith(b"\x89PNG")


def test_pictures_need_times(tmp_path: Path) -> None:
    call = KernelCall("c", PythonLaunch(lambda: None), (), ())
    ordered = make_executor("serial", record="order").run([[call]])
    for write in (ordered.plot, ordered.to_chrome):
        with pytest.raises(ValueError, match="record='times'"):
            write(tmp_path / "x")
    timed = make_executor("serial", record="times").run([[call, call]])
    assert [e.seq for e in timed.events] == [0, 1]
    assert 0 <= timed.events[0].start <= timed.events[0].end <= timed.events[1].start


def test_order_policies() -> None:
    costs = {3: Cost(flops=5), 4: Cost(bytes=9), 5: Cost(flops=9), 6: Cost()}
    calls = {s: KernelCall("k", PythonLaunch(lambda: None), (), (), cost=c) for s, c in costs.items()}
    ready = [6, 5, 3, 4]
    assert (fifo(ready, calls), lifo(ready, calls), critical(ready, calls)) == (3, 6, 4)


def test_stream_policies() -> None:
    state = StreamState(load=[2, 1, 1], tail=[7, 5, 6], stream_of={4: 0, 5: 1, 6: 2, 7: 0}, issued=8)
    assert round_robin(set(), state) == 2
    assert least_loaded({7}, state) == 1
    assert follow({5, 6}, state) == 2  # the newest predecessor that is a tail
    assert follow({4}, state) == 1  # call 7 stands behind call 4 already
    assert follow({4, 7}, state) == 0
