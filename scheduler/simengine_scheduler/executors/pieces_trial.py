"""Whether pieces pay, by the time that runs take with them and call by call.

    runs    1 .. 32    33 34 .. 37   38 39 .. 42   ...           then
            learning   with pieces   call by call  with, without   what took less, until the next trial
                          └ timed       └ timed

A turn is a few runs of one kind, of which the first is not timed. Each of the others is synchronised at both ends, so
that what the device does counts, whether or not a program waits for it between runs. What else a program does there
does not count. The medians of all timed runs decide.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

_LEARNING = 32  # runs at least, in which graphs are built as they are asked for,
_SETTLED = 12  # until so many came without a new graph,
_LONGEST = 256  # or there were so many
_TURN = 6  # runs of a turn
_TURNS = 6  # of a trial: with pieces and call by call, three times
_AGAIN = 1024  # runs from a trial to the next; four times as many each time


class PiecesTrial:
    """Decides for each run of a kind of lists whether it has pieces.

    Args:
        synchronize: blocks until the device has ended what was issued.
        now: tells the time [s].

    Attributes:
        pays: whether runs have pieces while there is no trial.
    """

    def __init__(self, synchronize: Callable[[], None], now: Callable[[], float]) -> None:
        self.pays = True
        self._now = now
        self._synchronize = synchronize
        self._runs = self._since_built = self._built = 0
        self._wait = _LEARNING
        self._turn = -1  # of the trial; -1: there is none
        self._times: tuple[list[float], list[float]] = [], []  # seconds a call: with pieces, and call by call
        self._began = 0.0

    @property
    def comparing(self) -> bool:
        """Whether the next run is one of a trial, which may be slower than others."""
        return self._turn >= 0

    @property
    def learning(self) -> bool:
        """Whether graphs were built, and the first trial has not ended."""
        return self._built > 0 and self._wait == _LEARNING

    def begins(self) -> bool:
        """Whether a run that begins has pieces."""
        if self._turn < 0:
            return self.pays
        if self._runs == 1:
            self._synchronize()
        self._began = self._now()
        return self._turn % 2 == 0

    def ended(self, calls: int, built: int) -> None:
        """Note a run that has ended: how many calls it had, and how many graphs were built so far, by now."""
        self._runs += 1
        self._since_built = 0 if built != self._built else self._since_built + 1
        self._built = built
        if self._turn < 0:
            settled = self._since_built >= _SETTLED or not self.pays or self._runs >= _LONGEST
            if built and settled and self._runs >= self._wait:
                self._next_turn()
            return
        if self._runs > 1:
            self._synchronize()
            self._times[self._turn % 2].append((self._now() - self._began) / max(1, calls))
        if self._runs == _TURN:
            self._next_turn()

    def _next_turn(self) -> None:
        self._turn += 1
        self._runs = 0
        if self._turn < _TURNS:
            return
        self.pays = statistics.median(self._times[0]) <= statistics.median(self._times[1])
        self._wait = _AGAIN if self._wait == _LEARNING else 4 * self._wait
        self._turn, self._times = -1, ([], [])
