"""One CUDA stream, on which compiled code issues calls in program order. The rules are those of `serial.py`."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable
from typing import Any

from ..core.calls import Emitter, KernelCall
from ..core.emission import Feeder
from ..cuda.driver import Driver, EventPool
from ..tracing.trace import Trace
from .base import finish_run
from .compiled import issue_all, taking_turns, together
from .compiled_lists import CompiledLists, are_fixed, are_lists, latest_of, numbers_of, run_lists
from .cuda import CudaRun
from .feeding import make_feeder
from .flowing import Flow
from .recorder import start_recording


def run_compiled(
    emitters: Iterable[Emitter],
    home: int,
    trace: Trace,
    driver: Driver,
    pool: EventPool,
    lists: CompiledLists,
    flow: Flow | None,
) -> Trace:
    """Run emitters, fixed lists or counted lists on the home stream."""
    lists.make_room()
    pool.give_all()
    with _Run(trace, home, driver, pool, lists) as run:
        if trace.record == "off" and are_lists(emitters):
            run.issue_counted(emitters)
            return trace
        if trace.record == "off" and are_fixed(emitters):
            run.issue_lists(emitters)
            return trace
        if trace.record == "off" and flow is not None:
            run.flow_through(flow, emitters)
            return trace
        feeder = run.feeder = make_feeder(emitters, run.mark_await)
        while True:
            feeder.take(together(feeder))
            if feeder.taken:
                run.issue_taken()
            elif feeder.exhausted:
                break
            run.resume(feeder)
        return finish_run(trace, feeder, run.recorder)


class _Run(CudaRun):
    """One run."""

    def __init__(self, trace: Trace, home: int, driver: Driver, pool: EventPool, lists: CompiledLists) -> None:
        super().__init__(trace.executor, driver, (home,))
        self._awaited: deque[tuple[int, int]] = deque()  # (seq, event), in stream order
        self._trace, self._home, self._pool, self._calls = trace, home, pool, lists.calls
        self._lists = lists
        self._issued = 0

    def start(self) -> None:
        """Begin the trace."""
        self.recorder = start_recording(self._trace, self.driver, self._home)

    def flow_through(self, flow: Flow, emitters: Iterable[Emitter]) -> None:
        """Issue the calls of emitters, without Python between one batch and the next."""
        flow.begin(emitters, home=self._home, take_event=self._pool.take)
        self.flow = flow
        flow.run(self, self._lists.make_room)
        counters = self._trace.counters
        counters.calls, counters.awaits = flow.calls_taken, flow.awaits

    def issue_taken(self) -> None:
        """Issue the calls that the feeder has taken."""
        assert self.feeder is not None
        calls, _ = self.feeder.hand_over()
        self._lists.make_room()
        recorder = self.recorder
        if recorder is not None:
            for seq, call in enumerate(calls, self._issued):
                recorder.enter(call)
                recorder.issue(seq, 0)
        self._issue(self._calls.numbers(calls), calls)
        self._issued += len(calls)

    def issue_lists(self, lists: Any) -> None:
        """Issue fixed lists."""
        numbers = [self._calls.numbers_of(fixed) for fixed in lists]
        calls = taking_turns(lists)
        self._issue(array("i", taking_turns(numbers)), calls)
        self._trace.counters.calls = len(calls)

    def issue_counted(self, lists: Any) -> None:
        """Issue counted lists, with fixed ones among them."""
        known = self._lists.known(lists)
        events = array("q", [self._pool.take() for _ in known])
        self._lists.programs.begin(numbers_of(known), self._home, events)
        counters = self._trace.counters
        counters.calls, counters.awaits = run_lists(self, self._lists, known, lambda: self._home, None)
        self.latest = latest_of(known) or self.latest

    def _issue(self, numbers: array[int], calls: list[KernelCall]) -> None:
        issuer, home = self._calls.issuer, self._home
        self._calls.hand_over()
        issue_all(self, lambda done: issuer.serial(numbers, done, home), self._calls, lambda: home)
        if calls:
            self.latest = calls[-1]

    def mark_await(self, seq: int) -> bool:
        """Record an event behind an awaited call, which is the latest of its emitter."""
        if seq >= self._issued:
            self.issue_taken()
        event = self._pool.take()
        self.driver.record(event, self._home)
        self._awaited.append((seq, event))
        return False

    def resume(self, feeder: Feeder) -> None:
        """Let the emitters go on whose awaited calls have completed."""
        while self._awaited and self.driver.query(self._awaited[0][1]):
            seq, event = self._awaited.popleft()
            self._pool.give(event)
            if self.recorder is not None:
                self.recorder.observe(seq, 0)
            feeder.release(seq)
