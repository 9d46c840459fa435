"""Measure all engines on one problem: prepare them, time the same steps in turns, and compare with MuJoCo."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from simengine.cli.bench.peers.agreement import Agreement, compare
from simengine.cli.bench.peers.engine import Engine, OverflowedError
from simengine.cli.bench.peers.problem import Problem, State, count

Row = dict[str, Any]
MakeEngine = Callable[[], Engine]

_ENLARGEMENTS = 4  # how often the room for contacts and rows is doubled before an engine counts as overflowed
_TRIED = 10  # steps by which the number of timed steps is found


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    Attributes:
        warmup: steps of simengine from the first states; the states after them are those that all engines time.
        steps: steps of a repeat at most.
        seconds: about how long a repeat of an engine takes at most [s].
        repeats: repeats, of which the median counts.
    """

    warmup: int
    steps: int
    seconds: float
    repeats: int


@dataclass
class _Running:
    engine: Engine
    problem: Problem
    steps: int
    first_step_s: float
    times: list[float] = field(default_factory=list)
    error: str = ""
    agreement: Agreement | None = None
    about: Row = field(default_factory=dict)
    enlargements: int = 0

    def enlarge(self) -> bool:
        """Double the room for contacts and rows. Returns whether it may still be prepared with it."""
        self.enlargements += 1
        self.problem = self.problem.with_room(2 * self.problem.contacts, 2 * self.problem.rows)
        return self.enlargements < _ENLARGEMENTS


def measure(problem: Problem, ours: MakeEngine, peers: Sequence[MakeEngine], effort: Effort) -> tuple[list[Row], Row]:
    """Measure a problem with simengine and its peers.

    Every repeat of every engine starts from the same states, those in which simengine was after steps by which it was
    tried, as many as in a repeat, and the warm-up that goes on from there. Engines take turns, so that a disturbance of
    the machine meets all of them. Steps are first made once without being timed, while engines with limits are watched:
    where one overflows, its room is doubled and it is prepared anew. One that overflows only later, since chaos takes
    it elsewhere, is prepared with more room and makes its repeats again.

    Accelerations are compared in those same states.

    Returns:
        A row for each engine, simengine first, and what MuJoCo counted on the problem.
    """
    first = _started(ours(), problem, effort)
    if first.error:
        return [_row(first, effort)], {}
    try:
        first.engine.step(effort.warmup)
        warm = problem.from_state(first.engine.state())
        counted = count(warm, effort.steps)
    except Exception as error:
        first.error = _said(error)
        first.engine.close()
        return [_row(first, effort)], {}
    warm = warm.with_room(*counted.room())
    first.engine.set_state(warm.start)
    first.problem, first.steps = warm, _affordable(first.engine, effort)
    running = [first, *(_started(make(), warm, effort) for make in peers)]
    for _ in range(effort.repeats):
        for one in running:
            _attempt(one, lambda one: _repeat(one, warm.start, effort))
    for one in running:
        _attempt(one, _compared)
        one.engine.close()
    rows = [_row(one, effort) for one in running]
    for row in rows[1:]:
        if "steps_per_s" in row and "steps_per_s" in rows[0]:
            row["ratio"] = round(rows[0]["steps_per_s"] / row["steps_per_s"], 3)
    return rows, {
        "contacts": counted.contacts,
        "rows": counted.rows,
        "most_contacts": counted.most_contacts,
        "most_rows": counted.most_rows,
    }


def _started(engine: Engine, problem: Problem, effort: Effort) -> _Running:
    one = _Running(engine, problem, 0, 0.0)
    _prepare(one, effort)
    return one


def _prepare(one: _Running, effort: Effort) -> None:
    """Prepare an engine and make its steps once, with more room until nothing overflows."""
    while True:
        try:
            began = perf_counter()
            one.engine.prepare(one.problem)
            one.engine.step(_TRIED)
            one.first_step_s = perf_counter() - began
            one.engine.set_state(one.problem.start)
            one.steps = _affordable(one.engine, effort)
            _watched(one)
        except OverflowedError as error:
            one.error = _said(error)
            if not one.enlarge():
                return
        except Exception as error:  # an engine may refuse a model or fail in any way, which is its result
            one.error = _said(error)
            return
        else:
            one.error = ""
            return


def _affordable(engine: Engine, effort: Effort) -> int:
    """Return the number of steps of a repeat, a multiple of the steps that were tried unless fewer are asked for."""
    seconds = engine.step(_TRIED) / _TRIED
    within = int(effort.seconds / max(seconds, 1e-9)) // _TRIED * _TRIED
    return min(effort.steps, max(_TRIED, within))


def _watched(one: _Running) -> None:
    """Make the steps of a repeat without timing them, and raise OverflowedError where something was dropped."""
    one.engine.set_state(one.problem.start)
    for done in range(0, one.steps, _TRIED):
        one.engine.step(min(_TRIED, one.steps - done))


def _repeat(one: _Running, start: State, effort: Effort) -> None:
    """Time one repeat more; where the engine overflows, prepare it with more room and time all of its repeats again."""
    repeats = len(one.times) + 1
    while len(one.times) < repeats and not one.error:
        try:
            one.times.append(_timed(one, start))
        except OverflowedError:
            if not one.enlarge():
                raise
            one.times.clear()
            _prepare(one, effort)


def _timed(one: _Running, start: State) -> float:
    one.engine.set_state(start)
    seconds = one.engine.step(one.steps)
    if not one.engine.state().finite:
        raise FloatingPointError("the state went non-finite, so that its time means nothing")
    return seconds


def _compared(one: _Running) -> None:
    one.about = one.engine.about()  # of the timed steps: the comparison below runs other kernels
    one.engine.set_state(one.problem.start)
    one.agreement = compare(one.engine, one.problem)


def _attempt(one: _Running, call: Callable[[_Running], None]) -> None:
    if not one.error:
        try:
            call(one)
        except Exception as error:  # as above
            one.error = _said(error)


def _said(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _row(one: _Running, effort: Effort) -> Row:
    engine, problem = one.engine, one.problem
    row: Row = {"model": problem.name, "worlds": problem.worlds, "engine": engine.name, "runs_on": engine.runs_on}
    if one.error or one.agreement is None:
        return row | {"error": one.error or "it was not measured"}
    seconds, work = statistics.median(one.times), problem.worlds * one.steps
    return row | {
        "dtype": engine.dtype,
        "steps": one.steps,
        "repeats": effort.repeats,
        "steps_per_s": round(work / seconds),
        "us_per_step": round(1e6 * seconds / one.steps, 1),
        "spread": round((max(one.times) - min(one.times)) / seconds, 3),
        "all_steps_per_s": [round(work / taken) for taken in one.times],
        "first_step_s": round(one.first_step_s, 2),
        **one.agreement.as_dict(),
        **one.about,
    }
