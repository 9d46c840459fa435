"""The driver in virtual time, on which CUDA executors run unchanged on the GPU model.

    executor --driver call--> its cost passes on the clock of the host --> what the device does in that time happens

The host is one thread. What it does between two driver calls takes the time that `HostSpec` gives, which is charged
with the launches. On a host with `HostSpec.compiled`, compiled code makes these calls, as it does with CUDA's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.hazards import Segs
from ..native.issuer import Functions
from ..native.written import WrittenFunctions
from .clock import Clock
from .device import Device, Graph, Marker
from .processors import Kernel
from .spec import GpuSpec
from .virtual import VirtualLaunch

_HOME = 0
_NOT_READY = 600


class BodyFailed(RuntimeError):
    """Raised by every driver call after a body has raised. `Device.failure` says which."""


class VirtualDriver:
    """Implements `Driver`. Stream 0 is the home stream, and there is no implicit synchronisation.

    `kernels` collects the kernels that are launched, in order, from when it was set to a list. None collects nothing.
    `has_looked` is set when an event is queried.

    Args:
        spec: the GPU.
        clock: virtual time.
        persistent: whether a persistent kernel runs lists that are launched at once.
        polled: whether the executor issues a call once it has seen all ended that it waits for.
    """

    def __init__(self, spec: GpuSpec, clock: Clock, persistent: bool = False, polled: bool = False) -> None:
        self.spec = spec
        keep = spec.host.keep_polled if polled and spec.host.compiled else spec.host.keep
        self._issuing = keep + spec.host.launch
        self.clock = clock
        self.device = Device(spec, clock, persistent)
        host = spec.host
        self._launching = host.launch_workers if persistent else host.launch_graph
        self.kernels: list[Kernel] | None = None
        self._markers: dict[int, Marker] = {}
        self._graphs: dict[int, Graph] = {}
        self._resolved: set[tuple[Segs, Segs]] = (
            set()
        )  # combinations (reads, writes) that the hazard tracker of a graph builder knows
        self._handles = 0
        self.has_looked = False
        self._latest = _HOME  # the stream of the latest launch
        self._bound: list[VirtualLaunch] = []  # that compiled code knows by their places,
        self._places: dict[VirtualLaunch, int] = {}  # counted from 1
        self._parts: dict[int, tuple[list[VirtualLaunch], list[tuple[int, ...]]]] = {}  # of graphs that are being built
        self._functions = WrittenFunctions(self._doing()) if host.compiled else None

    # What launches do

    def issue(self, launch: VirtualLaunch, stream: int) -> None:
        """Put a kernel on a stream."""
        self._spend(self._issuing + (self.spec.host.hop if stream != self._latest else 0.0))
        self._latest = stream
        kernel = launch.kernel()
        self.device.launch(stream, kernel)
        if self.kernels is not None:
            self.kernels.append(kernel)

    # The driver

    def current_stream(self) -> int:
        """Return the home stream."""
        return _HOME

    def use_gpu(self, number: int) -> int:
        """Return 0: there is one GPU."""
        return 0

    def now(self) -> float:
        """Return virtual time [s]."""
        return self.clock.now

    def create_stream(self) -> int:
        """Return a new stream."""
        return self.device.add_stream()

    def destroy_stream(self, stream: int) -> None:
        """Forget a stream once it is empty."""
        if self.device.failure is None:
            self.synchronize(stream)
        del self.device.streams[stream]

    def create_event(self, timing: bool) -> int:
        """Return a new event, which counts as completed."""
        self._handles += 1
        self._markers[self._handles] = Marker(_HOME, float("-inf"))
        return self._handles

    def destroy_event(self, event: int) -> None:
        """Forget an event."""
        del self._markers[event]

    def record(self, event: int, stream: int) -> None:
        """Put an event behind the stream's work."""
        self._spend(self.spec.host.record)
        self._markers[event] = self.device.record(stream)

    def wait(self, stream: int, event: int) -> None:
        """Let the stream wait for the event's latest record."""
        self._spend(self.spec.host.wait)
        self.device.wait(stream, self._markers[event])

    def query(self, event: int) -> bool:
        """Return whether the host can see that the event's latest record has completed."""
        self._spend(self.spec.host.query)
        self.has_looked = True
        marker = self._markers[event]
        if marker.time is None and self.clock.idle:
            raise AssertionError(f"the streams block each other: event {event} can never complete")
        if marker.time is not None and marker.time + self.spec.visible <= self.clock.now:
            return True
        if not self.spec.host.query:  # a loop of queries that take no time would never end
            self.clock.step() if marker.time is None else self.clock.until(marker.time + self.spec.visible)
        return False

    def elapsed(self, start: int, end: int) -> float:
        """Return the seconds between two completed events."""
        begin, finish = self._markers[start].time, self._markers[end].time
        if begin is None or finish is None:
            raise ValueError("elapsed() was asked about an event that has not completed; synchronize first")
        return finish - begin

    def synchronize(self, stream: int) -> None:
        """Let time pass until the stream is empty and the host can see it."""
        self._spend(0.0)
        device = self.device
        if not device.is_empty(stream):
            self.clock.run(lambda: device.failure is not None or device.is_empty(stream))
            self._spend(self.spec.visible)
        if not device.is_empty(stream):
            raise AssertionError(f"the streams block each other: stream {stream} can never empty")

    def build_graph(
        self, launches: Sequence[Any], waits: Sequence[Sequence[int]], events: Sequence[tuple[int, int]] | None
    ) -> int:
        """Return a graph of virtual launches. Raises ValueError for timed events, which virtual time does not need."""
        if events is not None:
            raise ValueError("graphs of the GPU model have no timed events; run with record='order'")
        host = self.spec.host
        calls = [launch.call for launch in launches]
        unknown = {(call.reads, call.writes + call.updates) for call in calls} - self._resolved
        self._resolved |= unknown
        self._spend(host.build + host.build_node * len(launches) + host.resolve * len(unknown))
        self._handles += 1
        self._graphs[self._handles] = Graph([launch.kernel for launch in launches], waits)
        return self._handles

    def build_updatable_graph(self, launches: Sequence[Any], waits: Sequence[Sequence[int]]) -> int:
        """Return a graph of virtual launches, each of which may be replaced."""
        return self.build_graph(launches, waits, None)

    def update_graph(self, graph: int, node: int, launch: VirtualLaunch) -> None:
        """Replace the launch of a node. This takes the host as long as a launch."""
        self._spend(self.spec.host.launch)
        self._graphs[graph].makers[node] = launch.kernel

    def switch_nodes(self, graph: int, on: Sequence[int], off: Sequence[int]) -> None:
        """Raises ValueError: the GPU model has no graphs with nodes that are switched off."""
        raise ValueError("graphs of the GPU model have no nodes that are switched off; give graph_of='run'")

    def launch_graph(self, graph: int, stream: int) -> None:
        """Put a graph on a stream."""
        built = self._graphs[graph]
        host = self.spec.host
        seconds = self._launching + host.launch_node * len(built.makers)
        if built.branches:
            seconds += host.launch_branches
        self._spend(seconds)
        kernels = self.device.launch_graph(stream, built)
        if self.kernels is not None:
            self.kernels += kernels

    def destroy_graph(self, graph: int) -> None:
        """Forget a graph. If it runs, it still completes."""
        del self._graphs[graph]

    def is_fault(self, error: BaseException) -> bool:
        """Return False: there is no context that could be lost."""
        return False

    def functions(self) -> Functions | None:
        """Return what compiled code calls, or None for a host on which Python issues."""
        return None if self._functions is None else self._functions.addresses()

    def error(self, status: int) -> Exception:
        """Return what a function raised."""
        raised = None if self._functions is None else self._functions.take_error()
        return raised if raised is not None else RuntimeError(f"the GPU model reports {status}")

    def bind(self, launch: VirtualLaunch) -> int:
        """Return a number by which compiled code knows a launch, which is not 0."""
        place = self._places.get(launch)
        if place is None:
            self._bound.append(launch)
            place = self._places[launch] = len(self._bound)
        return place

    def reset(self) -> None:
        """Empty the device after a failure. Events count as completed."""
        self.device.reset()
        for event in self._markers:
            self._markers[event] = Marker(_HOME, float("-inf"))

    # What compiled code calls, with the parameters of CUDA's functions

    def _doing(self) -> dict[str, Callable[..., int | None]]:
        return {
            "launch": lambda *given: self.issue(self._bound[given[9] - 1], given[8]),
            "record": self.record,
            "wait": lambda stream, event, flags: self.wait(stream, event),
            "query": lambda event: 0 if self.query(event) else _NOT_READY,
            "launch_graph": self._launch_piece,
            "create_graph": self._create_graph,
            "add_node": self._add_node,
            "instantiate": self._instantiate,
            "destroy_graph": lambda graph: self._parts.pop(graph) and None,
        }

    def _launch_piece(self, graph: int, stream: int) -> None:
        self._spend(self.spec.host.keep_piece * len(self._graphs[graph].makers))
        self.launch_graph(graph, stream)

    def _create_graph(self, graph: Any, flags: int) -> None:
        self._handles += 1
        graph[0] = self._handles
        self._parts[self._handles] = [], []

    def _add_node(self, node: Any, graph: int, before: Any, count: int, parameters: Any) -> None:
        launches, waits = self._parts[graph]
        waits.append(tuple(before[i] - 1 for i in range(count)))
        launches.append(self._bound[parameters[0].arguments - 1])
        node[0] = len(launches)

    def _instantiate(self, executable: Any, graph: int, flags: int) -> None:
        launches, waits = self._parts[graph]
        executable[0] = self.build_graph(launches, waits, None)

    def _spend(self, seconds: float) -> None:
        """Let time pass for the host. Raises BodyFailed once a body has failed."""
        self.clock.advance(seconds)
        if self.device.failure is not None:
            raise BodyFailed(f"the body of call {self.device.failure[0].name!r} failed")
