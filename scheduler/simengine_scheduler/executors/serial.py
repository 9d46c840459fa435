"""The serial executor: every call in program order, on one stream. It is the reference for all others.

    emitters --round-robin--> program order --> home stream (CUDA) or the calling thread (host)

Invariants
    1. Calls start in program order, and each starts after the one before it has ended.
    2. An await blocks its own emitter only. On CUDA the host polls an event behind the awaited call while other
    emitters
       go on. On the host the awaited call has already ended.
    3. The device is synchronised only for `check_each`, for recorded times, and after a failure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ..core.calls import Emitter
from ..core.emission import Feeder
from ..core.errors import call_failed
from ..cuda.driver import Driver, EventPool
from ..tracing.trace import Trace
from .base import Executor, Options, finish_run, run_on_host
from .compiled import make_compiled
from .compiled_lists import CompiledLists
from .cuda import CudaRun, driver_for, issue_call, wait_for
from .flowing import make_flow
from .recorder import Recorder, start_recording
from .serial_compiled import run_compiled


class SerialExecutor(Executor):
    """Runs calls in program order on one stream. Option `device` chooses between the host and CUDA."""

    name = "serial"

    def __init__(self, options: Options) -> None:
        self._options = options
        self._driver: Driver | None = None
        if options.device == "cuda":
            self._driver = driver_for(options)
            self._pool = EventPool(self._driver)
            self._home = 0
            compiled = make_compiled(options, self._driver)
            self._lists = None if compiled is None else CompiledLists(compiled)
            self._flow = None if compiled is None else make_flow(compiled)

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Run the emitters' calls in program order."""
        trace = Trace(self.name, self._options.record)
        if self._driver is None:
            return self._run_host(emitters, trace)
        if self._lists is not None:
            home = self._home = self._driver.current_stream() if self._options.stream is None else self._options.stream
            return run_compiled(emitters, home, trace, self._driver, self._pool, self._lists, self._flow)
        return self._run_cuda(emitters, trace, self._driver)

    def _run_host(self, emitters: Iterable[Emitter], trace: Trace) -> Trace:
        feeder = Feeder(emitters, lambda seq: True)
        recorder = start_recording(trace)
        try:
            while (call := feeder.pull()) is not None or feeder.idle:
                if call is None:
                    continue
                if recorder is not None:
                    recorder.enter(call)
                    recorder.issue(feeder.latest, 0)
                try:
                    run_on_host(call, feeder.latest, recorder)
                except Exception as error:
                    raise call_failed(call, self.name, error) from error
                if recorder is not None:
                    recorder.observe(feeder.latest, 0)
        finally:
            feeder.close()
        return finish_run(trace, feeder, recorder)

    def _run_cuda(self, emitters: Iterable[Emitter], trace: Trace, driver: Driver) -> Trace:
        home = self._home = driver.current_stream() if self._options.stream is None else self._options.stream
        awaited: deque[tuple[int, int]] = deque()  # (seq, event), in stream order

        def mark_await(seq: int) -> bool:
            event = self._pool.take()
            driver.record(event, home)
            awaited.append((seq, event))
            return False

        self._pool.give_all()
        with CudaRun(self.name, driver, (home,)) as run:
            feeder = run.feeder = Feeder(emitters, mark_await)
            recorder = run.recorder = start_recording(trace, driver, home)
            while True:
                call = feeder.pull()
                if call is not None:
                    run.latest = call
                    if recorder is not None:
                        recorder.enter(call)
                    issue_call(run, call, feeder.latest, home, 0)
                    if self._options.check_each:
                        driver.synchronize(home)
                elif feeder.exhausted:
                    break
                while awaited and driver.query(awaited[0][1]):
                    self._resume(feeder, recorder, *awaited.popleft())
            if recorder is not None and recorder.times:
                driver.synchronize(home)
            return finish_run(trace, feeder, recorder)

    def _resume(self, feeder: Feeder, recorder: Recorder | None, seq: int, event: int) -> None:
        self._pool.give(event)
        if recorder is not None:
            recorder.observe(seq, 0)
        feeder.release(seq)

    def synchronize(self) -> None:
        """Block the host until the home stream of the last run is empty."""
        if self._driver is not None:
            wait_for(self._home, self.name, self._driver)

    def close(self) -> None:
        """Destroy the events."""
        if self._driver is not None:
            self._pool.close()
