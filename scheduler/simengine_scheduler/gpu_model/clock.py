"""Virtual time: a queue of actions that are due, and processes.

    clock.at(time, action)     action() is called at `time`; of two at one time, the one entered first is called first
    clock.advance(seconds)     time passes for the caller, and all actions that are due in it are called
    clock.spawn(process)       a generator that yields seconds to sleep, or a Signal to wait for

Nothing is random, and nothing looks at a real clock: the same calls give the same times.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from itertools import count

Action = Callable[[], None]


class Signal:
    """What processes wait for. `fire` wakes all processes that wait, and each looks itself whether it can go on."""

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
    """The queue of actions, and the present time `now` [s]."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Action]] = []
        self._numbers = count()

    def at(self, time: float, action: Action) -> None:
        """Call an action at a time, or at the present time if that time has passed."""
        heapq.heappush(self._due, (max(time, self.now), next(self._numbers), action))

    def advance(self, seconds: float) -> None:
        """Let time pass, and call the actions that are due in it."""
        self.until(self.now + seconds)

    def until(self, time: float) -> None:
        """Let time pass up to a moment, and call the actions that are due by then."""
        due = self._due
        while due and due[0][0] <= time:
            self.step()
        self.now = max(self.now, time)

    def step(self) -> bool:
        """Go on to the next action and call it. Returns False if there is none."""
        if not self._due:
            return False
        self.now, _, action = heapq.heappop(self._due)
        action()
        return True

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Go on until a condition holds, or no action is due."""
        while not until() and self.step():
            pass

    @property
    def idle(self) -> bool:
        """Whether no action is due."""
        return not self._due

    def clear(self) -> None:
        """Forget all actions that are due."""
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
