"""The recorder: fills a trace while an executor runs. Executors have None instead where nothing is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter

from ..core.calls import KernelCall
from ..cuda.driver import Driver, EventPool
from ..tracing.events import Event, Step
from ..tracing.trace import Trace

_NAN = float("nan")


class Recorder:
    """Builds the log of a run, and its times where the trace records them.

    Times come from events of the device if there is a driver, else from the clock of the host. The recorder has no
    lock: executors with threads call it under theirs. Only `ran`, which sets one dictionary entry, needs none.

    Args:
        trace: what to fill.
        driver: makes the events.
        home: the stream on which time 0 is recorded.
        first: the number of the first call of the run. In the trace numbers count from 0.
    """

    def __init__(self, trace: Trace, driver: Driver | None = None, home: int = 0, first: int = 0) -> None:
        self.trace = trace
        self._first = first
        self.times = trace.record == "times"
        self._origin = perf_counter()
        self._host: dict[int, tuple[float, float, float]] = {}  # seq -> issue, start, end
        self._device: dict[int, tuple[float, int, int]] = {}  # seq -> issue, start event, end event
        self._driver = driver
        self._pool = EventPool(driver, timing=True) if driver is not None and self.times else None
        self._zero = 0
        if self._pool is not None and driver is not None:
            self._zero = self._pool.take()
            driver.record(self._zero, home)

    def enter(self, call: KernelCall) -> None:
        """Note that a call enters program order."""
        self.trace.order.append(call)

    def issue(self, seq: int, stream: int) -> None:
        """Note that a call is issued to a stream, or starts on a worker."""
        self.trace.log.append(Step("issue", seq - self._first, stream))

    def wait(self, seq: int, stream: int) -> None:
        """Note that a stream is made to wait for call `seq`."""
        self.trace.log.append(Step("wait", seq - self._first, stream))

    def observe(self, seq: int, stream: int) -> None:
        """Note that the host has seen a call complete."""
        self.trace.log.append(Step("observe", seq - self._first, stream))

    def ran(self, seq: int, start: float, end: float) -> None:
        """Note that a host call ran from `start` to `end` [s, by perf_counter]."""
        self._host[seq - self._first] = (start - self._origin, start - self._origin, end - self._origin)

    def before_launch(self, seq: int, handle: int) -> None:
        """Record an event before a call on its stream."""
        if self._pool is not None and self._driver is not None:
            start = self._pool.take()
            self._driver.record(start, handle)
            self._device[seq - self._first] = (perf_counter() - self._origin, start, 0)

    def after_launch(self, seq: int, handle: int) -> None:
        """Record an event behind a call on its stream."""
        if self._pool is not None and self._driver is not None:
            end = self._pool.take()
            self._driver.record(end, handle)
            issue, start, _ = self._device[seq - self._first]
            self.trace.counters.issue_seconds += perf_counter() - self._origin - issue
            self._device[seq - self._first] = (issue, start, end)

    def graph(
        self,
        order: Iterable[int],
        behind: Sequence[int],
        seqs: Sequence[int],
        waits: Sequence[tuple[int, ...]],
        rows: Sequence[int],
    ) -> None:
        """Note that a graph is launched.

        Args:
            order: its calls, each after those that it waits for.
            behind: calls that the whole graph comes after.
            seqs: the call at each position of the graph.
            waits: for each position the positions that it comes after.
            rows: the row of each position.
        """
        place = {seq: position for position, seq in enumerate(seqs)}
        for seq in order:
            position = place[seq]
            before = [seqs[other] for other in waits[position]] or behind
            self.trace.log += [Step("wait", other - self._first, rows[position]) for other in before]
            self.trace.log.append(Step("issue", seq - self._first, rows[position]))

    def device_list(
        self, first: int, waits: Sequence[tuple[int, ...]], rows: Sequence[int], retired: Sequence[int]
    ) -> None:
        """Note that the window on the GPU has run a list.

        Args:
            first: the number of its first call.
            waits: for each call those that it waited for, by position.
            rows: the row of each call.
            retired: for each call i the first call that the window admitted after it had seen i end.
        """
        start, ended = first - self._first, dict[int, list[int]]()
        for number, by in enumerate(retired):
            ended.setdefault(by, []).append(number)
        for number, (direct, row) in enumerate(zip(waits, rows, strict=True)):
            self.trace.log += [Step("observe", start + other, -1) for other in ended.get(number, ())]
            self.trace.log += [Step("wait", start + other, row) for other in direct]
            self.trace.log.append(Step("issue", start + number, row))
            self.trace.counters.waits_inserted += len(direct)
        self.trace.log += [Step("observe", start + other, -1) for other in ended.get(len(waits), ())]

    def graph_events(self, seqs: Sequence[int]) -> list[tuple[int, int]]:
        """Return events for the start and the end of each call of a graph, where times are recorded."""
        assert self._pool is not None
        issue = perf_counter() - self._origin
        pairs = [(self._pool.take(), self._pool.take()) for _ in seqs]
        self._device |= {seq - self._first: (issue, *pair) for seq, pair in zip(seqs, pairs, strict=True)}
        return pairs

    def finish(self) -> None:
        """Build the events of the trace. Where times are recorded, the executor must have synchronised."""
        order = self.trace.order
        for step in self.trace.log:
            if step.kind == "issue":
                issue, start, end = self._interval(step.seq)
                call = order[step.seq]
                self.trace.events.append(Event(step.seq, call.name, step.stream, issue, start, end, call.tag))

    def close(self) -> None:
        """Destroy the events of the device."""
        if self._pool is not None:
            self._pool.close()

    def _interval(self, seq: int) -> tuple[float, float, float]:
        if seq in self._device and self._driver is not None:
            issue, start, end = self._device[seq]
            elapsed = self._driver.elapsed
            return issue, elapsed(self._zero, start), elapsed(self._zero, end)
        return self._host.get(seq, (_NAN, _NAN, _NAN))


def start_recording(trace: Trace, driver: Driver | None = None, home: int = 0, first: int = 0) -> Recorder | None:
    """Return a recorder for a trace, or None if the trace records nothing."""
    return None if trace.record == "off" else Recorder(trace, driver, home, first)
