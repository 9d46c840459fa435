"""The device: streams that carry out kernels, events, waits and graphs in order, on top of the block scheduler.

    host --dispatch--> stream: kernel, record, wait, graph, ... --heads, as they may--> block scheduler

Invariants
    1. A stream's commands are carried out in order, each no earlier than `dispatch` after the host gave it.
    2. A kernel starts at the earliest `chain` after the end of the kernel before it on its stream, with `mark` for each
       event between them, and `crossing` after the end of a kernel on another stream whose event it waits for.
    3. `simengine_scheduler.gpu_model.batches` runs lists that are launched at once. A list begins as a kernel would.
    4. The body of a kernel runs at its end, so its results are there before anything that comes after it starts.
    5. After a body has raised, nothing runs until `reset`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from ..core.calls import KernelCall
from .batches import Batch, NodeBatch
from .clock import Clock
from .processors import Kernel, Processors
from .spec import GpuSpec
from .tickets import ReadyBatch, TicketBatch


class Marker:
    """One record of an event. `time` is when the stream came to it [s], or None before that."""

    __slots__ = ("stream", "time", "waiting")

    def __init__(self, stream: int, time: float | None = None) -> None:
        self.stream = stream
        self.time = time
        self.waiting: list[Stream] = []


class Graph:
    """Kernels that are launched at once: functions that make them, and for each the earlier ones that it waits for.

    `branches` says whether they are not simply one behind another.
    """

    __slots__ = ("branches", "makers", "waits")

    def __init__(self, makers: Sequence[Callable[[], Kernel]], waits: Sequence[Sequence[int]]) -> None:
        self.makers = list(makers)
        self.waits = tuple(map(tuple, waits))
        self.branches = any(own != ((number - 1,) if number else ()) for number, own in enumerate(self.waits))


Command = tuple[float, Kernel | Marker | Batch | tuple[Marker]]
"""When a command reaches the stream, and the command. A tuple of a marker is a wait for it."""


class Stream:
    """The state of one stream."""

    __slots__ = ("busy", "commands", "earliest", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.commands: deque[Command] = deque()
        self.busy = False  # a kernel or graph runs, or an action that is due will carry on
        self.earliest = 0.0  # when the next kernel may start


class Device:
    """Streams over the multiprocessors of a GPU. `failure` is the call whose body raised, and what it raised.

    Args:
        spec: the GPU.
        clock: virtual time.
        persistent: whether a persistent kernel runs lists that are launched at once. Otherwise they are graphs.
    """

    def __init__(self, spec: GpuSpec, clock: Clock, persistent: bool = False) -> None:
        tickets = TicketBatch if spec.wake is None else ReadyBatch
        self._batch = tickets if persistent else NodeBatch
        self.spec = spec
        self.clock = clock
        self.processors = Processors(spec, clock)
        self.streams: dict[int, Stream] = {0: Stream(0)}
        self.failure: tuple[KernelCall, Exception] | None = None

    def add_stream(self) -> int:
        """Return the number of a new stream."""
        number = max(self.streams) + 1
        self.streams[number] = Stream(number)
        return number

    def launch(self, stream: int, kernel: Kernel) -> None:
        """Put a kernel on a stream, as the host does. Raises ValueError if no block of it ever fits on the GPU."""
        self.processors.admit(kernel.shape)
        kernel.issue = self.clock.now
        self._put(stream, kernel)

    def record(self, stream: int) -> Marker:
        """Record an event behind what a stream holds, as the host does."""
        marker = Marker(stream)
        self._put(stream, marker)
        return marker

    def wait(self, stream: int, marker: Marker) -> None:
        """Let what follows on a stream wait for an event, as the host does."""
        self._put(stream, (marker,))

    def launch_graph(self, stream: int, graph: Graph) -> list[Kernel]:
        """Put a graph on a stream, as the host does. Returns its kernels. Raises ValueError for one that never fits."""
        kernels = [make() for make in graph.makers]
        for kernel in kernels:
            self.processors.admit(kernel.shape)
            kernel.issue = self.clock.now
        if kernels:
            self._put(stream, self._batch(kernels, graph.waits))
        return kernels

    def is_empty(self, stream: int) -> bool:
        """Whether a stream has nothing left to do."""
        held = self.streams[stream]
        return not held.commands and not held.busy

    def start(self, kernel: Kernel, done: Callable[[], None]) -> None:
        """Run a kernel at the present time, whatever came before it. `done` is called after its body."""

        def end() -> None:
            if self.complete(kernel):
                done()
                kernel.then()

        self.processors.submit(kernel, end)

    def complete(self, kernel: Kernel) -> bool:
        """Run the body of a kernel that has ended. Returns whether nothing has failed so far."""
        if self.failure is None and kernel.body is not None:
            try:
                kernel.body()
            except Exception as error:
                self.failure = kernel.call, error
        return self.failure is None

    def reset(self) -> None:
        """Forget all work, after a failure."""
        self.clock.clear()
        self.processors.reset()
        self.failure = None
        for number in self.streams:
            self.streams[number] = Stream(number)

    def _put(self, stream: int, what: Kernel | Marker | Batch | tuple[Marker]) -> None:
        held = self.streams[stream]
        held.commands.append((self.clock.now + self.spec.dispatch, what))
        self._pump(held)

    def _pump(self, stream: Stream) -> None:
        """Carry out the commands of a stream that are due."""
        while stream.commands and not stream.busy:
            there, what = stream.commands[0]
            begin = there if isinstance(what, Marker | tuple) else max(there, stream.earliest)
            if begin > self.clock.now:
                self._go_on_at(stream, begin)
                return
            if isinstance(what, tuple) and not self._has_passed(stream, what[0]):
                return
            stream.commands.popleft()
            if isinstance(what, Marker):
                self._mark(stream, what)
            elif isinstance(what, Kernel):
                stream.busy = True
                self.start(what, lambda: self._end(stream))
            elif isinstance(what, Batch):
                stream.busy = True
                what.begin(self, lambda: self._end(stream))

    def _go_on_at(self, stream: Stream, time: float) -> None:
        def go_on() -> None:
            stream.busy = False
            self._pump(stream)

        stream.busy = True
        self.clock.at(time, go_on)

    def _has_passed(self, stream: Stream, marker: Marker) -> bool:
        """Whether a stream may go on past an event. If not, the event wakes the stream later."""
        if marker.time is None:
            if stream not in marker.waiting:
                marker.waiting.append(stream)
            return False
        if marker.stream != stream.number:
            stream.earliest = max(stream.earliest, marker.time + self.spec.crossing)
        return True

    def _mark(self, stream: Stream, marker: Marker) -> None:
        marker.time = self.clock.now
        stream.earliest += self.spec.mark
        for other in marker.waiting:
            self._pump(other)
        marker.waiting.clear()

    def _end(self, stream: Stream) -> None:
        stream.busy = False
        stream.earliest = self.clock.now + self.spec.chain
        self._pump(stream)
