"""The automatic executor: candidates take turns on real runs, until the fastest is known.

The first candidate stays unless another one is clearly faster.

    run 1 2 3 ...    threads  serial  threads  serial  ...  threads threads threads ...
                     └──────── trials, timed ─────────┘     └── the fastest, untimed

Invariants
    1. One candidate runs each run, and everything has completed before another candidate takes a turn. Every executor
       gives the results of `serial`, so the choice changes no result.
    2. Trials are synchronised at both ends, so that whole runs are timed. Runs after the choice are not synchronised.
    3. A candidate that cannot run on this machine is left out, and `reason` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter

from ..core.calls import Emitter, FixedList
from ..tracing.trace import Trace
from .base import Executor, Options, run_repeatedly

CANDIDATES = {"host": ("threads", "serial"), "cuda": ("graph-cached", "streams", "serial")}
_SETTLING = 3  # first runs of a candidate, which are not timed: it makes graphs and wakes threads
_TRIALS = 5  # timed runs of each candidate
_LONG_TRIALS = 2  # timed runs if runs are long; one alone may be disturbed by other programs
_CLEARLY = 0.85  # another candidate must take less than this share of the time of the first, since trials are noisy
_LONG = 0.05  # a run that takes longer is long [s]


@dataclass
class _Candidate:
    """An executor on trial, and the seconds per call of its timed runs."""

    executor: Executor
    runs: int = 0
    long: bool = False
    times: list[float] = field(default_factory=list)

    @property
    def tried(self) -> bool:
        """Whether all its trials are over."""
        return len(self.times) >= (_LONG_TRIALS if self.long else _TRIALS)

    def note(self, seconds: float, calls: int) -> None:
        """Note the time of a run that has completed."""
        settled = self.runs >= (1 if self.long else _SETTLING)
        self.runs += 1
        self.long = seconds > _LONG
        if settled:
            self.times.append(seconds / max(1, calls))

    def __str__(self) -> str:
        us = 1e6 * min(self.times)
        return f"{self.executor.name} {us:{',.0f' if us >= 100 else '.3g'}} us"


class AutoExecutor(Executor):
    """The fastest of several executors, or the first of them if no other is clearly faster.

    Attributes:
        reason: why `executor` runs the calls, in words and figures.
    """

    name = "auto"

    def __init__(self, options: Options, make: Callable[[str, Options], Executor]) -> None:
        self._left_out: list[str] = []
        self._candidates: list[_Candidate] = []
        for name in options.candidates.split("+") if options.candidates else CANDIDATES[options.device]:
            try:
                self._candidates.append(_Candidate(make(name, options)))
            except (ImportError, RuntimeError) as error:
                self._left_out.append(f"{name} cannot run here ({error})")
        if not self._candidates:
            raise RuntimeError(f"executor 'auto' has no candidate left: {'; '.join(self._left_out)}; name another one")
        self._chosen: _Candidate | None = None
        names = " and ".join(candidate.executor.name for candidate in self._candidates)
        self.reason = f"{names} take turns on the first runs"
        self._at = 0
        if len(self._candidates) == 1:
            self._choose()

    @property
    def executor(self) -> Executor:
        """The executor that was chosen, or that is being measured."""
        return (self._chosen or self._candidates[self._at]).executor

    @property
    def rounds(self) -> int:
        """How many rounds of fixed lists `executor` runs best as one list."""
        rounds: int = getattr(self.executor, "rounds", 1)
        return rounds

    @property
    def undecided(self) -> bool:
        """Whether candidates are on trial."""
        return self._chosen is None

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Run the emitters' calls."""
        if self._chosen is not None:
            return self._chosen.executor.run(emitters)
        return self._try(lambda executor: executor.run(emitters))

    def repeat(self, lists: Sequence[FixedList], times: int) -> Trace:
        """Run fixed lists `times` times. All rounds together are one trial."""
        if self._chosen is not None:
            return run_repeatedly(self._chosen.executor, lists, times)
        return self._try(lambda executor: run_repeatedly(executor, lists, times), times)

    def synchronize(self) -> None:
        """Block the host until everything that was issued has completed."""
        self.executor.synchronize()

    def close(self) -> None:
        """Close the candidates."""
        for candidate in self._candidates:
            candidate.executor.close()

    def _try(self, run: Callable[[Executor], Trace], times: int = 1) -> Trace:
        candidate = self._candidates[self._at]
        candidate.executor.synchronize()
        start = perf_counter()
        trace = run(candidate.executor)
        candidate.executor.synchronize()
        candidate.note(perf_counter() - start, times * trace.counters.calls)
        self._following()
        return trace

    def _following(self) -> None:
        """Give the turn to the candidate with the fewest runs, or end the trials."""
        waiting = [i for i, candidate in enumerate(self._candidates) if not candidate.tried]
        if waiting:
            self._at = min(waiting, key=lambda i: self._candidates[i].runs)
            return
        self._choose()

    def _handicapped(self, candidate: _Candidate) -> float:
        """Return the time by which a candidate is ranked. A single candidate has no trials, and its time is 0."""
        least = min(candidate.times, default=0.0)
        return _CLEARLY * least if candidate is self._candidates[0] else least

    def _choose(self) -> None:
        """Choose the fastest candidate and close the others."""
        first, *others = sorted(self._candidates, key=self._handicapped)
        self._chosen = first
        why = f"{first.executor.name} is the only candidate"
        if others:
            why = f"{', '.join(map(str, (first, *others)))} a call, the least of their runs"
        self.reason = "; ".join([why, *self._left_out])
        for candidate in others:
            with suppress(Exception):
                candidate.executor.close()
        self._candidates = [self._chosen]
        self._at = 0
