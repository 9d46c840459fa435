"""Executors that take as long as a test says, for tests of executor `auto`. The fixture `clock` has their time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simengine_scheduler import FixedList, KernelCall, PythonLaunch
from simengine_scheduler.executors.auto import AutoExecutor
from simengine_scheduler.executors.base import Executor, Options
from simengine_scheduler.executors.serial import SerialExecutor


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


class Workers(Slow):
    """Runs calls with bodies only."""

    def run(self, emitters: Any) -> Any:
        assert all(type(emitter) is FixedList for emitter in emitters)
        assert all(call.launch.task for emitter in emitters for call in emitter)
        return super().run(emitters)


class Bodied(PythonLaunch):
    task = "a body"


def of(clock: Clock, **seconds: float) -> tuple[AutoExecutor, dict[str, Slow]]:
    made: dict[str, Slow] = {}

    def make(name: str, options: Options) -> Executor:
        made[name] = Slow(name, seconds[name], clock)
        return made[name]

    return AutoExecutor(Options(candidates="+".join(seconds)), make), made


def counting(times: int = 3) -> tuple[list[int], Callable[[], list[KernelCall]]]:
    ran: list[int] = []
    return ran, lambda: [KernelCall("note", PythonLaunch(lambda: ran.append(len(ran))), (), ()) for _ in range(times)]


def settled(executor: AutoExecutor, lists: Callable[[], list[Any]], most: int = 1000) -> int:
    """Run lists until the executor has chosen. Returns how many runs that took."""
    runs = 0
    while executor.undecided:
        executor.run(lists())
        runs += 1
        assert runs < most
    return runs
