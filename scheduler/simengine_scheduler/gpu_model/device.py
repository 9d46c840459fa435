"""The device: streams that work off kernels, events, waits and graphs in order, on top of the block scheduler.

    host --dispatch--> stream: kernel, record, wait, graph, ... --heads, as they may--> block scheduler

Invariants
    1. A stream's commands are carried out in order, each no earlier than `dispatch` after the host gave it.
    2. A kernel starts `chain` after the one before it on its stream has ended, or later; `crossing` after a kernel on
       another stream whose event it waits for; `mark` is added for each event between it and the one before.
    3. Lists launched at once are run by `simengine_scheduler.gpu_model.batches`, and begin as a stream's kernel would.
    4. A kernel's body runs at its end, so what it wrote is there before anything that must come behind it starts.
    5. After a body has raised nothing runs any more until `reset`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from ..core.calls import KernelCall
from .batches import Batch, NodeBatch
from .clock import Clock
from .processors import Kernel, Processors
from .spec import GpuSpec
from .tickets import TicketBatch


class Marker:
    """One record of an event: `time` is when the stream came to it [s], None until then."""

    __slots__ = ("stream", "time", "waiting")

    def __init__(self, stream: int, time: float | None = None) -> None:
        self.stream = stream
        self.time = time
        self.waiting: list[Stream] = []


class Graph:
    """Kernels to be launched at once: calls as kernels' makers, and for each the earlier ones that it waits for."""

    __slots__ = ("makers", "waits")

    def __init__(self, makers: Sequence[Callable[[], Kernel]], waits: Sequence[Sequence[int]]) -> None:
        self.makers = list(makers)
        self.waits = tuple(map(tuple, waits))


Command = tuple[float, Kernel | Marker | Batch | tuple[Marker]]
"""When it is there, and what: a tuple of a marker is a wait for it."""


class Stream:
    """The state of one stream."""

    __slots__ = ("busy", "commands", "earliest", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.commands: deque[Command] = deque()
        self.busy = False  # a kernel or graph runs, or something that is due will go on
        self.earliest = 0.0  # when the next kernel may start


class Device:
    """Streams over the multiprocessors of a GPU. `failure` is the call whose body raised, and what it raised.

    `persistent` says whether lists launched at once are run by a persistent kernel, not as graphs.
    """

    def __init__(self, spec: GpuSpec, clock: Clock, persistent: bool = False) -> None:
        self._batch = TicketBatch if persistent else NodeBatch
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
        """The host puts a kernel on a stream. Raises ValueError if the GPU can never hold a block of it."""
        self.processors.admit(kernel.shape)
        kernel.issue = self.clock.now
        self._put(stream, kernel)

    def record(self, stream: int) -> Marker:
        """The host puts an event behind what a stream holds."""
        marker = Marker(stream)
        self._put(stream, marker)
        return marker

    def wait(self, stream: int, marker: Marker) -> None:
        """The host lets what follows on a stream wait for an event."""
        self._put(stream, (marker,))

    def launch_graph(self, stream: int, graph: Graph) -> list[Kernel]:
        """The host puts a graph on a stream; returns its kernels. Raises ValueError for one that can never fit."""
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
        """Run a kernel now, as if everything before it had been seen to; `done` is called behind its body."""

        def end() -> None:
            if self.complete(kernel):
                done()
                kernel.then()

        self.processors.submit(kernel, end)

    def complete(self, kernel: Kernel) -> bool:
        """Run the body of a kernel that has ended; return whether nothing has failed so far."""
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
        """Carry out what is due of a stream."""
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
        """Whether a stream may go on past an event; if not, the event will see to it."""
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
