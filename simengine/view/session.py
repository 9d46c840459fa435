"""`Session`: the loop that steps worlds at the pace that is asked for, and does what the page asks between steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import perf_counter, sleep

from simengine.view.worlds import Worlds

FRAME = 1 / 30
"""Time of one frame [s]."""

_FOR_STEPS = 0.7  # part of a frame in which steps are made; the rest is for drawing
_MEASURED_OVER = 1.0  # time over which the speed is measured [s]


class Session:
    """Worlds, and the pace at which they step.

    One thread runs the loop and touches the worlds. Other threads ask it through `request`.

    Args:
        worlds: what steps.
        now: the clock [s].
        rest: waits for a time [s].

    Attributes:
        worlds: what steps.
        paused: whether the loop makes no steps by itself.
        time_scale: simulated seconds in a second, or None for as many as can be.
        steps: steps of each world since the session began.
    """

    def __init__(
        self, worlds: Worlds, now: Callable[[], float] = perf_counter, rest: Callable[[float], None] = sleep
    ) -> None:
        self.worlds = worlds
        self.paused = False
        self.time_scale: float | None = 1.0
        self.steps = 0
        self._now, self._rest = now, rest
        self._requests: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._last = now()
        self._owed = 0.0  # steps that are due, in parts of one
        self._cost: float | None = None  # time of a step as lately measured [s]
        self._history: deque[tuple[float, int]] = deque([(self._last, 0)])  # times and the steps until then

    @property
    def steps_per_second(self) -> float:
        """Steps of all worlds in a second, lately."""
        (began, before), (ended, after) = self._history[0], self._history[-1]
        return (after - before) * self.worlds.num_worlds / (ended - began) if ended > began else 0.0

    @property
    def real_time_factor(self) -> float:
        """Simulated seconds in a second, lately."""
        return self.steps_per_second / self.worlds.num_worlds * self.worlds.timestep

    def request(self, action: Callable[[], object]) -> None:
        """Let the loop call a function before its next steps. Any thread may ask."""
        self._requests.put(action)

    def step_once(self) -> None:
        """Pause, and make one step."""
        self.paused = True
        self._advance(1)

    def reset(self, world: int | None = None) -> None:
        """Set a world, or all, back to the initial state. The pace stays."""
        self.worlds.reset(world)
        self._owed = 0.0

    def tick(self) -> int:
        """Do what was asked, and make the steps that are due since the last tick.

        Returns:
            Number of steps made, without those of `step_once`.
        """
        self._answer()
        now = self._now()
        elapsed, self._last = now - self._last, now
        due = self._due(elapsed)
        if due:
            self._advance(due)
        self._history.append((self._now(), self.steps))
        while self._history[-1][0] - self._history[1][0] >= _MEASURED_OVER:
            self._history.popleft()
        return due

    def run(self, draw: Callable[[], object], seconds: float | None = None) -> None:
        """Step and draw, frame by frame.

        Args:
            draw: draws a frame.
            seconds: when to end; None for never.
        """
        began = self._last = self._now()
        while True:
            frame = self._now()
            if seconds is not None and frame - began >= seconds:
                return
            self.tick()
            draw()
            left = FRAME - (self._now() - frame)
            if left > 0:
                self._rest(left)

    def _answer(self) -> None:
        while True:
            try:
                action = self._requests.get_nowait()
            except Empty:
                return
            action()

    def _due(self, elapsed: float) -> int:
        """Number of steps that are due, and can be made while the page still answers."""
        if self.paused:
            self._owed = 0.0
            return 0
        most = 1 if self._cost is None else max(1, int(_FOR_STEPS * FRAME / self._cost))
        if self.time_scale is None:
            return most
        self._owed += elapsed * self.time_scale / self.worlds.timestep
        due = int(self._owed + 1e-9)
        # what a slow machine cannot make is given up, or it would never be done with it
        self._owed = self._owed - due if due <= most else 0.0
        return min(due, most)

    def _advance(self, n: int) -> None:
        began = self._now()
        self.worlds.step(n)
        cost = max((self._now() - began) / n, 1e-9)
        self.steps += n
        # the first step compiles; the mean forgets it soon
        self._cost = cost if self._cost is None else min(cost, 0.5 * (self._cost + cost))
