"""The automatic executor: candidates take turns on real runs, until the fastest is known.

    runs     1 .. 4        5 .. 8    9   10 .. 13      ...    then
    turn of  graph-cached  streams   graph-cached      ...    graph-cached
             └ first turns: not timed ┘  └── timed ──┘        └ the fastest, untimed

A turn is a few runs, of which the first is not timed: caches hold what another candidate needed. Candidates that take
far longer than the best have no further turns, unless they get faster from turn to turn. If what is run changes much
afterwards, in kind or length, candidates take turns again. If the second was close, the two take turns once more after
1,024 runs, and after four times as many runs each time, since a trial may have been disturbed.

Invariants
    1. One candidate runs each run, and everything has completed before another candidate takes a turn. Every executor
       gives the results of `serial`, so the choice changes no result.
    2. A turn is synchronised at both ends. Its time is what its runs and waits took, so that what a program does
       between runs does not count. Runs after the choice are not synchronised.
    3. No time is taken of runs in which a candidate compares ways of its own.
    4. A candidate that cannot run on this machine, or cannot run what it is given, is left out, and `reason` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from time import perf_counter
from typing import Any

from ..core.calls import Emitter, FixedList
from ..core.errors import CallError
from ..planning.planners import PLANNERS
from ..tracing.trace import Trace
from .base import Executor, Options, run_repeatedly
from .trials import POLLING, Bodies, Candidate, Lists, Turn, next_of

CANDIDATES = {
    "host": ("threads", "serial"),
    "cuda": ("graph-cached", "streams", POLLING, "pipeline", "serial", "device"),
}
"""By device, the likeliest first. `graph` is not there, since `graph-cached` does the same with lists that are new."""

_RUNS = 4  # of a turn; more, so that what happens at its ends counts little,
_LEAST = 0.005  # until they have taken so long [s],
_MOST = 16  # or there are so many
_ENOUGH = 0.02  # a turn ends earlier if its runs have taken so long [s]
_WATCHED = 32  # runs after the choice that are compared with those of the trials; twice as many after each new trial
_NEAR = 1.5  # if the second took at most so many times as long, the two take turns once more,
_AGAIN = 1024  # after so many runs; four times as many each time
_CLEARLY = 0.97  # another candidate must take less than this share of the time of the first, since trials are noisy,
_LATER = 0.9  # and than this share of the time of the chosen one, where the two take turns once more


class AutoExecutor(Executor):
    """The fastest of several executors, or the first of them if no other is clearly faster.

    Attributes:
        reason: why `executor` runs the calls, in words and figures.
    """

    name = "auto"

    def __init__(self, options: Options, make: Callable[[str, Options], Executor]) -> None:
        self._left_out: list[str] = []
        self._options, self._make = options, make
        self._names = list(options.candidates.split("+") if options.candidates else CANDIDATES[options.device])
        self._candidates: list[Candidate] = []
        self._make_candidates({})
        if not self._candidates:
            raise RuntimeError(f"executor 'auto' has no candidate left: {'; '.join(self._left_out)}; name another one")
        self._first = self._candidates[0]
        self._chosen: Candidate | None = None
        self._other: Candidate | None = None  # runs what the chosen one cannot run
        self._second: Candidate | None = None  # took little longer than the chosen one
        self._looks_again = False  # whether the chosen one and the second take turns once more
        self._since = 0  # runs since the choice
        self._again = _AGAIN
        self._bodies = Bodies()
        self.reason = f"{' and '.join(c.name for c in self._candidates)} take turns on the first runs"
        self._at, self._turn = self._first, Turn()
        self._watched = _WATCHED
        self._tried, self._lately = Lists(), Lists()
        self._first_runs: Lists | None = None  # after the choice
        if len(self._candidates) == 1:
            self._choose()

    def _make_candidates(self, present: dict[str, Executor]) -> None:
        """Make the candidates that are not present, and leave out those that cannot run here."""
        for name in list(self._names):
            try:
                executor = present.get(name) or self._made(name)
                self._candidates.append(Candidate(name, executor))
            except (ImportError, RuntimeError) as error:
                self._names.remove(name)
                self._left_out.append(f"{name} cannot run here ({error})")

    def _made(self, name: str) -> Executor:
        if name != POLLING:
            return self._make(name, self._options)
        if self._options.stream_policy in PLANNERS:
            raise RuntimeError("planners wait on the device")
        return self._make("streams", replace(self._options, completion="polling", chains=True))

    @property
    def executor(self) -> Executor:
        """The executor that was chosen, or that is being measured."""
        return (self._chosen or self._at).executor

    @property
    def rounds(self) -> int:
        """How many rounds of fixed lists `executor` runs best as one list."""
        rounds: int = getattr(self.executor, "rounds", 1)
        return rounds

    @property
    def undecided(self) -> bool:
        """Whether candidates are on trial."""
        return self._chosen is None

    def run(self, emitters: Iterable[Emitter], rounds: float = 1) -> Trace:
        """Run the emitters' calls.

        Args:
            emitters: as for other executors.
            rounds: how many rounds of work the calls make; less than one if some have no work. Times of turns are those
                of a call and round.
        """
        emitters = emitters if isinstance(emitters, list) else list(emitters)
        return self._run(emitters, lambda executor: executor.run(emitters), rounds)

    def repeat(self, lists: Sequence[FixedList], times: int) -> Trace:
        """Run fixed lists `times` times. All rounds together are one run of a turn."""
        return self._run(lists, lambda executor: run_repeatedly(executor, lists, times), times)

    def synchronize(self) -> None:
        """Block the host until everything that was issued has completed."""
        began = perf_counter()
        self.executor.synchronize()
        self._turn.seconds += perf_counter() - began
        if self._other is not None:
            self._other.executor.synchronize()

    def close(self) -> None:
        """Close the candidates."""
        executors = {id(c): c.executor for c in (*self._candidates, self._other, self._second) if c is not None}
        for executor in executors.values():
            executor.close()

    def _run(self, emitters: Sequence[Any], run: Callable[[Executor], Trace], times: float) -> Trace:
        if self._chosen is None and self._looks_again and not all(self._can_run(c, emitters) for c in self._candidates):
            self._look_no_more()
        if self._chosen is None and not self._can_run(self._at, emitters):
            self._leave_out(emitters)
        if self._chosen is None:
            trace = self._try(run, times)
            self._tried.note(emitters, times * trace.counters.calls)
            return trace
        if self._other is not None and not self._can_run(self._chosen, emitters):
            self._chosen.executor.synchronize()
            trace = run(self._other.executor)
            self._other.executor.synchronize()
        else:
            trace = run(self._chosen.executor)
        if len(self._names) > 1:
            self._compare(emitters, times * trace.counters.calls)
            self._since += 1
            if self._chosen is not None and self._second is not None and self._since >= self._again:
                self._look_again(self._chosen, self._second)
        return trace

    def _look_again(self, chosen: Candidate, second: Candidate) -> None:
        """Let the chosen candidate and the second take turns once more."""
        chosen.executor.synchronize()
        self._again *= 4
        self._looks_again = True
        self._first, self._candidates, self._chosen, self._second = chosen, [chosen, second], None, None
        for candidate in self._candidates:
            candidate.begin_again()
        self.reason = f"{chosen.name} and {second.name} take turns once more"
        self._next_turn()

    def _look_no_more(self) -> None:
        """Return to the choice of before, since there are calls that one of the two cannot run."""
        self._at.executor.synchronize()
        second = next(candidate for candidate in self._candidates if candidate is not self._first)
        self._chosen = self._at = self._first
        self._candidates, self._second, self._looks_again, self._since = [self._first], second, False, 0
        self._other = second if self._first.executor.name == "device" else None
        self.reason = f"{self._first.name} was chosen before"

    def _compare(self, emitters: Sequence[Any], calls: float) -> None:
        """Compare what runs lately with what ran at first after the choice, and begin new trials if it differs much."""
        self._lately.note(emitters, calls)
        if self._lately.runs < self._watched:
            return
        lately, self._lately = self._lately, Lists()
        if lately.differs(self._first_runs or self._tried, also_in_length=self._first_runs is not None):
            self._try_again()
        else:
            self._first_runs = self._first_runs or lately  # they may have more steps each than those of trials

    def _try_again(self) -> None:
        """Let all candidates take turns again. Those that were closed are made anew."""
        assert self._chosen is not None
        self._chosen.executor.synchronize()
        self._watched *= 2  # so that lists which change again and again are not tried without end
        kept = [candidate for candidate in (self._chosen, self._other, self._second) if candidate is not None]
        self._candidates, self._other, self._chosen, self._second = [], None, None, None
        self._make_candidates({candidate.name: candidate.executor for candidate in kept})
        self._first = self._candidates[0]
        self._tried, self._first_runs = Lists(), None
        self.reason = "the lists have changed, so that candidates take turns again"
        self._next_turn()

    def _can_run(self, candidate: Candidate, emitters: Sequence[Any]) -> bool:
        """Whether a candidate can run these calls: workers of `device` need bodies, which only fixed lists promise."""
        return candidate.executor.name != "device" or self._bodies.are_in(emitters)

    def _leave_out(self, emitters: Sequence[Any]) -> None:
        """Leave out candidates that cannot run what they are given, before anything of it has run."""
        for candidate in [c for c in self._candidates if not self._can_run(c, emitters)]:
            self._left_out.append(f"{candidate.executor.name} cannot run calls that have no body for workers")
            self._drop(candidate)
        self._next_turn()

    def _next_turn(self) -> None:
        """Give the turn to a candidate that is left. Raises RuntimeError if none is."""
        if not self._candidates:
            raise RuntimeError(f"executor 'auto' has no candidate left: {'; '.join(self._left_out)}; name another one")
        self._turn = Turn()
        self._follow()

    def _drop(self, candidate: Candidate) -> None:
        self._candidates.remove(candidate)
        if candidate.name in self._names:
            self._names.remove(candidate.name)
        with suppress(Exception):
            candidate.executor.close()

    def _try(self, run: Callable[[Executor], Trace], times: float) -> Trace:
        candidate = self._at
        if getattr(candidate.executor, "comparing", False):
            self._turn = Turn()  # runs of its own trial tell nothing of those that follow
            return run(candidate.executor)
        turn = self._turn
        if not turn.runs:
            candidate.executor.synchronize()
            turn.seconds = 0.0
        timed = turn.warm or candidate.long or not candidate.turns
        began = perf_counter()
        try:
            trace = run(candidate.executor)
        except (RuntimeError, ValueError) as error:
            if candidate.executor.name != "device" or isinstance(error, CallError):
                raise
            # It found no way to run the list, and has run nothing of it.
            self._left_out.append(f"device cannot run the list ({error})")
            self._drop(candidate)
            self._next_turn()
            return self._try(run, times) if self._chosen is None else run(self._chosen.executor)
        if not timed:
            turn.warm = True
            return trace
        turn.seconds += perf_counter() - began
        turn.runs += 1
        turn.calls += times * trace.counters.calls
        if turn.seconds > _ENOUGH or turn.runs >= (_RUNS if turn.seconds >= _LEAST or not candidate.turns else _MOST):
            began = perf_counter()
            candidate.executor.synchronize()
            turn.seconds += perf_counter() - began
            candidate.note(turn)
            self._turn = Turn()
            self._follow()
        return trace

    def _follow(self) -> None:
        """Give the turn to the candidate that has the next one, or end the trials."""
        if (following := next_of(self._candidates)) is None:
            self._choose()
        else:
            self._at = following

    def _choose(self) -> None:
        """Choose the fastest candidate and close the others, but the second if it is near."""
        share = _LATER if self._looks_again else _CLEARLY
        ranked = sorted(self._candidates, key=lambda c: c.typical * (share if c is self._first else 1.0))
        first, *others = ranked
        self._chosen = self._at = first
        self._since, self._looks_again = 0, False
        why = f"{first.name} is the only candidate"
        if others:
            why = f"{', '.join(map(str, ranked))} a call, by the better half of their turns"
        self.reason = "; ".join([why, *self._left_out])
        if first.executor.name == "device":
            self._other = next((other for other in others if other.executor.name != "device"), None)
        self._second = next((other for other in others[:1] if other.typical <= _NEAR * first.typical), None)
        for candidate in others:
            if candidate is not self._other and candidate is not self._second:
                with suppress(Exception):
                    candidate.executor.close()
        self._candidates = [first]
