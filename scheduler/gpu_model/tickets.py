"""A persistent kernel that takes tiles by tickets, in virtual time: the window and the emission are on the GPU.

    emitters --> tickets (call, tile) in program order --> free resident block --what it waits for has ended--> runs

Invariants
    1. Blocks take tickets in program order, one at a time each `ticket` apart, and keep a tile until it has run: the
       window is as long as there are blocks, and what a block waits for was taken before it, so none waits for ever.
    2. A call's tiles start `release` after the last call before it that conflicts has ended. A tile runs as long as a
       block of the call's kernel does.
    3. Emitters are advanced on the GPU: one that awaits a call goes on `release` after its end. The host only starts
       the kernel and learns of its end.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..calls import Emitter
from ..emission import Feeder
from ..executors.base import Options
from ..hazards import HazardTracker
from ..trace import Step, Trace
from .clock import Clock
from .device import Device
from .processors import Kernel
from .rows import Rows
from .spec import GpuSpec


class _Task:
    """A call whose tickets are being handed out, or that waits or runs."""

    __slots__ = ("behind", "kernel", "parked", "ready", "row", "seconds", "seq", "upstream")

    def __init__(self, seq: int, kernel: Kernel, seconds: float, upstream: set[int]) -> None:
        self.seq = seq
        self.kernel = kernel
        self.seconds = seconds
        self.upstream = upstream
        self.behind: list[_Task] = []
        self.parked = 0  # blocks that hold a tile and wait
        self.ready = 0.0  # when its tiles may run, once nothing is upstream
        self.row = -1


class TicketedDevice:
    """A run of the persistent kernel."""

    def __init__(self, options: Options, spec: GpuSpec, clock: Clock, trace: Trace, emitters: Iterable[Emitter]):
        self.spec, self.clock, self.trace = spec, clock, trace
        self.device = Device(spec, clock)
        self.tracker = HazardTracker(options.table("simulated").conflicts)
        self.ended: set[int] = set()
        self.feeder = Feeder(emitters, self.ended.__contains__)
        self.kernels: list[Kernel] = []
        self.rows = Rows()
        self.tasks: dict[int, _Task] = {}
        self.current: _Task | None = None  # whose tickets are next
        self.blocks = spec.multiprocessors * spec.tiles  # free ones
        self.counter = 0.0  # when the next ticket can be taken
        clock.at(clock.now + spec.host.launch + spec.dispatch, self._take)

    def run(self) -> None:
        """Bring the run to its end in virtual time, and let the host see it."""
        self.clock.run(lambda: self.device.failure is not None)
        self.clock.advance(self.spec.visible)

    def _take(self) -> None:
        """Free blocks take tickets."""
        while self.blocks:
            task = self.current or self._next_task()
            if task is None:
                return
            tiles = min(self.blocks, task.kernel.blocks)
            self.blocks -= tiles
            task.kernel.blocks -= tiles
            self.current = task if task.kernel.blocks else None
            self.counter = max(self.counter, self.clock.now) + tiles * self.spec.ticket
            if task.upstream:
                task.parked += tiles
            else:
                self._run(task, tiles, max(self.counter, task.ready))

    def _next_task(self) -> _Task | None:
        call = self.feeder.pull()
        if call is None:
            return None
        seq, kernel = len(self.kernels), call.launch.kernel()  # type: ignore[attr-defined]
        kernel.issue = self.clock.now
        self.trace.order.append(call)
        self.kernels.append(kernel)
        seconds = self.spec.block_seconds(kernel.shape, kernel.seconds)
        task = _Task(seq, kernel, seconds, self.tracker.add(seq, call))
        for earlier in task.upstream:
            self.tasks[earlier].behind.append(task)
        self.tasks[seq] = task
        if not task.upstream:
            self._begin(task)
        return task

    def _begin(self, task: _Task) -> None:
        """Nothing before a task is left."""
        task.row = self.rows.take()
        self.trace.log.append(Step("issue", task.seq, task.row))

    def _run(self, task: _Task, tiles: int, start: float) -> None:
        kernel = task.kernel
        if kernel.start != kernel.start:
            kernel.start = start
        kernel.running += tiles
        self.clock.at(start + task.seconds, lambda: self._end(task, tiles))

    def _end(self, task: _Task, tiles: int) -> None:
        kernel = task.kernel
        kernel.running -= tiles
        self.blocks += tiles
        if not kernel.running and not kernel.blocks and not task.parked:
            kernel.end = self.clock.now
            self.device.complete(kernel)
            self._release(task)
        self._take()

    def _release(self, task: _Task) -> None:
        """A task has ended: what waits for it goes on `release` later."""
        self.tracker.remove(task.seq)
        del self.tasks[task.seq]
        self.trace.log.append(Step("observe", task.seq, task.row))
        self.rows.give(task.row)
        later = self.clock.now + self.spec.release
        for other in task.behind:
            other.upstream.discard(task.seq)
            if not other.upstream:
                other.ready = later
                self._begin(other)
                if other.parked:
                    self._run(other, other.parked, later)
                    other.parked = 0
        self.ended.add(task.seq)
        if task.seq in self.feeder.waiting:
            self.clock.at(later, lambda: self._resume(task.seq))

    def _resume(self, seq: int) -> None:
        self.feeder.release(seq)
        self._take()
