"""The simulated executor: runs lists in virtual time on a model of a GPU.

    model "serial", "streams", "graph", "graph-cached", "pipeline": that executor itself, on a driver in virtual time
    model "device": lists that a persistent kernel runs, whose blocks take tickets
    model "acs-sw", "acs-hw": the window of the ACS paper on the host and on the GPU

Invariants
    1. Virtual time only grows, from run to run. A trace's times count from the beginning of its run.
    2. The bodies of host calls run, each at the virtual end of its call. Recorded calls have none. The order is
    therefore
       one that the modelled executor can produce on such a GPU, and results are those of `serial`, bit for bit.
    3. Nothing is random: one list, one machine and the same options give the same times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..core.calls import Emitter, FixedList
from ..core.errors import call_failed, choose_one
from ..executors.base import Executor, Options, finish_run, run_repeatedly
from ..planning.planners import PLANNERS
from ..planning.profiles import Profile
from ..tracing.events import Event, Record
from ..tracing.trace import Trace
from .clock import Clock
from .driver import VirtualDriver
from .presets import gpu_named
from .processors import Kernel
from .virtual import ChargedProfile, Twins
from .windowed import AcsHardware, AcsSoftware

# The executor that runs in virtual time. `device` launches whole lists, as `graph-cached` does.
_AS_THEY_ARE = ("serial", "streams", "graph", "graph-cached", "pipeline")
_DRIVEN = {**{name: name for name in _AS_THEY_ARE}, "device": "graph-cached"}
_PROCESSES: dict[str, Any] = {"acs-sw": AcsSoftware, "acs-hw": AcsHardware}
MODELS = (*_DRIVEN, *_PROCESSES)


class SimulatedExecutor(Executor):
    """Runs lists in virtual time on a model of a GPU.

    Args:
        options: `model`, `gpu`, and the options of the modelled executor.
        make: makes the executors that run on a driver in virtual time, by name.
    """

    name = "simulated"

    def __init__(self, options: Options, make: Callable[[str, Options], Executor]) -> None:
        if options.model not in MODELS:
            raise ValueError(f"executor option model={options.model!r} is unknown; {choose_one(options.model, MODELS)}")
        self._options = options
        self._spec = gpu_named(options.gpu)
        self._clock = Clock()
        self._driver: VirtualDriver | None = None
        options.table(self.name)
        if options.model in _DRIVEN:
            polled = options.completion == "polling"
            self._driver = VirtualDriver(self._spec, self._clock, options.model == "device", polled)
            record: Record = "off" if options.record == "off" else "order"
            profile = ChargedProfile(options.profile or Profile(), self._planning)
            inner = replace(options, driver=self._driver, device="cuda", stream=None, record=record, profile=profile)
            inner = replace(inner, graph_of="run")  # the model of a GPU has no cost of switching nodes on and off
            self._inner = make(_DRIVEN[options.model], inner)
        tracked = options.model in ("streams", "pipeline") and options.stream_policy not in PLANNERS
        tracked = tracked and not self._spec.host.compiled
        # Under polling fixed lists are checked in every run. Other executors store a script of them.
        scripts = 0 if options.completion == "polling" and options.model == "streams" else options.graphs
        tracking = self._tracking if tracked else None
        self._twins = Twins(self._spec, self._driver, self._emitting, self._resuming, tracking, scripts)

    def _emitting(self) -> None:
        """Charge the host for an item that an emitter yields. Models with processes charge the process that asks."""
        if self._driver is not None:
            self._clock.advance(self._spec.host.emit)

    def _resuming(self) -> None:
        """Charge the host for a look at awaited calls, the first time that an emitter goes on behind it."""
        driver = self._driver
        if driver is not None and driver.has_looked:
            driver.has_looked = False
            self._clock.advance(self._spec.host.resume)

    def _tracking(self) -> None:
        """Charge the host for a hazard check. For graphs and planners the cost of a node or a plan includes it."""
        self._clock.advance(self._spec.host.track)

    def _planning(self) -> None:
        self._clock.advance(self._spec.host.plan)

    @property
    def rounds(self) -> int:
        """How many rounds of fixed lists the modelled executor runs best as one list."""
        return 1 if self._options.model in ("device", *_PROCESSES) else getattr(self._inner, "rounds", 1)

    @property
    def now(self) -> float:
        """Virtual time on the host since the executor was made [s]."""
        return self._clock.now

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Run the emitters' calls. Where nothing is recorded, returns once all calls are issued, as CUDA executors do.

        Raises CallError for a call whose body failed, and whatever an emitter raised.
        """
        begin = self._clock.now
        if self._driver is not None:
            self._clock.advance(self._spec.host.run)
        twins = self._twins.emitters(emitters)
        trace, kernels = self._run_driven(twins) if self._driver is not None else self._run_processes(twins)
        trace.executor, trace.record = self.name, self._options.record
        trace.order = [self._twins.real(twin) for twin in trace.order]
        if trace.record != "off":
            rows = {step.seq: step.stream for step in trace.log if step.kind == "issue"}
            timed = self._options.record == "times"
            trace.events = [self._event(trace, seq, row, kernels[seq], begin, timed) for seq, row in rows.items()]
        return trace

    def repeat(self, lists: Sequence[FixedList], times: int) -> Trace:
        """Run fixed lists `times` times, as the modelled executor does. Returns the trace of the last run."""
        if self._driver is None or self._options.record != "off":
            for _ in range(times - 1):
                self.run(lists)
            return self.run(lists)
        with self._explained(self._driver):
            trace = run_repeatedly(self._inner, self._twins.emitters(lists), times)
        trace.executor = self.name
        return trace

    def synchronize(self) -> None:
        """Let virtual time pass until everything issued has completed."""
        if self._driver is not None:
            with self._explained(self._driver):
                self._inner.synchronize()

    def close(self) -> None:
        """Forget the streams and graphs."""
        if self._driver is not None:
            self._inner.close()

    def _run_driven(self, emitters: Any) -> tuple[Trace, dict[int, Kernel]]:
        driver = self._driver
        assert driver is not None
        driver.kernels = None if self._options.record == "off" else []
        with self._explained(driver):
            trace = self._inner.run(emitters)
            if driver.kernels is None:
                return trace, {}
            self._inner.synchronize()
        issued = (step.seq for step in trace.log if step.kind == "issue")
        return trace, dict(zip(issued, driver.kernels, strict=True))

    def _run_processes(self, emitters: Any) -> tuple[Trace, dict[int, Kernel]]:
        trace = Trace(self.name, self._options.record)
        run = _PROCESSES[self._options.model](self._options, self._spec, self._clock, trace, emitters)
        try:
            run.run()
            if run.device.failure is not None:
                call, error = run.device.failure
                raise call_failed(call, self.name, error) from error
        finally:
            run.feeder.close()
            self._clock.clear()
        return finish_run(trace, run.feeder, None), dict(enumerate(run.kernels))

    @contextmanager
    def _explained(self, driver: VirtualDriver) -> Iterator[None]:
        """Empty the device after a failure. If a body was the cause, raise the CallError that says so."""
        try:
            yield
        except BaseException:
            failure = driver.device.failure
            driver.reset()
            if failure is not None:
                raise call_failed(failure[0], self.name, failure[1]) from failure[1]
            raise

    def _event(self, trace: Trace, seq: int, row: int, kernel: Kernel, begin: float, timed: bool) -> Event:
        call = trace.order[seq]
        times = (kernel.issue - begin, kernel.start - begin, kernel.end - begin) if timed else (float("nan"),) * 3
        return Event(seq, call.name, row, *times, call.tag)
