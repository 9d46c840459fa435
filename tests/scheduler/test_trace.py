"""Traces: totals, concurrency, Chrome JSON, the picture; policies' choices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simengine_scheduler import KernelCall, PythonLaunch, Segments, Trace, make_executor
from simengine_scheduler.core import Cost, Tag
from simengine_scheduler.core.policies import StreamState, critical, fifo, follow, least_loaded, lifo, round_robin
from simengine_scheduler.tracing import Event, timeline
from simengine_scheduler.tracing.holds import Hazard, holds, idle_spans


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


def two_streams() -> tuple[Trace, Segments]:
    """A write of x on stream 0; on stream 1 an unrelated call, and a read of x that waited for the write."""
    table = Segments()
    x, y = table.intern("x"), table.intern("y", 1, ("half", 0))
    launch = PythonLaunch(lambda: None)
    order = [
        KernelCall("write", launch, (), (x,), tag=Tag((0,), 0, "make")),
        KernelCall("other", launch, (), (), (y,), tag=Tag((0,), 1, "make")),
        KernelCall("read", launch, (x,), (y,), tag=Tag((0,), 1, "take")),
        KernelCall("again", launch, (x,), (), tag=Tag((0,), 1, "take")),
    ]
    spans = [(0, 0.0, 5e-3), (1, 0.0, 2e-3), (1, 6e-3, 7e-3), (1, 9e-3, 9.5e-3)]
    events = [Event(k, c.name, s, 0.0, a, b, c.tag) for k, (c, (s, a, b)) in enumerate(zip(order, spans, strict=True))]
    return Trace("streams", "times", order=order, events=events), table


def test_what_held_each_call() -> None:
    trace, table = two_streams()
    found, hazards = holds(trace.order, trace.events, table)
    assert [(hold.seq, hold.kind, hold.by) for hold in found] == [
        (0, "start", -1),
        (1, "start", -1),
        (2, "hazard", 0),
        (3, "stream", 2),
    ]
    assert [hold.idle for hold in found] == pytest.approx([0, 0, 1e-3, 2e-3])
    assert sorted(hazards) == [Hazard(0, 2, True), Hazard(0, 3, False), Hazard(1, 2, False)]


def test_idle_spans_are_what_concurrency_leaves() -> None:
    spans = list(idle_spans(trace().events))
    assert spans == [(4.0, 8.0)]
    assert sum(end - start for start, end in spans) == pytest.approx(trace().idle_share() * trace().span())


def chrome(tmp_path: Path, **options: Any) -> dict[str, list[dict[str, Any]]]:
    """Rows of a file by their phase."""
    recorded, table = two_streams()
    recorded.to_chrome(tmp_path / "trace.json", table, **options)
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]:
        rows.setdefault(row["ph"], []).append(row)
    return rows


def test_chrome_json(tmp_path: Path) -> None:
    trace().to_chrome(tmp_path / "trace.json")
    written = json.loads((tmp_path / "trace.json").read_text())
    rows = [e for e in written["traceEvents"] if e["ph"] == "X"]
    assert [(r["name"], r["tid"], r["ts"], r["dur"], r["cat"]) for r in rows] == [
        ("k0", 0, 1e6, 2e6, "s"),
        ("k1", 1, 2e6, 2e6, "t"),
        ("k2", 0, 8e6, 1e6, "s"),
    ]
    names = [e["args"]["name"] for e in written["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"]
    assert names == ["threads 0", "threads 1", "issue"]
    assert not [e for e in written["traceEvents"] if e["ph"] in "sf"]


def test_chrome_json_with_segments(tmp_path: Path) -> None:
    rows = chrome(tmp_path)
    read = rows["X"][2]
    assert (read["tid"], read["args"]["reads"], read["args"]["writes"]) == (1, ["x"], ["y#1[half 0]"])
    assert (read["args"]["held_by"], read["args"]["held_by_call"]) == ("hazard", "write")
    assert read["args"]["started_us_later"] == pytest.approx(1000)
    starts, ends = rows["s"], {row["id"]: row for row in rows["f"]}
    assert [row["name"] for row in starts].count("held") == 1
    slices = {(row["tid"], row["name"]): row for row in rows["X"]}
    for start in starts:  # ends of an arrow lie in slices, else viewers drop it
        inside = [
            r for r in slices.values() if r["tid"] == start["tid"] and r["ts"] <= start["ts"] < r["ts"] + r["dur"]
        ]
        assert len(inside) == 1
        assert any(r["ts"] == ends[start["id"]]["ts"] for r in slices.values())
    running = [(row["ts"], row["args"]["running"]) for row in rows["C"]]
    assert max(count for _, count in running) == 2
    assert running[-1] == (pytest.approx(9500), 0)


def test_chrome_json_by_kernel(tmp_path: Path) -> None:
    rows = chrome(tmp_path, by="kernel")
    assert [row["tid"] for row in rows["X"]] == [0, 0, 1, 1]
    names = [row["args"]["name"] for row in rows["M"] if row["name"] == "thread_name" and row["pid"] == 0]
    assert names == ["make", "take"]


@pytest.mark.parametrize("by", ["stream", "kernel"])
@pytest.mark.parametrize("with_segments", [False, True])
def test_picture(by: Any, with_segments: bool, tmp_path: Path) -> None:
    recorded, table = two_streams()
    recorded.plot(tmp_path / "trace.png", table if with_segments else None, by)
    assert (tmp_path / "trace.png").read_bytes().startswith(b"\x89PNG")


def test_picture_shows_hazards_and_gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Red lines join the end of the write to the read that it held; gaps of the stream are red, then blue."""
    drawn: list[tuple[list[Any], str, float]] = []
    monkeypatch.setattr(
        timeline, "_draw_lines", lambda axes, lines, colour, width: drawn.append((lines, colour, width))
    )
    recorded, table = two_streams()
    recorded.plot(tmp_path / "trace.png", table)
    thin, bold, waiting, starting = (lines for lines, _, _ in drawn)
    assert bold == [[(pytest.approx(5000), 0), (pytest.approx(6000), 1)]]
    assert thin == [[(pytest.approx(5000), 0), (pytest.approx(9000), 1)]]
    assert waiting == [[(pytest.approx(2000), 1), (pytest.approx(5000), 1)]]
    assert starting == [
        [(pytest.approx(5000), 1), (pytest.approx(6000), 1)],
        [(pytest.approx(7000), 1), (pytest.approx(9000), 1)],
    ]


def test_unknown_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Trace.plot\(by='row'\) is unknown; choose one of stream, kernel"):
        trace().plot(tmp_path / "x", by="row")  # type: ignore[arg-type]


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
    state = StreamState(load=[3, 1, 1], tail=[8, 5, 6], stream_of={4: 0, 5: 1, 6: 2, 7: 0, 8: 0}, issued=8)
    assert round_robin(set(), state) == 2
    assert least_loaded({8}, state) == 1
    assert follow({5, 6}, state) == 2  # the newest predecessor that is a tail
    assert follow({4}, state) == 1  # calls 7 and 8 stand behind call 4 already
    assert follow({4, 8}, state) == 0
    state.load[0] = 2
    assert follow({4}, state) == 0  # no stream has less to do by more than one call
