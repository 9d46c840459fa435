"""The feeder's idle emitters, under every executor."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from simengine_scheduler import AwaitCounts, KernelCall, PythonLaunch, Segments, make_executor, validate
from simengine_scheduler.core import IDLE
from simengine_scheduler.core.calls import Idle
from simengine_scheduler.core.emission import Feeder
from simengine_scheduler.testing.fake_device import FakeDevice

HOST = ["serial", "shuffled", "threads"]
DEVICE = ["serial", "streams", "polling", "planned", "graph", "graph-cached", "pipeline"]


def test_pull_asks_each_idle_emitter_once() -> None:
    asked: list[str] = []
    call = KernelCall("k", PythonLaunch(lambda: None), (), ())

    def emitter(name: str, idle: int) -> Iterator[KernelCall | Idle]:
        for _ in range(idle):
            asked.append(name)
            yield IDLE
        yield call

    feeder = Feeder([emitter("a", 2), emitter("b", 3)], lambda seq: True)
    assert feeder.pull() is None
    assert asked == ["a", "b"]
    assert feeder.idle
    assert not feeder.exhausted
    assert feeder.pull() is None
    assert feeder.pull() is call  # a's
    assert feeder.pull() is None  # a has ended, b is idle
    assert feeder.idle
    assert feeder.pull() is call
    assert feeder.pull() is None
    assert not feeder.idle
    assert feeder.exhausted
    assert feeder.calls == 2


@pytest.mark.parametrize("name", [*HOST, *(f"{name} on a device" for name in DEVICE)])
def test_idle_emitters_end_under_every_executor(name: str) -> None:
    table = Segments()
    device = FakeDevice(3) if "device" in name else None
    options: dict[str, Any] = {} if device is None else {"driver": device, "stream": 0, "device": "cuda"}
    kind = name.split()[0]
    if kind == "polling":
        kind, options["completion"] = "streams", "polling"
    if kind == "planned":
        kind, options["stream_policy"] = "streams", "kesco"
    executor = make_executor(kind, segments=table, record="order", workers=2, **options)
    ran: list[int] = []

    def call(number: int) -> KernelCall:
        launch = (PythonLaunch if device is None else device.launch)(lambda: ran.append(number))
        return KernelCall(f"k{number}", launch, (), (table.intern("x"),))

    def emitter() -> Iterator[KernelCall | AwaitCounts | Idle]:
        for number in range(4):
            yield IDLE
            yield (latest := call(number))
            yield IDLE
        yield AwaitCounts(latest)
        assert ran == [0, 1, 2, 3]
        yield IDLE

    trace = executor.run([emitter()])
    executor.synchronize()
    assert ran == [0, 1, 2, 3]
    assert validate(trace.order, trace, table) == []
    executor.close()


def test_threads_ask_an_idle_emitter_while_a_long_call_runs() -> None:
    table = Segments()
    released, asked = threading.Event(), threading.Event()

    def emitter() -> Iterator[KernelCall | Idle]:
        yield KernelCall("long", PythonLaunch(lambda: asked.wait(20)), (), (table.intern("a"),))
        while not released.is_set():
            yield IDLE
        yield KernelCall("late", PythonLaunch(asked.set), (), (table.intern("b"),))

    executor = make_executor("threads", segments=table, workers=3)
    timer = threading.Timer(0.02, released.set)
    timer.start()
    executor.run([emitter()])  # the late call runs beside the long one, which waits for it
    assert asked.is_set()
    executor.close()
    timer.join()
