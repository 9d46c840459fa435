"""What executor `auto` notes of its candidates, and of the lists that they ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.calls import FixedList
from ..core.counted import CountedList
from .base import Executor

POLLING = "polling"  # the candidate `streams` with completion by polling, and chains
_ROUNDS = 5  # timed turns of each candidate that stays
_CLOSE_ROUNDS = 25  # timed turns if another candidate takes about as long,
_LOOK_ROUNDS = 9  # and where two candidates take turns once more
_LONG_ROUNDS = 2  # timed turns if runs are long; one alone may be disturbed by other programs
_MOST_ROUNDS = 20  # timed turns of a candidate that gets faster from turn to turn
_LEARNS = 0.95  # its latest turn took less than this share of the best before,
_FEWER = 0.75  # or it made graphs, but fewer a run than this share of the most in a turn,
_CLEAN = 3  # in one of so many latest turns
_LONG = 0.05  # a run that takes longer is long [s]
_MUCH = 2.0  # how many times more or fewer calls a run may have than in the trials


@dataclass
class Candidate:
    """An executor on trial.

    Attributes:
        name: of the candidate.
        executor: runs lists.
        turns: how many it has had.
        long: whether its runs are long.
        times: the seconds per call of its timed turns.
        made: how many graphs it made in a run of each of them.
        close: whether another candidate takes about as long.
    """

    name: str
    executor: Executor
    turns: int = 0
    long: bool = False
    times: list[float] = field(default_factory=list)

    made: list[float] = field(default_factory=list)
    close: bool = False
    _built: int = 0
    _close_rounds: int = _CLOSE_ROUNDS

    @property
    def rounds(self) -> int:
        """How many timed turns it is due: one more as long as it learns."""
        few = _LONG_ROUNDS if self.long else self._close_rounds if self.close else _ROUNDS
        return max(few, len(self.times) + self.learns)

    @property
    def learns(self) -> bool:
        """Whether it still gets faster, as an executor does that keeps graphs or scripts of lists which vary.

        Such an executor makes fewer and fewer graphs. One that always makes as many meets new lists for ever. An
        executor may also say by `learning` that it does.
        """
        times, made = self.times, self.made
        if not 2 <= len(times) < _MOST_ROUNDS:
            return False
        if getattr(self.executor, "learning", False):
            return True
        fewer = any(made[-_CLEAN:]) and (len(made) < _ROUNDS or made[-1] < _FEWER * max(made))
        return fewer or times[-1] < _LEARNS * min(times[:-1])

    @property
    def typical(self) -> float:
        """The mean of the better half of its latest turns [s], because other programs disturb some.

        If graphs are made in them again and again, it is the mean of all of them, since those turns are no better than
        what will follow. A single candidate has no turns, and its time is 0.
        """
        latest = self.times[-(_ROUNDS if any(self.made) else _CLOSE_ROUNDS) :]
        best = latest if any(self.made[-_CLEAN:]) else sorted(latest)[: (len(latest) + 1) // 2]
        return sum(best) / len(best) if best else 0.0

    def note(self, turn: Turn) -> None:
        """Note a turn that has completed. The first is not timed: graphs are made in it, and threads wake."""
        built: int = getattr(self.executor, "built", 0)
        self.turns += 1
        self.long = turn.seconds > _LONG * turn.runs
        if self.turns > 1:
            self.times.append(turn.seconds / max(1, turn.calls))
            self.made.append((built - self._built) / turn.runs)
        self._built = built

    def begin_again(self) -> None:
        """Forget all turns, for fewer ones."""
        self.turns, self.times, self.made, self.close = 0, [], [], False
        self._close_rounds = _LOOK_ROUNDS

    def __str__(self) -> str:
        us = 1e6 * self.typical
        return f"{self.name} {us:{',.0f' if us >= 100 else '.3g'}} us"


@dataclass
class Lists:
    """What some runs ran: how many calls, and which kinds of lists in one of them."""

    runs: int = 0
    calls: float = 0
    kinds: frozenset[str] = frozenset()

    def note(self, emitters: Sequence[Any], calls: float) -> None:
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
    """What the timed runs of a turn took so far, and whether there was one before them."""

    warm: bool = False
    runs: int = 0
    calls: float = 0
    seconds: float = 0.0


class Bodies:
    """Knows which lists have a body for workers in each of their calls, as only fixed lists promise it."""

    def __init__(self) -> None:
        self._known: dict[int, FixedList] = {}  # lists that have, by their id()

    def are_in(self, emitters: Sequence[Any]) -> bool:
        """Whether all emitters are such lists."""
        return all(self._are_in(emitter) for emitter in emitters)

    def _are_in(self, emitter: Any) -> bool:
        if type(emitter) is not FixedList:
            return False
        if id(emitter) not in self._known:
            if any(getattr(call.launch, "task", None) is None for call in emitter):
                return False
            self._known[id(emitter)] = emitter
        return True
