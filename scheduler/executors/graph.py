"""CUDA graphs: what is ready to be known is built into one graph and launched at once, on a stream of their own.

    emitters --round-robin--> program order until all have ended or await --hazards--> graph --> graph stream

Two rows of the registry. `graph` builds a graph anew for every such run of calls: the baseline of ACS (arXiv
2401.12377), which found that building costs half of the time. `graph-cached` keeps graphs by the calls in them, and for
lists made as `FixedList`s finds its graph without looking at a single call.

Invariants
    1. A node waits for exactly those earlier calls of its graph that conflict with it, but for waits that others imply.
    2. Graphs of a run are launched on one stream, so each comes after the one before. It waits for the home stream
       before the first, and the home stream waits for it after the last.
    3. An awaited call has completed once its graph has; the host polls an event behind the graph.
    4. A graph holds arguments as they were packed. It is built again once a buffer of its calls has moved.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any

from ..calls import Emitter, FixedList, KernelCall
from ..driver import CudaDriver, Driver, EventPool
from ..emission import Feeder
from ..errors import CallError
from ..graphs import chains, dependencies
from ..recorder import Recorder, start_recording
from ..trace import Trace
from .base import Options, finish_run
from .cuda import CudaRun, Lanes, release, wait_for_home


class _Graph:
    """A built graph, and what tells whether it may still be launched."""

    __slots__ = ("calls", "epochs", "handle", "keys", "waits")

    def __init__(self, calls: tuple[KernelCall, ...], waits: list[tuple[int, ...]], handle: int, keys: Any) -> None:
        self.calls = calls
        self.waits = waits
        self.handle = handle
        self.keys = keys  # kept alive, so that no other object takes their identity
        sets = {id(s): s for call in calls if (s := getattr(call.launch, "buffers", None)) is not None}
        self.epochs = [(s, s.epoch) for s in sets.values()]

    def is_current(self) -> bool:
        """Whether no buffer has moved since it was built."""
        return all(buffers.epoch == epoch for buffers, epoch in self.epochs)


class GraphExecutor:
    """Launches runs of calls as CUDA graphs; `cached` says whether graphs are kept."""

    def __init__(self, options: Options, cached: bool) -> None:
        self.name = "graph-cached" if cached else "graph"
        self._options = options
        self._most = options.graphs if cached else 1
        self._cached = cached
        self._conflicts = options.table(self.name).conflicts
        self._driver: Driver = options.driver if options.driver is not None else CudaDriver()
        self._pool = EventPool(self._driver)
        self._done = self._pool.take()
        self._lanes = Lanes(self._driver, 1)
        self._graphs: OrderedDict[tuple[int, ...], _Graph] = OrderedDict()
        self._home = 0
        self._latest: KernelCall | None = None
        self.built = 0
        self._finalizer = weakref.finalize(self, _release, self._pool, self._lanes, self._graphs, self._driver)

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Launch the emitters' calls; on return they are all on the home stream."""
        home = self._home = self._driver.current_stream() if self._options.stream is None else self._options.stream
        trace = Trace(self.name, self._options.record)
        if trace.record == "off" and type(emitters) is list and all(type(e) is FixedList for e in emitters):
            return self._run_lists(emitters, home, trace)
        with CudaRun(self.name, self._driver, self._lanes.handles, self._latest) as run:
            self._lanes.begin(home)
            feeder = run.feeder = Feeder(emitters, lambda seq: False)
            recorder = run.recorder = start_recording(trace, self._driver, home)
            while True:
                first, calls = feeder.latest + 1, list[KernelCall]()
                while (call := feeder.pull()) is not None:
                    calls.append(call)
                    if recorder is not None:
                        recorder.enter(call)
                if calls:
                    run.latest = calls[-1]
                    self._launch_run(tuple(calls), first, recorder)
                if feeder.exhausted:
                    break
                self._wait()
                for seq in list(feeder.waiting):
                    if recorder is not None:
                        recorder.observe(seq, -1)
                    feeder.release(seq)
            self._lanes.join(home)
            if recorder is not None and recorder.times:
                self._driver.synchronize(home)
            self._latest = run.latest
            return finish_run(trace, feeder, recorder)

    def _run_lists(self, lists: Sequence[FixedList], home: int, trace: Trace) -> Trace:
        key = tuple(map(id, lists))
        graph = self._graphs.get(key)
        if graph is None or not self._cached or not graph.is_current():
            graph = self._build(key, tuple(iter(Feeder(lists, lambda seq: True).pull, None)), lists)
        else:
            self._graphs.move_to_end(key)
        if graph.calls:
            with CudaRun(self.name, self._driver, self._lanes.handles, self._latest) as run:
                self._lanes.begin(home)
                run.latest = graph.calls[-1]
                self._driver.launch_graph(graph.handle, self._lanes.use(0))
                self._lanes.join(home)
                self._latest = run.latest
        trace.counters.calls = len(graph.calls)
        return trace

    def _launch_run(self, calls: tuple[KernelCall, ...], first: int, recorder: Recorder | None) -> None:
        """Launch calls that are numbered from `first`, recorded with times in a graph of its own."""
        if recorder is not None and recorder.times:
            self._launch_timed(calls, first, recorder)
            return
        key = tuple(map(id, calls))
        graph = self._graphs.get(key)
        if graph is None or not self._cached or not graph.is_current():
            graph = self._build(key, calls, calls)
        else:
            self._graphs.move_to_end(key)
        if recorder is not None:
            recorder.graph(first, graph.waits, chains(graph.waits))
        self._driver.launch_graph(graph.handle, self._lanes.use(0))

    def _build(self, key: tuple[int, ...], calls: tuple[KernelCall, ...], keys: Any) -> _Graph:
        """Build the graph of a run of calls and keep it, instead of the one that was not used for longest."""
        old = self._graphs.pop(key, None)
        if old is not None:
            self._drop(old.handle)
        graph = self._make(calls, keys)
        self._graphs[key] = graph
        while len(self._graphs) > self._most:
            _, dropped = self._graphs.popitem(last=False)
            self._drop(dropped.handle)
        return graph

    def _make(self, calls: tuple[KernelCall, ...], keys: Any) -> _Graph:
        waits = dependencies(calls, self._conflicts)
        return _Graph(calls, waits, self._instantiate(calls, waits, None), keys)

    def _drop(self, handle: int) -> None:
        self._driver.destroy_graph(handle)

    def _instantiate(self, calls: Sequence[KernelCall], waits: Any, events: list[tuple[int, int]] | None) -> int:
        self.built += 1
        try:
            return self._driver.build_graph([call.launch for call in calls], waits, events)
        except Exception as error:
            raise CallError(
                f"executor {self.name!r} could not build a graph of {len(calls)} calls that ends with "
                f"{calls[-1].name!r}: {type(error).__name__}: {error}",
                calls[-1],
                error,
            ) from error

    def _launch_timed(self, calls: tuple[KernelCall, ...], first: int, recorder: Recorder) -> None:
        began = perf_counter()
        waits = dependencies(calls, self._conflicts)
        recorder.trace.counters.check_seconds += perf_counter() - began
        events = recorder.graph_events(first, len(calls))
        handle = self._instantiate(calls, waits, events)
        recorder.graph(first, waits, chains(waits))
        self._driver.launch_graph(handle, self._lanes.use(0))
        self._driver.synchronize(self._lanes.handles[0])
        self._driver.destroy_graph(handle)

    def _wait(self) -> None:
        self._driver.record(self._done, self._lanes.use(0))
        while not self._driver.query(self._done):
            pass

    def synchronize(self) -> None:
        """Block the host until the home stream of the last run is empty."""
        wait_for_home(self.name, self._driver, self._home, self._latest)

    def close(self) -> None:
        """Destroy graphs and events, once their work is done."""
        self._finalizer()


def _release(pool: EventPool, lanes: Lanes, graphs: OrderedDict[tuple[int, ...], _Graph], driver: Driver) -> None:
    release(pool, lanes)
    for graph in graphs.values():
        driver.destroy_graph(graph.handle)
    graphs.clear()
