"""What no executor can do better on a workload: the longest chain of its calls, and the launches that it takes.

The calls of a step are run once more, one after another and with nothing between them, to time each. They begin with
the memory that the step began with, since a call whose size follows from counts may do harm where it finds others. On a
device an event stands on each side of a call, which shows some microseconds besides it. So work and chain are too long
rather than too short.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from ..core.calls import KernelCall
from ..core.dependencies import dependencies
from ..cuda.driver import CudaDriver, Driver, EventPool
from ..executors.base import Options
from ..executors.compiled import make_compiled
from ..registry import make_executor
from .workloads.base import Workload

_STEPS = 3  # whose lists are looked at
_LAUNCHES = 3  # times that the launches of a list are timed


@dataclass(frozen=True)
class Bound:
    """Means over some steps of a workload.

    Attributes:
        calls, awaits: of a step.
        work_us: sum of the durations of its calls [us].
        chain_us: the longest chain of calls that must follow each other [us].
        launch_us: time in which compiled code, or else Python, makes the launches on one stream [us]; None on the host,
            where calls are not launched.
    """

    calls: float
    awaits: float
    work_us: float
    chain_us: float
    launch_us: float | None

    @property
    def parallelism(self) -> float:
        """How many calls could run at once on average."""
        return self.work_us / self.chain_us if self.chain_us else 1.0

    @property
    def least_us(self) -> float:
        """What a step takes at least if each call is launched by itself [us]."""
        return max(self.chain_us, self.launch_us or 0.0)

    def as_dict(self) -> dict[str, float | None]:
        """Return the figures by name."""
        return {**vars(self), "parallelism": self.parallelism, "least_us": self.least_us}


def bound_of(workload: Workload) -> Bound:
    """Measure the bound of a workload. Its state is reset before and afterwards."""
    workload.reset()
    options: dict[str, Any] = {**workload.options, "segments": workload.segments}
    found = []
    with make_executor("serial", **options, record="order") as executor:
        for step in range(_STEPS):

            def rewind(step: int = step) -> None:
                workload.rewind(executor, step)
                executor.synchronize()

            rewind()
            trace = workload.run(executor, 1)
            executor.synchronize()
            found.append(_of_step(trace.order, trace.counters.awaits, options, rewind))
    workload.reset()
    launches = [one.launch_us for one in found if one.launch_us is not None]
    calls, awaits, work, chain = (
        statistics.fmean(getattr(one, name) for one in found) for name in ("calls", "awaits", "work_us", "chain_us")
    )
    return Bound(calls, awaits, work, chain, statistics.fmean(launches) if launches else None)


def _of_step(order: Sequence[KernelCall], awaits: int, options: dict[str, Any], rewind: Callable[[], None]) -> Bound:
    launch = None
    if options.get("device") == "cuda":
        driver: Driver = options.get("driver") or CudaDriver()
        seconds = _on_device(order, driver, rewind)
        launch = _launching(order, driver, Options(**options), rewind)
    else:
        rewind()
        seconds = _on_host(order)
    ends: list[float] = []
    for own, before in zip(seconds, dependencies(order, options["segments"].conflicts), strict=True):
        ends.append(own + max((ends[other] for other in before), default=0.0))
    return Bound(len(order), awaits, 1e6 * sum(seconds), 1e6 * max(ends, default=0.0), launch)


def _on_host(order: Sequence[KernelCall]) -> list[float]:
    """Durations of calls on the host [s]."""
    found = []
    for call in order:
        began = perf_counter()
        call.launch.issue(0)
        found.append(perf_counter() - began)
    return found


def _on_device(order: Sequence[KernelCall], driver: Driver, rewind: Callable[[], None]) -> list[float]:
    """Durations of calls on a device [s]. They are nodes of a graph, in a chain, each between two events."""
    if not order:
        return []
    rewind()
    driver.synchronize(driver.current_stream())
    pool, stream = EventPool(driver, timing=True), driver.create_stream()
    events = [(pool.take(), pool.take()) for _ in order]
    waits = [(), *((number,) for number in range(len(order) - 1))]
    graph = driver.build_graph([call.launch for call in order], waits, events)
    try:
        driver.launch_graph(graph, stream)
        driver.synchronize(stream)
        return [driver.elapsed(*pair) for pair in events]
    finally:
        driver.destroy_graph(graph)
        pool.close()
        driver.destroy_stream(stream)


def _launching(order: Sequence[KernelCall], driver: Driver, options: Options, rewind: Callable[[], None]) -> float:
    """The least time of the host for the launches of calls on one stream [us]."""
    stream, compiled = driver.create_stream(), make_compiled(options, driver)
    numbers = None if compiled is None else compiled.numbers(list(order))

    def by_python() -> None:
        for call in order:
            call.launch.issue(stream)

    def by_compiled() -> None:
        assert compiled is not None
        assert numbers is not None
        compiled.issuer.serial(numbers, 0, stream)

    issue: Callable[[], None] = by_python if compiled is None else by_compiled
    if compiled is not None:
        compiled.hand_over()
    seconds = []
    for _ in range(_LAUNCHES):
        rewind()
        driver.synchronize(driver.current_stream())
        began = perf_counter()
        issue()
        seconds.append(perf_counter() - began)
        driver.synchronize(stream)
    driver.destroy_stream(stream)
    return 1e6 * min(seconds)
