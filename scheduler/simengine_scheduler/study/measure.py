"""Measurements of executors on a workload: speed, what explains it, legality, and results against `serial`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

from ..core.dependencies import dependencies
from ..core.segments import Segments
from ..executors.base import Executor
from ..registry import make_executor
from ..tracing.holds import holds
from ..tracing.trace import Trace
from ..tracing.validation import validate
from .specs import Spec
from .workloads.base import Workload

SERIAL = Spec("serial")
_TICK = (
    5e-6  # slack of time stamps: CUDA events tick every half microsecond, the clock of workers every microsecond [s]
)
_SETTLING = 3  # steps after which an executor knows the calls of a list


@dataclass(frozen=True)
class Plan:
    """How to measure.

    Attributes:
        warmup: steps before anything is timed.
        steps: steps of each repeat.
        repeats: how many times the steps are repeated at most.
        traces: steps that are recorded.
        limit: no repeat begins after so much time of repeats [s].
    """

    warmup: int = 20
    steps: int = 50
    repeats: int = 3
    traces: int = 3
    limit: float = 1.0

    def __post_init__(self) -> None:
        for name in ("warmup", "steps", "repeats", "traces"):
            if getattr(self, name) < 1:
                raise ValueError(f"a plan with {name}={getattr(self, name)} measures nothing; give at least 1")


@dataclass
class Figures:
    """What was measured of an executor on a workload. A figure is None if it does not apply or the executor failed.

    Attributes:
        executor: its spec.
        error: why it failed, or empty.
        us_per_step: median over the repeats [us].
        spread: range of the repeats, relative to the median.
        units_per_s: what a step advances, such as worlds or images, per second.
        kernels_per_step, awaits_per_step: mean over the recorded steps.
        kernel_us: median duration of a kernel [us].
        check_us, issue_us: time of the host for the hazard check and for the launch of a call [us].
        dispatch_us: median time from the end of a call to the start of the call that waited for it by a hazard [us].
        waits_asked, waits_inserted, waits_removed: waits that hazards ask for, that were made, and that others implied;
            mean over the recorded steps.
        concurrency: mean number of kernels that run at once.
        idle_share: share of the time in which no kernel ran.
        parallelism: see `parallelism`.
        legal: whether `validate` finds no violation in any recorded step.
        violation: the first violation, or empty.
        equal: whether memory equals that of `serial` bit for bit, before the timed steps and after each repeat.
        reason: why `auto` chose its executor.
        counters: what the executor counts; mean over the recorded steps.
    """

    executor: str
    error: str = ""
    us_per_step: float | None = None
    spread: float | None = None
    units_per_s: float | None = None
    kernels_per_step: float | None = None
    awaits_per_step: float | None = None
    kernel_us: float | None = None
    check_us: float | None = None
    issue_us: float | None = None
    dispatch_us: float | None = None
    waits_asked: float | None = None
    waits_inserted: float | None = None
    waits_removed: float | None = None
    concurrency: float | None = None
    idle_share: float | None = None
    parallelism: float | None = None
    legal: bool | None = None
    violation: str = ""
    equal: bool | None = None
    reason: str = ""
    counters: dict[str, float] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether it ran, was legal and gave the results of `serial`."""
        return not self.error and self.legal is True and self.equal is True

    def as_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)


def measure(
    workload: Workload, specs: Sequence[Spec], plan: Plan, progress: Callable[[str], None] = lambda executor: None
) -> list[Figures]:
    """Measure executors through the same steps from the workload's start.

    After the first repeat of each they take turns: each runs the second repeat, then each the third, because the speed
    of a machine drifts. Before a turn `serial` brings the memory to where the repeat begins. Where a workload takes no
    turns, each executor has all of its repeats at first.

    `serial` runs first, even if it is not among the specs, because it gives the expected results. The figures of an
    executor that fails say why. Once an executor has lost the CUDA context, nothing more is run.

    Args:
        workload: what to run.
        specs: the executors.
        plan: how to measure.
        progress: called with each executor's name before it is measured.
    """
    takes = [_Take(workload, spec, plan) for spec in (SERIAL, *(s for s in specs if s != SERIAL))]
    serial, lost = takes[0], False
    for take in takes:
        progress(str(take.spec))
        if lost:
            take.figures.error = "not run: the CUDA context was lost before"
        else:
            lost = take.attempt(take.begin)
    for number in range(1, plan.repeats if workload.in_turns else 1):
        for take in takes:
            if not lost and take.goes_on:
                catches_up = take.executor if serial.figures.error else serial.executor
                assert catches_up is not None
                lost = take.attempt(partial(take.turn, catches_up, number))
    for take in takes:
        take.end(serial.states)
    found = {str(take.spec): take.figures for take in takes}
    if serial.figures.error:
        for figures in found.values():
            figures.equal = None  # there is nothing to compare with
    return [found[str(spec)] for spec in specs]


