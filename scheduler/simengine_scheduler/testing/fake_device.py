"""A fake device: streams and events in Python, to test executors and kernel lists where there is no GPU.

Work runs in a random order that streams and events allow, a little at every query. A missing wait thus shows as a
changed result. A kernel has a start and an end, and kernels of different streams overlap. Its body runs at the start or
at the end, at random, because a real kernel may read early and write late.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

from ..launch.arguments import Buffer, BufferSet, Number, Scalar
from ..launch.host import PythonLaunch
from ..native.issuer import Functions


class DeviceFault(RuntimeError):
    """The sticky error of the fake device: after a body has raised, every driver call raises it."""


class FakeDevice:
    """Implements `Driver`. Stream 0 is the home stream, and there is no implicit synchronisation."""

    def __init__(self, seed: int = 0, eagerness: float = 0.5) -> None:
        self.max_running = 0
        self.executed = 0
        self._random = random.Random(seed)
        self._eagerness = eagerness  # chance that a query lets the device take another step
        self._queues: dict[int, deque[tuple[str, Any]]] = {0: deque()}
        self._running: dict[int, Callable[[], None] | None] = {}  # stream -> the body, or None if it has run
        self._records: dict[int, int] = {}  # event -> how often it was recorded
        self._executed: dict[int, set[int]] = {}  # event -> which of its records have been executed
        self._stamps: dict[int, int] = {}
        self.graphs: dict[int, tuple[Any, Any, Any]] = {}
        self.updates = 0  # how many nodes of graphs got other arguments
        self._updatable: dict[int, set[int]] = {}  # graph -> its disabled nodes
        self.switched = 0  # how many nodes were enabled or disabled
        self._of_graphs: set[int] = set()  # streams that calls of graphs run on
        self._clock = 0
        self._handles = 1000
        self._fault: BaseException | None = None
        self.gpu = 0  # the current one
        self._gpus = {0: 0}  # of streams and events

    def use_gpu(self, number: int) -> int:
        """Make a GPU current. Returns the one before."""
        before, self.gpu = self.gpu, number
        return before

    def now(self) -> float:
        """Return the time of the host [s]."""
        return perf_counter()

    def gpu_of(self, handle: int) -> int:
        """Return the GPU of a stream or an event."""
        return self._gpus.get(handle, 0)

    def launch(
        self, body: Callable[..., None], arguments: Sequence[Any] = (), buffers: BufferSet | None = None
    ) -> FakeLaunch:
        """Return a launch that runs a Python body on this device.

        The body gets the address of a `Buffer` and the value of a `Number`, as they are when the launch is issued or
        built into a graph. Other arguments it gets unchanged.
        """
        return FakeLaunch(self, body, arguments, buffers)

    def enqueue(self, stream: int, body: Callable[[], None]) -> None:
        """Put a kernel on a stream."""
        self._check()
        self._queues[stream].append(("kernel", body))
        self._progress()

    @property
    def streams(self) -> tuple[int, ...]:
        """The streams that there are, the home stream among them."""
        return tuple(self._queues)

    # The driver

    def current_stream(self) -> int:
        """Return the home stream."""
        return 0

    def create_stream(self) -> int:
        """Return a new stream."""
        self._handles += 1
        self._queues[self._handles] = deque()
        self._gpus[self._handles] = self.gpu
        return self._handles

    def destroy_stream(self, stream: int) -> None:
        """Forget a stream once it is empty."""
        if self._fault is None:
            self.synchronize(stream)
        del self._queues[stream]

    def create_event(self, timing: bool) -> int:
        """Return a new event."""
        self._handles += 1
        self._records[self._handles] = 0
        self._executed[self._handles] = {0}
        self._gpus[self._handles] = self.gpu
        return self._handles

    def destroy_event(self, event: int) -> None:
        """Forget an event. Raises KeyError for an unknown event, where CUDA would fail."""
        del self._records[event]

    def record(self, event: int, stream: int) -> None:
        """Put an event behind the stream's work."""
        self._check()
        if self.gpu_of(event) != self.gpu_of(stream):
            raise ValueError(f"event {event} and stream {stream} are of different GPUs")
        self._records[event] += 1
        self._queues[stream].append(("record", (event, self._records[event])))

    def wait(self, stream: int, event: int) -> None:
        """Let the stream wait for the event's latest record."""
        self._check()
        self._queues[stream].append(("wait", (event, self._records[event])))

    def query(self, event: int) -> bool:
        """Let the device go on a little, and return whether the event's latest record has completed."""
        self._check()
        self._progress()
        if not self._is_done(event) and not self._step():
            raise AssertionError(f"the streams block each other: event {event} can never complete")
        self._check()
        return self._is_done(event)

    def elapsed(self, start: int, end: int) -> float:
        """Return the time between two completed events [s]. A step of the device takes a microsecond."""
        return (self._stamps[end] - self._stamps[start]) * 1e-6

    def synchronize(self, stream: int) -> None:
        """Execute until the stream is empty."""
        while self._queues[stream] or stream in self._running:
            self._check()
            if not self._step():
                raise AssertionError(f"the streams block each other: stream {stream} can never empty")
        self._check()

    def build_graph(
        self, launches: Sequence[Any], waits: Sequence[Sequence[int]], events: Sequence[tuple[int, int]] | None
    ) -> int:
        """Store a graph, with the arguments as they are."""
        self._handles += 1
        bodies = [launch.bound() if isinstance(launch, FakeLaunch) else launch.node() for launch in launches]
        self.graphs[self._handles] = (bodies, tuple(map(tuple, waits)), events)
        return self._handles

    def build_updatable_graph(self, launches: Sequence[Any], waits: Sequence[Sequence[int]]) -> int:
        """Store a graph whose nodes may get other arguments."""
        graph = self.build_graph(launches, waits, None)
        self._updatable[graph] = set()
        return graph

    def update_graph(self, graph: int, node: int, launch: Any) -> None:
        """Give a node other arguments. Raises ValueError for a graph that is not updatable, where CUDA would fail."""
        if graph not in self._updatable:
            raise ValueError(f"graph {graph} cannot be updated; build it with build_updatable_graph")
        self.updates += 1
        self.graphs[graph][0][node] = launch.bound()

    def switch_nodes(self, graph: int, on: Sequence[int], off: Sequence[int]) -> None:
        """Enable and disable nodes. Raises ValueError for a graph that is not updatable."""
        if graph not in self._updatable:
            raise ValueError(f"graph {graph} cannot be updated; build it with build_updatable_graph")
        self.switched += len(on) + len(off)
        self._updatable[graph].difference_update(on)
        self._updatable[graph].update(off)

    def launch_graph(self, graph: int, stream: int) -> None:
        """Put each launch on a stream of its own, behind what it waits for, between two points of `stream`."""
        self._check()
        self._queues = {s: q for s, q in self._queues.items() if q or s in self._running or s not in self._of_graphs}
        bodies, waits, events = self.graphs[graph]
        disabled = self._updatable.get(graph, ())
        fork, ends = self.create_event(False), list[int]()
        self.record(fork, stream)
        for i, (body, before) in enumerate(zip(bodies, waits, strict=True)):
            own = self.create_stream()
            self._of_graphs.add(own)
            for event in (fork, *(ends[other] for other in before)):
                self.wait(own, event)
            if events is not None:
                self.record(events[i][0], own)
            if i not in disabled:
                self._queues[own].append(("kernel", body))
            if events is not None:
                self.record(events[i][1], own)
            ends.append(self.create_event(False))
            self.record(ends[-1], own)
        for event in ends:
            self.wait(stream, event)
        self._progress()

    def destroy_graph(self, graph: int) -> None:
        """Forget a graph. Raises KeyError for an unknown graph."""
        del self.graphs[graph]

    def is_fault(self, error: BaseException) -> bool:
        """Return whether an error is the sticky one."""
        return isinstance(error, DeviceFault)

    def functions(self) -> Functions | None:
        """Return None: compiled code cannot call this device. `CalledDevice` is one that it can call."""

    def error(self, status: int) -> Exception:
        """Return an error with a status."""
        return RuntimeError(f"the fake device reports {status}")

    # The machine

    def _check(self) -> None:
        if self._fault is not None:
            raise DeviceFault(f"fake device fault: {self._fault}") from self._fault

    def _is_done(self, event: int) -> bool:
        return self._records[event] in self._executed[event]

    def _progress(self) -> None:
        while self._random.random() < self._eagerness and self._step():
            pass

    def _step(self) -> bool:
        """Do one step that some stream allows. Returns False if there is none."""
        able = [s for s in self._queues if s in self._running or self._may_go(s)]
        if not able or self._fault is not None:
            return False
        stream = self._random.choice(able)
        self._clock += 1
        if stream in self._running:
            self._execute(self._running.pop(stream))
            return True
        kind, what = self._queues[stream].popleft()
        if kind == "record":
            event, version = what
            self._executed[event].add(version)
            self._stamps[event] = self._clock
        elif kind == "kernel":
            late = self._random.random() < 0.5
            self._running[stream] = what if late else None
            self.max_running = max(self.max_running, len(self._running))
            if not late:
                self._execute(what)
        return True

    def _may_go(self, stream: int) -> bool:
        queue = self._queues[stream]
        if not queue:
            return False
        kind, what = queue[0]
        return kind != "wait" or what[1] in self._executed[what[0]]

    def _execute(self, body: Callable[[], None] | None) -> None:
        if body is None:
            return
        self.executed += 1
        try:
            body()
        except Exception as error:
            self._fault = error


class FakeLaunch(PythonLaunch):
    """A Python body that a `FakeDevice` runs when its stream comes to it."""

    __slots__ = ("_device", "arguments", "buffers")

    def __init__(
        self,
        device: FakeDevice,
        body: Callable[..., None],
        arguments: Sequence[Any] = (),
        buffers: BufferSet | None = None,
    ) -> None:
        super().__init__(body)
        self._device = device
        self.arguments = tuple(arguments)
        self.buffers = buffers

    def bound(self) -> Callable[[], None]:
        """Return the body with the arguments as they are."""
        values = {Buffer: lambda b: b.ptr, Number: lambda n: n.value, Scalar: lambda s: s.value}
        return partial(self.function, *(values.get(type(a), lambda other: other)(a) for a in self.arguments))

    def issue(self, stream: int) -> None:
        """Put the body on a stream."""
        self._device.enqueue(stream, self.bound())
