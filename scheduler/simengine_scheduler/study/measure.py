"""Measurements of executors on a workload: speed, what explains it, legality, and results against `serial`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
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
    """Measure executors one after another, each through the same steps from the workload's start.

    `serial` runs first, even if it is not among the specs, because it gives the expected results. The figures of an
    executor that fails say why. Once an executor has lost the CUDA context, those after it are not run.

    Args:
        workload: what to run.
        specs: the executors.
        plan: how to measure.
        progress: called with each executor's name before it is measured.
    """
    found: dict[str, Figures] = {}
    expected: list[bytes] = []
    lost = ""
    for spec in (SERIAL, *(s for s in specs if s != SERIAL)):
        progress(str(spec))
        figures = found[str(spec)] = Figures(str(spec), error=lost)
        if lost:
            continue
        try:
            states = _measure_one(workload, spec, plan, figures)
            expected = expected or states
            # a slow executor has fewer repeats
            figures.equal = all(a == b for a, b in zip(states, expected, strict=False))
        except Exception as error:  # the row shows any error, and the other executors go on
            figures.error = f"{type(error).__name__}: {error}"
            lost = "not run: the CUDA context was lost before" if getattr(error, "fatal", False) else ""
    if found[str(SERIAL)].error:
        for figures in found.values():
            figures.equal = None  # there is nothing to compare with
    return [found[str(spec)] for spec in specs]


def _measure_one(workload: Workload, spec: Spec, plan: Plan, figures: Figures) -> list[bytes]:
    """Fill in the figures of one executor. Returns the memory before the timed steps and after each repeat."""
    options = {**workload.options, **spec.options, "segments": workload.segments}
    seconds: list[float] = []
    with make_executor(spec.name, **options) as executor:
        while getattr(executor, "undecided", False):  # the trials of `auto`
            workload.run(executor, 1)
        workload.reset()
        workload.run(executor, plan.warmup)
        executor.synchronize()
        states = [workload.state()]
        while len(seconds) < plan.repeats and sum(seconds) < plan.limit:
            seconds.append(_timed(workload, executor, plan.steps))
            states.append(workload.state())
        figures.reason = getattr(executor, "reason", "")
    median = statistics.median(seconds)
    figures.us_per_step = 1e6 * median / plan.steps
    figures.spread = (max(seconds) - min(seconds)) / median
    figures.units_per_s = workload.units * plan.steps / median
    with make_executor(spec.name, **{**options, "record": "times"}) as executor:
        traces = [_recorded(workload, executor) for _ in range(_SETTLING + plan.traces)]
    _explain(workload, traces[_SETTLING:], figures)
    return states


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
