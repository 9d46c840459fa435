"""Virtual time: a queue of things to happen, and processes that live in it.

    clock.at(time, action)     action() happens at `time`; of two at one time, the one entered first goes first
    clock.advance(seconds)     the caller's own time passes: all that is due by then happens first
    clock.spawn(process)       a generator that yields seconds to sleep, or a Signal to wait for

Nothing is random, and nothing looks at a real clock: the same calls give the same times.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from itertools import count

Action = Callable[[], None]


class Signal:
    """What processes wait for. `fire` wakes all that wait at that moment; they then look for themselves."""

    __slots__ = ("_clock", "_waiting")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[Process] = []

    def fire(self) -> None:
        """Wake the processes that wait, at the present time."""
        waiting, self._waiting = self._waiting, []
        for process in waiting:
            self._clock.resume(process)

    def hold(self, process: Process) -> None:
        """Let a process wait."""
        self._waiting.append(process)


Process = Generator[float | Signal, None, None]


class Clock:
    """The queue and the present time, `now` [s]."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Action]] = []
        self._numbers = count()

    def at(self, time: float, action: Action) -> None:
        """Let something happen at a time that has not passed; at a time that has, it happens now."""
        heapq.heappush(self._due, (max(time, self.now), next(self._numbers), action))

    def advance(self, seconds: float) -> None:
        """Let time pass, and what is due in it happen."""
        self.until(self.now + seconds)

    def until(self, time: float) -> None:
        """Let time pass up to a moment, and what is due by then happen."""
        due = self._due
        while due and due[0][0] <= time:
            self.step()
        self.now = max(self.now, time)

    def step(self) -> bool:
        """Go on to the next thing that is due; return False if there is none."""
        if not self._due:
            return False
        self.now, _, action = heapq.heappop(self._due)
        action()
        return True

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Go on until a condition holds, or nothing is due any more."""
        while not until() and self.step():
            pass

    @property
    def idle(self) -> bool:
        """Whether nothing is due."""
        return not self._due

    def clear(self) -> None:
        """Forget what is due."""
        self._due.clear()

    def spawn(self, process: Process) -> None:
        """Start a process at the present time."""
        self.at(self.now, lambda: self.resume(process))

    def resume(self, process: Process) -> None:
        """Let a process go on to its next sleep or wait."""
        wanted = next(process, None)
        if isinstance(wanted, Signal):
            wanted.hold(process)
        elif wanted is not None:
            self.at(self.now + wanted, lambda: self.resume(process))
