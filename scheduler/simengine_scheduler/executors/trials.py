"""What executor `auto` notes of its candidates, and of the lists that they ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.calls import FixedList
from ..core.counted import CountedList
from .base import Executor

POLLING = "polling"  # the candidate `streams` with completion by polling, and chains
_ROUNDS = 5  # timed turns of each candidate that stays
_CLOSE_ROUNDS = 25  # timed turns if another candidate takes about as long,
_LOOK_ROUNDS = 3  # and where two candidates take turns once more
_CLOSE = 1.15  # candidates that take at most so many times as long as the best have more turns
_FAR = 1.3  # a candidate that took so many times as long as the best, in two turns, has no further turns
_HOPELESS = 8  # nor has one that learns if it took so many times as long in its first ones
_LONG_ROUNDS = 2  # timed turns if runs are long; one alone may be disturbed by other programs
_MOST_ROUNDS = 20  # timed turns of a candidate that gets faster from turn to turn,
_MOST_LEARNING = 80  # and of one that says itself that it learns
_LEARNS = 0.95  # its latest turn took less than this share of the best before,
_FEWER = 0.75  # or it made graphs, but fewer a run than this share of the most in a turn,
_CLEAN = 3  # in one of so many latest turns
_LONG = 0.05  # a run that takes longer is long [s]
_LOOKED_AT = 4  # of so many runs, one is looked at for its kinds of lists
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
    _rounds: int = _ROUNDS
    _close_rounds: int = _CLOSE_ROUNDS
    _looks: bool = False
    _learned: bool = False

    @property
    def rounds(self) -> int:
        """How many timed turns it is due: one more as long as it learns."""
        few = _LONG_ROUNDS if self.long else self._close_rounds if self.close else self._rounds
        return max(few, len(self.times) + self.learns)

    @property
    def learns(self) -> bool:
        """Whether it still gets faster, as an executor does that keeps graphs or scripts of lists which vary.

        Such an executor makes fewer and fewer graphs. One that always makes as many meets new lists for ever. An
        executor may also say by `learning` that it does.
        """
        times, made = self.times, self.made
        if len(times) < 2 or self._looks:
            return False
        if self._says_that_it_learns:
            return len(times) < _MOST_LEARNING
        if len(times) >= _MOST_ROUNDS:
            return False
        fewer = any(made[-_CLEAN:]) and (len(made) < _ROUNDS or made[-1] < _FEWER * max(made))
        return fewer or times[-1] < _LEARNS * min(times[:-1])

    def may_learn(self, best: float) -> bool:
        """Whether it gets faster, and may become the fastest, where the best takes so long for a call [s]."""
        return self.learns and (len(self.times) < _ROUNDS or self.typical <= _HOPELESS * best)

    @property
    def _says_that_it_learns(self) -> bool:
        return bool(getattr(self.executor, "learning", False))

    @property
    def typical(self) -> float:
        """The mean of the better half of its latest turns [s], because other programs disturb some.

        If graphs are made in them again and again, it is the mean of all of them but the worst of five, since those
        turns are no better than what will follow. A single candidate has no turns, and its time is 0.
        """
        latest = sorted(self.times[-(_ROUNDS if any(self.made) else _CLOSE_ROUNDS) :])
        few = len(latest) - len(latest) // _ROUNDS if any(self.made[-_CLEAN:]) else (len(latest) + 1) // 2
        return sum(latest[:few]) / few if few else 0.0

    def note(self, turn: Turn) -> None:
        """Note a turn that has completed. The first is not timed: graphs are made in it, and threads wake.

        Turns in which the candidate said that it learns are forgotten once it has.
        """
        built: int = getattr(self.executor, "built", 0)
        self.turns += 1
        self.long = turn.seconds > _LONG * turn.runs
        learns, learned = self._says_that_it_learns, self._learned
        self._learned = learns
        if learned and not learns:
            self.times, self.made = [], []
        if self.turns > 1:
            self.times.append(turn.seconds / max(1, turn.calls))
            self.made.append((built - self._built) / turn.runs)
        self._built = built

    def begin_again(self) -> None:
        """Forget all turns, for fewer ones."""
        self.turns, self.times, self.made, self.close = 0, [], [], False
        self._rounds = self._close_rounds = _LOOK_ROUNDS
        self._looks = True

    def __str__(self) -> str:
        us = 1e6 * self.typical
        return f"{self.name} {us:{',.0f' if us >= 100 else '.3g'}} us"


def next_of(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the candidate that has the next turn, the one with the fewest, or None at the end of the trials."""
    timed = [candidate for candidate in candidates if len(candidate.times) >= 2]
    best = min((candidate.typical for candidate in timed), default=0.0)
    near = [candidate for candidate in candidates if candidate.times and candidate.typical <= _CLOSE * best]
    for candidate in timed:
        candidate.close = len(near) > 1 and candidate in near
    stay = [c for c in candidates if c not in timed or c.typical <= _FAR * best or c.may_learn(best)]
    due = [candidate for candidate in stay if len(candidate.times) < candidate.rounds]
    return min(due, key=lambda candidate: candidate.turns) if len(stay) > 1 and due else None


@dataclass
class Lists:
    """What some runs ran: how many calls, and which kinds of lists in every fourth of them."""

    runs: int = 0
    calls: float = 0
    found: Counter[frozenset[str]] = field(default_factory=Counter)

    def note(self, emitters: Sequence[Any], calls: float) -> None:
        """Note a run."""
        if self.runs % _LOOKED_AT == 0:
            known = {FixedList: "fixed", CountedList: "counted"}
            self.found[frozenset(known.get(kind, "other") for kind in set(map(type, emitters)))] += 1
        self.runs += 1
        self.calls += calls

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of lists of most runs, since a program makes other runs now and then."""
        return max(self.found, key=self.found.__getitem__, default=frozenset())

    def differs(self, other: Lists, also_in_length: bool) -> bool:
        """Whether these runs were of another kind, or much longer or shorter if that counts."""
        own, others = self.calls / max(1, self.runs), other.calls / max(1, other.runs)
        return self.kinds != other.kinds or (also_in_length and not others <= _MUCH * own <= _MUCH**2 * others)


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
