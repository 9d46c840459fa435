"""The driver in virtual time, on which CUDA executors run unchanged on the GPU model.

    executor --driver call--> its cost passes on the clock of the host --> what the device does in that time happens

The host is one thread. Its Python between two driver calls takes the time that `HostSpec` gives, which is charged with
the launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.hazards import Segs
from .clock import Clock
from .device import Device, Graph, Marker
from .processors import Kernel
from .spec import GpuSpec
from .virtual import VirtualLaunch

_HOME = 0


class BodyFailed(RuntimeError):
    """Raised by every driver call after a body has raised. `Device.failure` says which."""


class VirtualDriver:
    """Implements `Driver`. Stream 0 is the home stream, and there is no implicit synchronisation.

    `kernels` collects the kernels that are launched, in order, from when it was set to a list. None collects nothing.
    `persistent` says whether a persistent kernel runs lists that are launched at once.
    """

    def __init__(self, spec: GpuSpec, clock: Clock, persistent: bool = False) -> None:
        self.spec = spec
        self._issuing = spec.host.keep + spec.host.launch
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

    # What launches do

    def issue(self, launch: VirtualLaunch, stream: int) -> None:
        """Put a kernel on a stream."""
        self._spend(self._issuing)
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
        self._spend(self._launching + self.spec.host.launch_node * len(built.makers))
        kernels = self.device.launch_graph(stream, built)
        if self.kernels is not None:
            self.kernels += kernels

    def destroy_graph(self, graph: int) -> None:
        """Forget a graph. If it runs, it still completes."""
        del self._graphs[graph]

    def is_fault(self, error: BaseException) -> bool:
        """Return False: there is no context that could be lost."""
        return False

    def functions(self) -> None:
        """Return None: virtual time passes in Python."""

    def error(self, status: int) -> Exception:
        """Return an error with a status."""
        return RuntimeError(f"the GPU model reports {status}")

    def reset(self) -> None:
        """Empty the device after a failure. Events count as completed."""
        self.device.reset()
        for event in self._markers:
            self._markers[event] = Marker(_HOME, float("-inf"))

    def _spend(self, seconds: float) -> None:
        """Let time pass for the host. Raises BodyFailed once a body has failed."""
        self.clock.advance(seconds)
        if self.device.failure is not None:
            raise BodyFailed(f"the body of call {self.device.failure[0].name!r} failed")
