"""The driver calls that CUDA executors make.

Executors know the protocol `Driver` only. They run on CUDA, on a fake device and on a GPU model alike.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache
from time import perf_counter
from typing import Any, Protocol

from ..native import issuer
from ..native.issuer import Functions

_NOT_READY = 600  # cudaErrorNotReady

# Errors after which the context refuses every call: illegal address, launch timeout, context destroyed, assert,
# hardware stack error, illegal instruction, misaligned address, invalid address space, invalid program counter,
# launch failure.
_FAULTS = frozenset({700, 702, 709, 710, 714, 715, 716, 717, 718, 719})


@lru_cache(maxsize=1)
def _cuda_functions() -> Functions | None:
    launching = ("cuLaunchKernel", "cuEventRecord", "cuStreamWaitEvent", "cuEventQuery")
    building = ("cuGraphCreate", "cuGraphAddKernelNode_v2", "cuGraphInstantiateWithFlags", "cuGraphDestroy")
    contexts = ("cuCtxGetCurrent", "cuCtxSetCurrent")
    names = (*launching, "cuGraphLaunch", "cuGraphNodeSetEnabled", *contexts, *building)
    try:
        library = ctypes.CDLL("libcuda.so.1")
        return Functions(*(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in names))
    except (OSError, AttributeError):
        return None


def is_cuda_fault(error: BaseException) -> bool:
    """Return whether an error's CUDA status ends the context."""
    return getattr(error, "status", None) in _FAULTS


class Driver(Protocol):
    """Streams, events and graphs by handle. Any method may raise if an earlier kernel has faulted."""

    def current_stream(self) -> int:
        """Return the stream that the caller's program is using."""
        ...

    def use_gpu(self, number: int) -> int:
        """Make a GPU current: streams and events are then made on it, and kernels launched. Returns the one before."""
        ...

    def now(self) -> float:
        """Return the time of the host [s], which is virtual on a model of a GPU."""
        ...

    def create_stream(self) -> int:
        """Return a new stream that does not synchronise with the default stream."""
        ...

    def destroy_stream(self, stream: int) -> None:
        """Destroy a stream."""
        ...

    def create_event(self, timing: bool) -> int:
        """Return a new event. An event without time stamps is cheaper."""
        ...

    def destroy_event(self, event: int) -> None:
        """Destroy an event."""
        ...

    def record(self, event: int, stream: int) -> None:
        """Record an event behind what the stream holds. Waits for an earlier record of the event are not changed."""
        ...

    def wait(self, stream: int, event: int) -> None:
        """Let what follows on the stream wait for the event's latest record."""
        ...

    def query(self, event: int) -> bool:
        """Return whether the event's latest record has completed."""
        ...

    def elapsed(self, start: int, end: int) -> float:
        """Return the seconds between two completed events with timing."""
        ...

    def synchronize(self, stream: int) -> None:
        """Block the host until the stream is empty."""
        ...

    def build_graph(
        self, launches: Sequence[Any], waits: Sequence[Sequence[int]], events: Sequence[tuple[int, int]] | None
    ) -> int:
        """Return a graph of launches.

        Args:
            launches: the kernel nodes.
            waits: for each node the positions of the earlier nodes that it waits for.
            events: for each node a pair of events to record at its start and end, or None.
        """
        ...

    def build_updatable_graph(self, launches: Sequence[Any], waits: Sequence[Sequence[int]]) -> int:
        """Return a graph like that of `build_graph`, whose nodes may get other arguments later."""
        ...

    def update_graph(self, graph: int, node: int, launch: Any) -> None:
        """Give a node of an updatable graph, by position, the present arguments of its launch."""
        ...

    def switch_nodes(self, graph: int, on: Sequence[int], off: Sequence[int]) -> None:
        """Enable and disable nodes of an updatable graph, by position. A disabled node ends as soon as it may start."""
        ...

    def launch_graph(self, graph: int, stream: int) -> None:
        """Launch a graph on a stream."""
        ...

    def destroy_graph(self, graph: int) -> None:
        """Destroy a graph. If it runs, it still completes."""
        ...

    def is_fault(self, error: BaseException) -> bool:
        """Return whether an error means that the context is lost."""
        ...

    def functions(self) -> Functions | None:
        """Return the addresses of functions that compiled code may call, or None where Python must call the driver."""
        ...

    def error(self, status: int) -> Exception:
        """Return the error for what one of these functions returned."""
        ...


