"""The automatic executor: it chooses the fastest candidate, gives the reason, and results do not depend on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from simengine_scheduler import FixedList, KernelCall, PythonLaunch, Segments, make_executor, validate
from simengine_scheduler.executors import auto
from simengine_scheduler.executors.auto import AutoExecutor
from simengine_scheduler.executors.base import Executor, Options
from simengine_scheduler.executors.serial import SerialExecutor
from simengine_scheduler.testing.fake_device import FakeDevice


class Clock:
    """Time that passes only where it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Slow(SerialExecutor):
    """Runs calls in order, and takes its time [s] for each."""

    def __init__(self, name: str, seconds: float, clock: Clock) -> None:
        super().__init__(Options())
        self.name, self.seconds, self.clock, self.ran, self.closed = name, seconds, clock, 0, False

    def run(self, emitters: Any) -> Any:
        trace = super().run(emitters)
        self.clock.now += self.seconds * trace.counters.calls
        self.ran += 1
        return trace

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(auto, "perf_counter", made)
    return made


def of(clock: Clock, **seconds: float) -> tuple[AutoExecutor, dict[str, Slow]]:
    made: dict[str, Slow] = {}

    def make(name: str, options: Options) -> Executor:
        made[name] = Slow(name, seconds[name], clock)
        return made[name]

    return AutoExecutor(Options(candidates="+".join(seconds)), make), made


def counting(times: int = 3) -> tuple[list[int], Callable[[], list[KernelCall]]]:
    ran: list[int] = []
    return ran, lambda: [KernelCall("note", PythonLaunch(lambda: ran.append(len(ran))), (), ()) for _ in range(times)]


@pytest.mark.parametrize(("slow", "fast"), [("first", "second"), ("second", "first")])
def test_the_fastest_stays_and_every_run_is_run_once(clock: Clock, slow: str, fast: str) -> None:
    executor, made = of(clock, **{name: 2e-3 if name == slow else 1e-3 for name in ("first", "second")})
    ran, calls = counting()
    runs = 0
    while executor.undecided:
        executor.run([calls()])
        runs += 1
        assert len(ran) == 3 * runs
    assert runs == 16
    assert made["first"].ran == made["second"].ran == 8
    assert executor.executor.name == fast
    assert executor.reason == f"{fast} 1,000 us, {slow} 2,000 us a call, the least of their runs"
    executor.run([calls()])
    assert made[fast].ran == 9
    assert made[slow].closed
    assert not made[fast].closed
    executor.close()
    assert made[fast].closed


def test_the_likeliest_stays_unless_another_is_clearly_faster(clock: Clock) -> None:
    for seconds, name in ((0.9e-3, "first"), (0.8e-3, "second")):
        executor, _ = of(clock, first=1e-3, second=seconds)
        _, calls = counting()
        while executor.undecided:
            executor.run([calls()])
        assert executor.executor.name == name
        assert executor.reason.startswith(name)


def test_runs_that_take_long_are_few(clock: Clock) -> None:
    executor, made = of(clock, first=0.1, second=0.2)
    _, calls = counting()
    for _ in range(6):
        assert executor.undecided
        executor.run([calls()])
    assert not executor.undecided
    assert executor.executor is made["first"]


def test_one_slow_run_at_the_beginning_does_not_shorten_the_trials(clock: Clock) -> None:
    executor, made = of(clock, first=1e-3, second=1e-3)
    _, calls = counting()
    made["first"].seconds = 1.0
    executor.run([calls()])
    made["first"].seconds = 1e-3
    while executor.undecided:
        executor.run([calls()])
    assert made["first"].ran >= 6


def test_lists_of_other_lengths_are_compared_by_the_call(clock: Clock) -> None:
    executor, made = of(clock, first=1.3e-3, second=1e-3)
    turn = 0
    while executor.undecided:
        _, calls = counting(1 if executor.executor is made["first"] else 50)
        executor.run([calls()])
        turn += 1
    assert executor.executor is made["second"]


def test_a_repetition_is_a_trial(clock: Clock) -> None:
    executor, made = of(clock, first=2e-3, second=1e-3)
    ran, calls = counting()
    runs = 0
    while executor.undecided:
        executor.repeat([calls()], 4)
        runs += 1
    assert len(ran) == 12 * runs
    assert executor.reason.startswith("second 1,000 us, first 2,000 us a call")
    executor.repeat([calls()], 2)
    assert made["second"].ran == 4 * runs // 2 + 2


def test_what_cannot_run_here_is_left_out(clock: Clock) -> None:
    def make(name: str, options: Options) -> Executor:
        if name != "first":
            raise RuntimeError("no GPU")
        return Slow(name, 1.0, clock)

    executor = AutoExecutor(Options(candidates="second+first"), make)
    assert not executor.undecided
    assert executor.reason == "first is the only candidate; second cannot run here (no GPU)"
    with pytest.raises(RuntimeError, match="no candidate left: second cannot run here"):
        AutoExecutor(Options(candidates="second"), make)


def test_an_unknown_candidate_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown executor 'treads'"):
        make_executor("auto", candidates="treads+serial")


def test_who_has_the_turn_changes_no_result() -> None:
    segments = Segments()
    total = segments.intern("total")
    values = [1]

    def double_and_add(i: int) -> None:
        values.append(2 * values[-1] + i)

    executor = make_executor("auto", segments=segments, workers=2, record="order")
    assert isinstance(executor, AutoExecutor)
    assert executor.reason == "threads and serial take turns on the first runs"
    expected, number = 1, 0
    while executor.undecided or number % 3:
        calls = [KernelCall(f"add{i}", PythonLaunch(partial(double_and_add, i)), (), (), (total,)) for i in range(4)]
        trace = executor.run([calls])
        assert validate(trace.order, trace, segments) == []
        for i in range(4):
            expected = 2 * expected + i
        assert values[-1] == expected
        number += 1
    assert executor.executor.name in ("threads", "serial")
    assert "us a call, the least of" in executor.reason
    executor.close()


def test_candidates_on_a_device_are_its_own_and_end_before_another_begins() -> None:
    device, segments = FakeDevice(3, eagerness=0.3), Segments()
    total = segments.intern("total")
    values = [1]

    def add(i: int) -> None:
        values.append(2 * values[-1] + i)

    calls = FixedList([KernelCall(f"add{i}", device.launch(partial(add, i)), (), (), (total,)) for i in range(3)])
    executor = make_executor("auto", segments=segments, device="cuda", driver=device, stream=0)
    assert isinstance(executor, AutoExecutor)
    assert executor.reason == "graph-cached and streams and serial take turns on the first runs"
    expected = 1
    while executor.undecided:
        executor.run([calls])
        for i in range(3):
            expected = 2 * expected + i
        assert values[-1] == expected
    assert executor.executor.name in ("graph-cached", "streams", "serial")
    executor.close()
