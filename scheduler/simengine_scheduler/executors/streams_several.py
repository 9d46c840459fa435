"""Streams on several GPUs for one list of calls.

    emitters --pull--> FIFO of N calls in flight --GPU of the launch, stream policy--> GPU 0: stream 0 .. S-1
                                                                                      GPU 1: stream S .. 2S-1
Invariants
    1. A call is issued to a stream of the GPU that its launch names, or of the first one. That GPU is current then.
    2. Events are made and recorded on the GPU of their stream. A stream waits for events of any GPU.
    3. Streams of all GPUs come after what the home stream held, and the home stream waits for all that were used. The
       home stream is one of the first GPU.
    4. Otherwise the rules are those of `streams.py`. Python issues the calls.

Segments are names, or ranges of the one address space in which all GPUs of a process lie. So a copy from one GPU to
another is a call like others, and hazards order it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

from ..core.calls import Emitter, KernelCall
from ..core.emission import Feeder
from ..core.hazards import HazardTracker
from ..core.policies import STREAM_POLICIES, StreamState
from ..cuda.driver import Driver, EventPool
from ..planning.clocks import StreamClocks
from ..tracing.trace import Trace
from .base import Executor, Options, finish_run
from .cuda import CudaRun, Lanes, driver_for, issue_call, release, wait_for
from .recorder import start_recording


class _Gpu:
    """The streams and events of one GPU, of which the first stream has number `first` in traces."""

    def __init__(self, number: int, first: int, driver: Driver, streams: int) -> None:
        self.number, self.first = number, first
        before = driver.use_gpu(number)
        self.lanes, self.pool = Lanes(driver, streams), EventPool(driver)
        driver.use_gpu(before)
        self.state = StreamState.of(streams)


class _Run(CudaRun):
    """The state of one run."""

    def __init__(self, executor: SeveralExecutor, trace: Trace, home: int) -> None:
        handles = [handle for gpu in executor.gpus.values() for handle in gpu.lanes.handles]
        super().__init__(executor.name, executor.driver, handles)
        self.gpus, self.first = executor.gpus, next(iter(executor.gpus.values()))
        self.tracker, self.window = executor.tracker, executor.options.window
        self.tracker.clear()
        self.choose = STREAM_POLICIES[executor.options.stream_policy]
        self.clocks = StreamClocks(len(handles))
        self.flights = self.clocks.places
        self.of_call: dict[int, _Gpu] = {}
        self.trace, self.home, self.number = trace, home, executor.following
        for gpu in self.gpus.values():
            gpu.pool.give_all()
            gpu.state = StreamState.of(executor.options.streams)

    def start(self) -> None:
        """Let the run come after what the home stream holds."""
        self.recorder = start_recording(self.trace, self.driver, self.home, self.number)
        fork = self.first.lanes.begin(self.home)
        for gpu in self.gpus.values():
            if gpu is not self.first:
                gpu.lanes.begin_behind(fork)

    def is_complete(self, seq: int) -> bool:
        """Whether call `seq` is known to be complete, or is found to be so by a query."""
        flight = self.flights.get(seq)
        if flight is None:
            return True
        if not self.driver.query(flight.event):
            return False
        del self.flights[seq]
        gpu = self.of_call.pop(seq)
        self.tracker.remove(seq)
        gpu.pool.give(flight.event)
        gpu.state.load[flight.stream - gpu.first] -= 1
        del gpu.state.stream_of[seq]
        if self.recorder is not None:
            self.recorder.observe(seq, flight.stream)
        return True

    def gpu_of(self, call: KernelCall) -> _Gpu:
        """Return the GPU of a call. Raises ValueError if the executor has no streams there."""
        number = getattr(call.launch, "gpu", None)
        gpu = self.first if number is None else self.gpus.get(number)
        if gpu is None:
            raise ValueError(
                f"call {call.name!r} is for GPU {number}, but the executor has streams on {sorted(self.gpus)}; "
                f"name all GPUs in option gpus"
            )
        return gpu

    def issue(self, seq: int, call: KernelCall) -> None:
        """Issue a call, once the window has room, behind what it depends on, and record an event behind it."""
        gpu = self.gpu_of(call)
        while len(self.flights) >= self.window:
            self.is_complete(next(iter(self.flights)))
        upstream = self.tracker.add(seq, call)
        lane = self.choose({other for other in upstream if self.of_call[other] is gpu}, gpu.state)
        stream = gpu.first + lane
        self.driver.use_gpu(gpu.number)
        handle = gpu.lanes.use(lane)
        for other in self.clocks.waits(upstream, stream):
            self.driver.wait(handle, self.flights[other].event)
            if self.recorder is not None:
                self.recorder.wait(other, stream)
        issue_call(self, call, seq, handle, stream)
        event = gpu.pool.take()
        self.driver.record(event, handle)
        self.clocks.put(seq, stream, event)
        gpu.state.put(seq, lane)
        self.of_call[seq] = gpu

    def join(self) -> None:
        """Let the home stream wait for the streams of all GPUs."""
        for gpu in self.gpus.values():
            gpu.lanes.join(self.home)
        self.trace.counters.add_waits(self.clocks.asked, self.clocks.needed)


class SeveralExecutor(Executor):
    """Issues calls to CUDA streams of several GPUs, which wait for each other on the GPUs."""

    name = "streams"

    def __init__(self, options: Options) -> None:
        if options.record == "times":
            raise ValueError(
                "record='times' needs one GPU, since events of several have no common clock; record 'order'"
            )
        self.options = options
        self.tracker = HazardTracker(options.table(self.name).conflicts)
        self.following = 0
        self.driver: Driver = driver_for(options)
        self.gpus = {
            number: _Gpu(number, i * options.streams, self.driver, options.streams)
            for i, number in enumerate(dict.fromkeys(options.gpus))
        }
        self._home = 0
        self._finalizers = [weakref.finalize(self, release, gpu.pool, gpu.lanes) for gpu in self.gpus.values()]

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Issue the emitters' calls. On return the home stream waits for all of them."""
        driver, trace = self.driver, Trace(self.name, self.options.record)
        before = driver.use_gpu(next(iter(self.gpus)))
        try:
            home = self._home = driver.current_stream() if self.options.stream is None else self.options.stream
            with _Run(self, trace, home) as run:
                feeder = run.feeder = Feeder(emitters, run.is_complete, self.following)
                while True:
                    call = feeder.pull()
                    if call is not None:
                        self.following = feeder.latest + 1
                        if run.recorder is not None:
                            run.recorder.enter(call)
                        run.latest = call
                        run.issue(feeder.latest, call)
                    elif feeder.exhausted:
                        break
                    for seq in list(feeder.waiting):
                        if run.is_complete(seq):
                            feeder.release(seq)
                run.join()
                return finish_run(trace, feeder, run.recorder)
        finally:
            driver.use_gpu(before)

    def synchronize(self) -> None:
        """Block the host until the home stream of the last run is empty, and with it every call of the run."""
        wait_for(self._home, self.name, self.driver)

    def close(self) -> None:
        """Destroy the streams and events."""
        for finalizer in self._finalizers:
            finalizer()