class CudaDriver:
    """CUDA through CuPy's raw handles. Raises RuntimeError, in one sentence, where there is no CuPy or no GPU."""

    def __init__(self) -> None:
        try:
            import cupy
            from cupy.cuda import runtime
        except ImportError as error:
            raise RuntimeError(
                f"CUDA executors need CuPy, which cannot be imported ({error}); install cupy-cuda12x or cupy-cuda13x, "
                f"or choose a host executor"
            ) from error
        try:
            devices = runtime.getDeviceCount()
        except runtime.CUDARuntimeError as error:
            raise RuntimeError(
                f"CUDA executors need a GPU, but CUDA reports {error}; choose a host executor"
            ) from error
        if devices == 0:
            raise RuntimeError("CUDA executors need a GPU, but CUDA sees none; choose a host executor")
        self._runtime: Any = runtime
        self._cuda: Any = cupy.cuda
        self._event_query: Callable[[int], int] = runtime.eventQuery
        self._templates: dict[int, Any] = {}  # of updatable graphs
        self._handles: dict[int, list[int]] = {}  # of the nodes of graphs in which nodes were disabled
        self._enable: int | None = None
        # These are CuPy's own functions, because a Python wrapper would cost 60 ns a call.
        self.record: Callable[[int, int], None] = runtime.eventRecord
        self.wait: Callable[[int, int], None] = runtime.streamWaitEvent
        self.synchronize: Callable[[int], None] = runtime.streamSynchronize
        self.launch_graph: Callable[[int, int], None] = runtime.graphLaunch

    def current_stream(self) -> int:
        """Return CuPy's current stream."""
        return int(self._cuda.get_current_stream().ptr)

    def use_gpu(self, number: int) -> int:
        """Make a GPU current by its number. Returns the one before."""
        before = int(self._runtime.getDevice())
        if number != before:
            self._runtime.setDevice(number)
        return before

    def now(self) -> float:
        """Return the time of the host [s]."""
        return perf_counter()

    def create_stream(self) -> int:
        """Return a non-blocking stream."""
        return int(self._runtime.streamCreateWithFlags(self._runtime.streamNonBlocking))

    def destroy_stream(self, stream: int) -> None:
        """Destroy a stream. Work on it still completes."""
        self._destroy(self._runtime.streamDestroy, stream)

    def create_event(self, timing: bool) -> int:
        """Return an event."""
        flags = self._runtime.eventDefault if timing else self._runtime.eventDisableTiming
        return int(self._runtime.eventCreateWithFlags(flags))

    def destroy_event(self, event: int) -> None:
        """Destroy an event."""
        self._destroy(self._runtime.eventDestroy, event)

    def _destroy(self, destroy: Callable[[int], None], handle: int) -> None:
        try:
            destroy(handle)
        except self._runtime.CUDARuntimeError as error:
            if not self.is_fault(error):  # the handles of a lost context are gone
                raise

    def query(self, event: int) -> bool:
        """Return whether an event has completed. Raises the error that CUDA reports otherwise."""
        status = self._event_query(event)
        if status == 0:
            return True
        if status == _NOT_READY:
            return False
        raise self._runtime.CUDARuntimeError(status)

    def elapsed(self, start: int, end: int) -> float:
        """Return the seconds between two events (CUDA counts milliseconds)."""
        return float(self._runtime.eventElapsedTime(start, end)) * 1e-3

    def build_graph(
        self, launches: Sequence[Any], waits: Sequence[Sequence[int]], events: Sequence[tuple[int, int]] | None
    ) -> int:
        """Return an executable graph of kernel nodes; see `simengine_scheduler.cuda.graph`."""
        from .graph import build

        return build(launches, waits, events)

    def build_updatable_graph(self, launches: Sequence[Any], waits: Sequence[Sequence[int]]) -> int:
        """Return an executable graph of kernel nodes that `update_graph` may change."""
        from .graph import build_updatable

        graph, self._templates[graph] = build_updatable(launches, waits)
        return graph

    def update_graph(self, graph: int, node: int, launch: Any) -> None:
        """Set the arguments of a kernel node."""
        from .graph import update

        update(graph, self._templates[graph], node, launch)

    def switch_nodes(self, graph: int, on: Sequence[int], off: Sequence[int]) -> None:
        """Enable and disable kernel nodes. A launch that is under way is not changed."""
        function = self._enabling()
        if not function:
            from .graph import switch

            switch(graph, self._templates[graph], on, off)
            return
        handles = self._handles.get(graph)
        if handles is None:
            handles = self._handles[graph] = [int(node) for node in self._templates[graph].nodes]
        nodes = array("q", [handles[node] for node in (*on, *off)])
        status = issuer.switch_nodes(function, graph, nodes, len(on))
        if status:
            raise self.error(status)

    def _enabling(self) -> int:
        """The address of the function that compiled code enables nodes with; 0 where Python must call it."""
        if self._enable is None:
            functions = self.functions()
            try:
                issuer.library()
            except RuntimeError:
                functions = None
            self._enable = 0 if functions is None else functions.enable
        return self._enable

    def destroy_graph(self, graph: int) -> None:
        """Destroy an executable graph."""
        template = self._templates.pop(graph, None)
        self._handles.pop(graph, None)
        if template is None:  # cuda-bindings, by which `destroy` works, may not be there
            self._destroy(self._runtime.graphExecDestroy, graph)
            return
        from .graph import destroy

        self._destroy(lambda handle: destroy(handle, template), graph)

    def is_fault(self, error: BaseException) -> bool:
        """Return whether an error's CUDA status ends the context."""
        return is_cuda_fault(error)

    def functions(self) -> Functions | None:
        """Return functions of the CUDA driver; None where its library is not found, as on other systems than Linux."""
        return _cuda_functions()

    def error(self, status: int) -> Exception:
        """Return CuPy's error for a status."""
        error: Exception = self._runtime.CUDARuntimeError(status)
        return error


class EventPool:
    """Events for reuse, because creating an event costs more than recording it."""

    __slots__ = ("_all", "_driver", "_free", "_timing")

    def __init__(self, driver: Driver, timing: bool = False) -> None:
        self._driver = driver
        self._timing = timing
        self._free: list[int] = []
        self._all: list[int] = []

    def take(self) -> int:
        """Return a free event."""
        if self._free:
            return self._free.pop()
        event = self._driver.create_event(self._timing)
        self._all.append(event)
        return event

    def give(self, event: int) -> None:
        """Return an event to the pool. Its next record does not change waits that were made before."""
        self._free.append(event)

    def give_all(self) -> None:
        """Return every event to the pool."""
        self._free = list(self._all)

    def close(self) -> None:
        """Destroy the events."""
        for event in self._all:
            self._driver.destroy_event(event)
        self._all.clear()
        self._free.clear()
