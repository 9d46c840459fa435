"""The access diagram: what the calls declare, stage by stage."""

from __future__ import annotations

from pathlib import Path

from simengine_scheduler import KernelCall, PythonLaunch, Segments
from simengine_scheduler.core import Tag
from simengine_scheduler.tracing.access import AccessTable


def table() -> AccessTable:
    segments = Segments()
    x, x_of_one, part = segments.intern("x"), segments.intern("x", 1), segments.intern("y", 0, ("size", 3))
    image = segments.register_range("image", 0, 64)
    launch = PythonLaunch(lambda: None)
    calls = [
        KernelCall("make8", launch, (x,), (part,), tag=Tag(stage="make")),
        KernelCall("make16", launch, (x_of_one,), (x,), tag=Tag(stage="make")),
        KernelCall("alone", launch, (part,), (), (image,)),
    ]
    return AccessTable.of(calls, segments)


def test_pieces_of_a_buffer_and_calls_of_a_stage_are_one() -> None:
    found = table()
    assert found.buffers == ("x", "y", "image")
    assert found.stages == ("make", "alone")
    assert found.calls == {"make": 2, "alone": 1}
    assert found.cells == {("x", "make"): "rw", ("y", "make"): "w", ("y", "alone"): "r", ("image", "alone"): "u"}


def test_markdown() -> None:
    assert table().to_markdown().splitlines() == [
        "| buffer | make | alone |",
        "|---|---|---|",
        "| x | rw |  |",
        "| y | w | r |",
        "| image |  | u |",
    ]


def test_picture(tmp_path: Path) -> None:
    table().plot(tmp_path / "access.png", "a list")
    assert (tmp_path / "access.png").read_bytes().startswith(b"\x89PNG")
