"""ACS as in its paper (arXiv 2401.12377), in virtual time: the window on the host, and the window on the GPU.

    ACS-SW   emitters --check--> window --ready--> scheduler thread k: launch, wait for its stream, update the window
    ACS-HW   emitters --check, send--> interconnect --> window of the GPU --ready--> multiprocessors
                 ^ at most `listed` calls not known to have ended <-- interconnect -- ends

Invariants
    1. A call starts once all earlier calls that conflict with it have left the window, which has seen them end.
    2. ACS-SW: a scheduler thread has one kernel in flight on a stream of its own, and waits for its end. One more
    thread
       takes calls into the window, each after its hazard check against the calls there.
    3. ACS-HW: the host checks a call against a list of at most `listed` calls, and sends it to the GPU. Some of these
       calls may have ended, which the GPU knows. The GPU takes a call into a slot when one is free. Starts and ends do
       not involve the host. Emitters that await a call learn of its end when the host does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ..core.calls import Emitter, FixedList
from ..core.emission import Feeder
from ..core.policies import ORDER_POLICIES
from ..core.window import Window
from ..executors.base import Options
from ..tracing.events import Step
from ..tracing.trace import Trace
from .clock import Clock, Process, Signal
from .device import Device
from .processors import Kernel
from .rows import Rows
from .spec import GpuSpec


class _Acs:
    """What both forms share: window, feeder, log, and kernels by sequence number of the run."""

    def __init__(self, options: Options, spec: GpuSpec, clock: Clock, trace: Trace, emitters: Iterable[Emitter]):
        self.spec, self.clock, self.trace = spec, clock, trace
        self.device = Device(spec, clock)
        self.window = Window(options.table("simulated"), options.window)
        self.choose = ORDER_POLICIES[options.policy]
        self.known: set[int] = set()  # calls that the host knows to have ended
        self.feeder = Feeder(emitters, self.known.__contains__)
        self._made = [
            type(emitter) is FixedList for emitter in emitters
        ]  # by emitter, whether its calls were made before the run
        self.kernels: list[Kernel] = []
        self.news = Signal(clock)  # a call has ended, or the window can take one

    def taking(self) -> float:
        """Return the time to emit and take in the latest call, without its hazard check [s]."""
        host = self.spec.host
        return host.keep + (0.0 if self._made[self.feeder.emitter] else host.emit)

    def begin(self, seq: int, row: int) -> Kernel:
        """Start a call on a row of the trace. Returns its kernel."""
        self.window.start(seq)
        kernel = self.kernels[seq]
        kernel.issue = self.clock.now
        self.trace.log.append(Step("issue", seq, row))
        return kernel

    def finish(self, seq: int, row: int) -> None:
        """Note that the window learns of the end of a call."""
        self.window.complete(seq)
        self.trace.log.append(Step("observe", seq, row))

    def learn(self, seq: int) -> None:
        """Note that the host learns of the end of a call."""
        self.known.add(seq)
        self.feeder.release(seq)
        self.news.fire()

    def run(self) -> None:
        """Bring the run to its end in virtual time."""
        self.clock.run(lambda: self.device.failure is not None)


class AcsSoftware(_Acs):
    """ACS-SW with a scheduler thread for each of `options.streams`."""

    def __init__(self, options: Options, spec: GpuSpec, clock: Clock, trace: Trace, emitters: Iterable[Emitter]):
        super().__init__(options, spec, clock, trace, emitters)
        self.work = Signal(clock)  # a call is ready, or no call will be
        self.over = False
        clock.spawn(self._take_in())
        for number in range(options.streams):
            clock.spawn(self._serve(number, self.device.add_stream()))

    def _take_in(self) -> Process:
        """Run the thread that fills the window."""
        host, window = self.spec.host, self.window
        while True:
            call = None if window.full else self.feeder.pull()
            if call is not None:
                yield self.taking() + host.check * len(window)
                window.insert(call)
                self.trace.order.append(call)
                self.kernels.append(call.launch.kernel())  # type: ignore[attr-defined]
                if window.ready:
                    self.work.fire()
            elif self.feeder.exhausted and not window.full:
                break
            else:
                yield self.news
        self.over = True
        self.work.fire()

    def _serve(self, number: int, stream: int) -> Process:
        """Run a scheduler thread."""
        window, host = self.window, self.spec.host
        ended = Signal(self.clock)
        while True:
            if window.ready:
                seq = self.choose(window.ready, window.calls)
                kernel = self.begin(seq, number)
                kernel.then = ended.fire
                yield host.launch
                self.device.launch(stream, kernel)
                yield ended
                yield self.spec.visible + host.notify
                self.finish(seq, number)
                self.learn(seq)
                self.work.fire()
            elif self.over and not window.calls:
                return
            else:
                yield self.work


class AcsHardware(_Acs):
    """ACS-HW with `options.window` slots on the GPU."""

    def __init__(self, options: Options, spec: GpuSpec, clock: Clock, trace: Trace, emitters: Iterable[Emitter]):
        super().__init__(options, spec, clock, trace, emitters)
        self.inbox: deque[int] = deque()  # calls that have arrived and have no slot yet
        self.free_at = 0.0  # when the window can take its next action [s]
        self.rows = Rows()
        self.running: dict[int, int] = {}  # call -> row of the trace
        clock.spawn(self._send())

    def _send(self) -> Process:
        """Run the host, which sends calls to the GPU."""
        host = self.spec.host
        while True:
            unknown = len(self.kernels) - len(self.known)
            call = self.feeder.pull() if unknown < host.listed else None
            if call is not None:
                yield self.taking() + host.check * unknown + host.send
                seq = len(self.kernels)
                self.trace.order.append(call)
                self.kernels.append(call.launch.kernel())  # type: ignore[attr-defined]
                self.clock.at(self.clock.now + self.spec.interconnect, lambda seq=seq: self._arrive(seq))  # type: ignore[misc]
            elif self.feeder.exhausted and unknown < host.listed:
                return
            else:
                yield self.news

    def _arrive(self, seq: int) -> None:
        self.inbox.append(seq)
        self._fill()

    def _fill(self) -> None:
        """Take calls into free slots, and start what is ready."""
        window = self.window
        while self.inbox and not window.full:
            self.free_at = max(self.free_at, self.clock.now) + self.spec.slot
            window.insert(self.trace.order[self.inbox.popleft()])
        while window.ready:
            seq = self.choose(window.ready, window.calls)
            row = self.running[seq] = self.rows.take()
            kernel = self.begin(seq, row)
            self.free_at = max(self.free_at, self.clock.now) + self.spec.slot
            start = lambda k=kernel, s=seq: self.device.start(k, lambda: self._end(s))  # noqa: E731
            self.clock.at(self.free_at, start)

    def _end(self, seq: int) -> None:
        row = self.running.pop(seq)
        self.rows.give(row)
        self.finish(seq, row)
        self.clock.at(self.clock.now + self.spec.interconnect, lambda: self.learn(seq))
        self._fill()
