"""`fuzz`: draw and mutate models, compare each with MuJoCo in a child process, and shrink what fails."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from simengine.errors import SimengineError
from simengine.fuzz.child import Child
from simengine.fuzz.corpus import Case, read_all, save
from simengine.fuzz.draw import Draw
from simengine.fuzz.enrich import enrich
from simengine.fuzz.generate import generate
from simengine.fuzz.judge import Outcome
from simengine.fuzz.mutate import mutate
from simengine.fuzz.report import Finding, FuzzReport, repeat_command
from simengine.fuzz.shrink import shrink
from simengine.loading import model_names, model_path
from simengine.zoo import random_robot

DTYPES = ("float64", "float32")
_LIMIT, _LIMIT_OF_JAX = 120.0, 600.0  # seconds that a model may take; every model is compiled again for JAX
# Seconds to shrink a finding, or a tenth of the time that is left if that is more; and beyond the end of a run.
_SHRINKING, _OVERTIME = 60.0, 20.0
# Shares of the models; the others are mutations of drawn ones and of the corpus.
_DRAWN, _ENRICHED, _OF_ZOO = 0.2, 0.35, 0.25

Progress = Callable[[FuzzReport], None]
"""Called after each model."""


def fuzz(
    *,
    backend: str = "host",
    dtypes: Sequence[str] = DTYPES,
    seconds: float | None = None,
    models: int | None = None,
    states: int = 6,
    seed: int = 0,
    corpus: Path | None = None,
    limit: float | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> FuzzReport:
    """Compare models drawn at random, and mutations of models, with MuJoCo.

    Each model runs in a child process, so that a crash or a hang is a finding and not the end. With several jobs, as
    many children work side by side, each on processors of its own; they compare the models that one child would.

    Args:
        backend: "cuda", "host", "jax" or "auto".
        dtypes: the precisions that are compared.
        seconds: time after which no further model is drawn; None for no such limit.
        models: number of models after which none is drawn; None for no such limit.
        states: states for each model and precision, before the search for pair types and limits that they miss.
        seed: equal seeds draw equal models, as long as the corpus is the same.
        corpus: folder where failing models are written, and whose models are mutated; None keeps nothing.
        limit: seconds that a model may take; None for 120, or 600 on the JAX backend, which compiles every model. The
            first models of other backends compile kernels.
        jobs: number of child processes.
        progress: called after each model.

    Returns:
        The report; `report.passed` is the outcome.

    Raises:
        ValueError: there is neither a number of models nor a time, or one of them or `jobs` is not above zero.
    """
    if seconds is None and models is None:
        raise ValueError("fuzz would never end; give seconds, models or both")
    if (seconds is not None and seconds <= 0) or (models is not None and models <= 0):
        raise ValueError(f"seconds={seconds} and models={models} leave nothing to do; give numbers above zero")
    if jobs < 1:
        raise ValueError(f"jobs={jobs} leaves nobody to work; give 1 or more")
    kept = [case.text for case in read_all(corpus)] if corpus is not None and corpus.is_dir() else []
    report = FuzzReport(backend, tuple(dtypes), seed)
    run = _Run(report, _drawn(seed, kept), states, corpus, seconds, models, progress)

    def work(processors: Collection[int]) -> None:
        with Child(backend, dtypes, states, limit or _limit(backend), processors) as child:
            while run.take(child):
                pass

    with ThreadPoolExecutor(jobs) as pool:
        workers = [pool.submit(work, processors) for processors in _shared(jobs)]
        try:
            for worker in as_completed(workers):
                worker.result()
        finally:
            run.end()
    return report


def replay(
    cases: Sequence[Case],
    *,
    backend: str = "host",
    dtypes: Sequence[str] = DTYPES,
    states: int = 6,
    limit: float | None = None,
    progress: Progress | None = None,
) -> FuzzReport:
    """Compare the models of a corpus with MuJoCo again, each with its seed; arguments as for `fuzz`."""
    report = FuzzReport(backend, tuple(dtypes), 0)
    start = time.monotonic()
    with Child(backend, dtypes, states, limit or _limit(backend)) as child:
        for case in cases:
            outcome = child.judge(case.text, case.seed)
            report.add("corpus", outcome)
            if outcome.is_finding:
                repeat = repeat_command(case.path, backend, report.dtypes, states)
                report.findings.append(Finding(outcome.kind, outcome.reasons, str(case.path), repeat))
            report.seconds = time.monotonic() - start
            if progress:
                progress(report)
    return report


class _Run:
    """The models so far, and what they showed. Several threads may use it, each with a child of its own."""

    def __init__(
        self,
        report: FuzzReport,
        drawn: Iterator[tuple[str, str]],
        states: int,
        corpus: Path | None,
        seconds: float | None,
        models: int | None,
        progress: Progress | None,
    ):
        self._report, self._drawn, self._states, self._corpus = report, enumerate(drawn), states, corpus
        self._seconds, self._models, self._progress = seconds, models, progress
        self._start = time.monotonic()
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def end(self) -> None:
        """Draw no further model."""
        self._models = 0

    def take(self, child: Child) -> bool:
        """Judge the next model, and shrink it if it fails in a way that is new; False if there is none."""
        with self._lock:
            number, (source, text) = next(self._drawn)
            if (self._models is not None and number >= self._models) or self._left() <= 0:
                return False
        seed = number % 4
        outcome = child.judge(text, seed)
        with self._lock:
            is_new = outcome.is_finding and _signature(outcome) not in self._known
            if is_new:
                self._known.add(_signature(outcome))
            elif outcome.is_finding:
                self._report.repeated += 1
                self._report.alike.append(f"model {number}: {outcome.reasons[0]}")
            self._report.add(source, outcome)
        if is_new:
            self._found(child, text, seed, f"simengine fuzz, seed {self._report.seed}, model {number}", outcome)
        with self._lock:
            self._report.seconds = time.monotonic() - self._start
            if self._progress:
                self._progress(self._report)
        return True

    def _left(self) -> float:
        return float("inf") if self._seconds is None else self._seconds - (time.monotonic() - self._start)

    def _found(self, child: Child, text: str, seed: int, how: str, outcome: Outcome) -> None:
        latest = outcome
        left = self._left()
        time_to_shrink = (
            _SHRINKING if self._seconds is None else min(max(_SHRINKING, left / 10), max(left, 0) + _OVERTIME)
        )
        end = time.monotonic() + time_to_shrink

        def fails(candidate: str) -> bool:
            nonlocal latest
            found = child.judge(candidate, seed, max(end - time.monotonic(), 0.0))
            same = _is_same(outcome, found)
            latest = found if same else latest
            return same

        # kept as it is first: who stops the command while it shrinks has it, too
        kept = self._keep(text, seed, how, outcome, None)
        # a hang takes its whole limit again with every attempt
        small = text if outcome.kind == "hangs" else shrink(text, fails, time_to_shrink)
        self._keep(small, seed, how, latest, kept)

    def _keep(self, text: str, seed: int, how: str, outcome: Outcome, before: Finding | None) -> Finding:
        """Report a finding and write its file, in place of a larger one."""
        path = save(self._corpus, text, seed, how, outcome) if self._corpus is not None else Path("FILE.xml")
        repeat = repeat_command(path, self._report.backend, self._report.dtypes, self._states)
        found = Finding(outcome.kind, outcome.reasons, str(path), repeat)
        with self._lock:
            self._known.add(_signature(outcome))
            if before is not None:
                self._report.findings.remove(before)
                if before.file != found.file and self._corpus is not None:
                    Path(before.file).unlink()
            self._report.findings.append(found)
        return found


def _shared(jobs: int) -> list[list[int]]:
    """The processors of each job: a part of those that this process may use. Without parts, simulations of every job
    would have a thread on each processor."""
    if jobs == 1 or not hasattr(os, "sched_getaffinity"):
        return [[] for _ in range(jobs)]
    usable = sorted(os.sched_getaffinity(0))
    return [usable[k % len(usable) :: jobs] for k in range(jobs)]


def _limit(backend: str) -> float:
    return _LIMIT_OF_JAX if backend == "jax" else _LIMIT


def _signature(outcome: Outcome) -> str:
    """What findings have in common that are one: the first field that differs, or the place of the exception."""
    if outcome.fields:
        return next(iter(outcome.fields))
    return f"{outcome.kind}: {outcome.reasons[0].partition(':')[0]}"


def _is_same(first: Outcome, other: Outcome) -> bool:
    """Whether a smaller model fails as the first did."""
    if first.kind != other.kind:
        return False
    return bool(set(first.fields) & set(other.fields)) if first.fields else _signature(first) == _signature(other)


def _drawn(seed: int, kept: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(source, MJCF) of one model after another, without end."""
    files = _files()
    for number in itertools.count():
        key = f"{seed}:{number}"
        draw = Draw(f"{key}:how")
        where = draw.rng.random()
        if where < _DRAWN:
            yield "drawn", generate(key)
        elif where < _DRAWN + _ENRICHED:
            yield "enriched", enrich(generate(key), draw)
        elif where < _DRAWN + _ENRICHED + _OF_ZOO:
            robot = draw.chance(0.3)
            yield "mutated zoo", mutate(random_robot(draw.rng.randrange(1000)) if robot else draw.choice(files), draw)
        elif kept and draw.chance(0.3):
            yield "mutated corpus", mutate(draw.choice(kept), draw)
        else:
            yield "mutated drawn", mutate(generate(key), draw)


def _files() -> list[str]:
    """MJCF of the models that come with the installation and need no other file."""
    texts = [model_path(name).read_text(encoding="utf-8") for name in model_names()]
    found = [text for text in texts if "file=" not in text]
    if not found:
        raise SimengineError("the installation has no models to mutate; install simengine again")
    return found
