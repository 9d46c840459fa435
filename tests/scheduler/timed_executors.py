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


def of(clock: Clock, **candidates: float | tuple[type[Slow], float]) -> tuple[AutoExecutor, dict[str, Slow]]:
    """Return executor `auto` with these candidates, and the candidates as they are made.

    Args:
        clock: tells the time.
        candidates: by name, what each takes for a call [s], and its class if that is not `Slow`.
    """
    made: dict[str, Slow] = {}

    def make(name: str, options: Options) -> Executor:
        given = candidates[name]
        kind, seconds = given if isinstance(given, tuple) else (Slow, given)
        made[name] = kind(name, seconds, clock)
        return made[name]

    return AutoExecutor(Options(candidates="+".join(candidates)), make), made


def list_of(launch: PythonLaunch) -> FixedList:
    """Return a fixed list of one call."""
    return FixedList([KernelCall("call", launch, (), ())])


def counting(times: int = 3) -> tuple[list[int], Callable[[], list[KernelCall]]]:
    ran: list[int] = []
    return ran, lambda: [KernelCall("note", PythonLaunch(lambda: ran.append(len(ran))), (), ()) for _ in range(times)]


def settled(executor: AutoExecutor, lists: int | Callable[[], list[Any]] = 3, most: int = 1000) -> int:
    """Run lists, or one of so many calls, until the executor has chosen. Returns how many runs that took."""
    runs = 0
    while executor.undecided:
        executor.run([counting(lists)[1]()] if isinstance(lists, int) else lists())
        runs += 1
        assert runs < most
    return runs
