"""Whether pieces pay, by the time that runs take with them and call by call.

    runs    1 .. 32    33 34 .. 37   38 39 .. 42   ...           then
            learning   with pieces   call by call  with, without   what took less, until the next trial
                          └ timed       └ timed

A turn is a few runs of one kind. The first is not timed. Some follow each other, synchronised at both ends, as those of
a program do that issues step after step: what the host takes while the device is busy counts. Each of the others is
synchronised at both ends, as those of a program are that waits for each step. Pieces must be faster for both together,
and not slower for either. What a program does between runs does not count. The worse half of the times does not
either, since other programs disturb some. A trial has more turns as long as the two ways take about as long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

_LEARNING = 32  # runs at least, in which graphs are built as they are asked for,
_SETTLED = 12  # until so many came without a new graph,
_LONGEST = 256  # or there were so many
_FOLLOWING = 4  # runs of a turn that follow each other, behind one that is not timed,
_TURN = 8  # and all of them, a multiple of steps that groups leave out in turn
_FEWEST = 6  # turns of a trial: with pieces and call by call, three times,
_MOST = 20  # or so many,
_CLEAR = 0.85  # until one way takes less than this share of the time of the other
_FASTER = 0.97  # share of the time of single calls that pieces may take, in the mean of both kinds of runs,
_SLOWER = 1.03  # and in either
_AGAIN = 1024  # runs from a trial to the next; four times as many each time, and where one way is clearly faster,
_SOON = 256  # and fewer where single calls were faster in one of the first, as few graphs may have been built by then
_FIRST = 2  # trials that are the first


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
        self._trials = 0
        self._learns_on = True
        self._turn = -1  # of the trial; -1: there is none
        self._followed: tuple[list[float], list[float]] = [], []  # seconds a call: with pieces, and call by call
        self._waited: tuple[list[float], list[float]] = [], []
        self._began = self._seconds = 0.0
        self._calls = 0

    @property
    def comparing(self) -> bool:
        """Whether the next run is one of a trial, which may be slower than others."""
        return self._turn >= 0

    @property
    def learning(self) -> bool:
        """Whether graphs were built, and it is not known yet what runs with all of them will take."""
        return self._built > 0 and self._learns_on

    def begins(self) -> bool:
        """Whether a run that begins has pieces."""
        if self._turn < 0:
            return self.pays
        if self._runs >= 1:
            if self._runs == 1 or self._runs > _FOLLOWING:
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
            self._note(calls)
        if self._runs == _TURN:
            self._next_turn()

    def _note(self, calls: int) -> None:
        """Note the time of a run of a turn."""
        kind, is_last = self._turn % 2, self._runs == _FOLLOWING + 1
        if self._runs > _FOLLOWING:
            self._synchronize()
        seconds = self._now() - self._began
        if self._runs > _FOLLOWING + 1:
            self._waited[kind].append(seconds / max(1, calls))
            return
        self._seconds += seconds
        self._calls += calls
        if is_last:
            self._followed[kind].append(self._seconds / max(1, self._calls))
            self._seconds, self._calls = 0.0, 0

    def _next_turn(self) -> None:
        self._turn += 1
        self._runs = 0
        if self._turn < _FEWEST or self._turn % 2:
            return
        ratios = [_typical(pieces) / _typical(single) for pieces, single in (self._followed, self._waited)]
        both = math.sqrt(math.prod(ratios))
        if self._turn < _MOST and _CLEAR < both < 1 / _CLEAR:
            return
        faster, clearly = both <= _FASTER and max(ratios) <= _SLOWER, not _CLEAR < both < 1 / _CLEAR
        self._trials += 1
        if not faster and self._trials <= _FIRST:
            self._wait = _SOON
        else:
            self._wait = max(_AGAIN, 4 * self._wait) * (4 if clearly else 1)
        # Pieces that are not faster may become so with more graphs, which are built in runs that have pieces.
        self._learns_on = not faster and max(ratios) < 1 / _CLEAR and self._trials < _FIRST
        self.pays = faster or self._learns_on
        self._turn, self._followed, self._waited = -1, ([], []), ([], [])


def _typical(times: Sequence[float]) -> float:
    """The mean of the better half."""
    better = sorted(times)[: (len(times) + 1) // 2]
    return sum(better) / len(better)