class _Take:
    """One executor on the workload.

    Attributes:
        spec: the executor.
        figures: its figures.
        executor: once it has been made.
        states: the memory before the timed steps and after each repeat.
    """

    def __init__(self, workload: Workload, spec: Spec, plan: Plan) -> None:
        self.spec = spec
        self.figures = Figures(str(spec))
        self.executor: Executor | None = None
        self.states: list[bytes] = []
        self._workload, self._plan = workload, plan
        self._options = {**workload.options, **spec.options, "segments": workload.segments}
        self._seconds: list[float] = []

    @property
    def goes_on(self) -> bool:
        """Whether it has more repeats. A slow executor has fewer."""
        return not self.figures.error and sum(self._seconds) < self._plan.limit

    def attempt(self, do: Callable[[], None]) -> bool:
        """Do something, and note the error if it fails. Returns whether the CUDA context is lost."""
        try:
            do()
        except Exception as error:  # the row shows any error, and the other executors go on
            self.figures.error = f"{type(error).__name__}: {error}"
            return bool(getattr(error, "fatal", False))
        return False

    def begin(self) -> None:
        """Make the executor, run the first steps and the first repeat, and record some steps."""
        workload = self._workload
        executor = self.executor = make_executor(self.spec.name, **self._options)
        while getattr(executor, "undecided", False):  # the trials of `auto`, with the runs that are timed
            workload.run(executor, self._plan.steps)
        workload.reset()
        workload.run(executor, self._plan.warmup)
        executor.synchronize()
        self.states.append(workload.state())
        self._repeat(executor)
        while not self._workload.in_turns and len(self._seconds) < self._plan.repeats and self.goes_on:
            self._repeat(executor)
        with make_executor(self.spec.name, **{**self._options, "record": "times"}) as recording:
            traces = [_recorded(workload, recording) for _ in range(_SETTLING + self._plan.traces)]
        _explain(workload, traces[_SETTLING:], self.figures)

    def turn(self, catches_up: Executor, number: int) -> None:
        """Run a repeat, once another executor has brought the memory to where it begins."""
        assert self.executor is not None
        self._workload.rewind(catches_up, self._plan.warmup + number * self._plan.steps)
        catches_up.synchronize()
        self._repeat(self.executor)

    def _repeat(self, executor: Executor) -> None:
        self._seconds.append(_timed(self._workload, executor, self._plan.steps))
        self.states.append(self._workload.state())

    def end(self, expected: Sequence[bytes]) -> None:
        """Fill in the figures, and close the executor."""
        figures = self.figures
        if self._seconds:
            median = statistics.median(self._seconds)
            figures.us_per_step = 1e6 * median / self._plan.steps
            figures.spread = (max(self._seconds) - min(self._seconds)) / median
            figures.units_per_s = self._workload.units * self._plan.steps / median
        if not figures.error:
            figures.equal = all(a == b for a, b in zip(self.states, expected, strict=False))
        figures.reason = getattr(self.executor, "reason", "")
        if self.executor is not None:
            with suppress(Exception):  # after a CUDA fault, which the row reports, closing fails
                self.executor.close()


def _timed(workload: Workload, executor: Executor, steps: int) -> float:
    began = perf_counter()
    workload.run(executor, steps)
    executor.synchronize()
    return perf_counter() - began


def _recorded(workload: Workload, executor: Executor) -> Trace:
    trace = workload.run(executor, 1)
    executor.synchronize()
    return trace


def _explain(workload: Workload, traces: Sequence[Trace], figures: Figures) -> None:
    """Fill in what recorded steps show."""

    def mean(name: str) -> float | None:
        values = [getattr(trace.counters, name) for trace in traces if hasattr(trace.counters, name)]
        return statistics.fmean(values) if values else None

    figures.counters = {name: mean(name) or 0.0 for name in vars(traces[0].counters)}
    calls = mean("calls")
    durations = [event.end - event.start for trace in traces for event in trace.events]
    timed = [duration for duration in durations if duration == duration]  # NaN differs from itself
    figures.kernels_per_step, figures.awaits_per_step = calls, mean("awaits")
    figures.kernel_us = 1e6 * statistics.median(timed) if timed else None
    for name in ("waits_asked", "waits_inserted", "waits_removed"):
        setattr(figures, name, mean(name))
    for name, counter in (("check_us", "check_seconds"), ("issue_us", "issue_seconds")):
        seconds = mean(counter)
        setattr(figures, name, 1e6 * seconds / calls if seconds and calls else None)
    if timed:
        figures.concurrency = statistics.median(trace.concurrency() for trace in traces)
        figures.idle_share = statistics.median(trace.idle_share() for trace in traces)
        figures.parallelism = statistics.median(parallelism(trace, workload.segments) for trace in traces)
        found = [hold for trace in traces for hold in holds(trace.order, trace.events, workload.segments)[0]]
        dispatched = [hold.idle for hold in found if hold.kind == "hazard"]
        figures.dispatch_us = 1e6 * statistics.median(dispatched) if dispatched else None
    slack = _TICK if workload.options.get("device") == "cuda" else 0.0
    violations = [v for trace in traces for v in validate(trace.order, trace, workload.segments, slack)]
    figures.legal = bool(traces) and not violations
    figures.violation = violations[0] if violations else ""


def parallelism(trace: Trace, segments: Segments) -> float:
    """Return the mean number of kernels that could run at once: the sum of durations over that of the longest chain.

    It is the largest speedup over kernels that run one after another, as long as the durations of kernels stay the
    same.
    """
    duration = {event.seq: event.end - event.start for event in trace.events}
    ends: list[float] = []
    for seq, before in enumerate(dependencies(trace.order, segments.conflicts)):
        ends.append(max((ends[other] for other in before), default=0.0) + duration[seq])
    longest = max(ends, default=0.0)
    return sum(duration.values()) / longest if longest > 0 else 1.0
