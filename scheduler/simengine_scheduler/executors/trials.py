"""What executor `auto` notes of its candidates, and of the lists that they ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.calls import FixedList
from ..core.counted import CountedList
from .base import Executor

_ROUNDS = 5  # timed turns of each candidate that stays
_LONG_ROUNDS = 2  # timed turns if runs are long; one alone may be disturbed by other programs
_MOST_ROUNDS = 20  # timed turns of a candidate that gets faster from turn to turn
_LEARNS = 0.95  # its latest turn took less than this share of the best before
_LONG = 0.05  # a run that takes longer is long [s]
_MUCH = 2.0  # how many times more or fewer calls a run may have than in the trials


@dataclass
class Candidate:
    """An executor on trial, and the seconds per call of its timed turns."""

    name: str
    executor: Executor
    turns: int = 0
    long: bool = False
    times: list[float] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        """How many timed turns it is due: one more as long as it learns."""
        return max(_LONG_ROUNDS if self.long else _ROUNDS, len(self.times) + self.learns)

    @property
    def learns(self) -> bool:
        """Whether it still gets faster, as an executor does that keeps graphs or scripts of lists which vary."""
        times = self.times
        return 2 <= len(times) < _MOST_ROUNDS and times[-1] < _LEARNS * min(times[:-1])

    @property
    def typical(self) -> float:
        """The mean of the better half of its latest turns [s]. A single candidate has no turns, and its time is 0."""
        latest = self.times[-_ROUNDS:]
        best = sorted(latest)[: (len(latest) + 1) // 2]
        return sum(best) / len(best) if best else 0.0

    def note(self, turn: Turn) -> None:
        """Note a turn that has completed. The first is not timed: graphs are made in it, and threads wake."""
        self.turns += 1
        self.long = turn.seconds > _LONG * turn.runs
        if self.turns > 1:
            self.times.append(turn.seconds / max(1, turn.calls))

    def __str__(self) -> str:
        us = 1e6 * self.typical
        return f"{self.executor.name} {us:{',.0f' if us >= 100 else '.3g'}} us"


@dataclass
class Lists:
    """What some runs ran: how many calls, and which kinds of lists in one of them."""

    runs: int = 0
    calls: int = 0
    kinds: frozenset[str] = frozenset()

    def note(self, emitters: Sequence[Any], calls: int) -> None:
        """Note a run."""
        if not self.runs:
            known = {FixedList: "fixed", CountedList: "counted"}
            self.kinds = frozenset(known.get(kind, "other") for kind in set(map(type, emitters)))
        self.runs += 1
        self.calls += calls

    def differs(self, other: Lists) -> bool:
        """Whether these runs were of another kind, or much longer or shorter."""
        own, others = self.calls / max(1, self.runs), other.calls / max(1, other.runs)
        return self.kinds != other.kinds or not others <= _MUCH * own <= _MUCH**2 * others


@dataclass
class Turn:
    """What the runs of a turn took so far."""

    runs: int = 0
    calls: int = 0
    seconds: float = 0.0
