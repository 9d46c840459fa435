"""The graph executors: the calls that emitters yield before they wait become one CUDA graph, on a stream of its own.

    emitters --round-robin--> program order until all have ended or await --hazards--> graph --> graph stream

The registry has two of them. `graph` builds a graph for every run of calls. It is the baseline of ACS (arXiv
2401.12377), whose authors found that building takes half of the time. `graph-cached` stores graphs: those of
`FixedList`s that do not wait for each other list by list (`list_graphs.py`), so that any of them may run without the
others, and all other graphs by the calls in them.

Invariants
    1. A node waits for the earlier calls of its graph that conflict with it, without waits that others imply. A planner
       decides the order in which nodes are made and which of them form a chain. It adds no waits.
    2. Graphs of a run are launched on one stream, so each comes after the one before. Graphs of lists that do not wait
       for each other take streams in turn, and one alone takes the home stream. The streams wait for the home stream
       before their first graph, and the home stream waits for them after the last.
    3. An awaited call has completed once its graph has. The host polls an event behind the graph.
    4. A graph holds arguments as they were packed. It is built again once a buffer of its calls has moved. In a graph
       of lists, the nodes of that list get other arguments.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from ..core.calls import Emitter, FixedList, KernelCall, are_fixed
from ..core.emission import Feeder
from ..cuda.driver import Driver, EventPool
from ..tracing.trace import Trace
from .base import Executor, Options, finish_run
from .built_graphs import BuiltGraph, GraphBuilder, GraphStore
from .cuda import CudaRun, Lanes, driver_for, release, wait_for
from .list_graphs import ListGraphs
from .list_places import ListRun
from .measured import FirstRuns
from .recorder import Recorder, start_recording


class GraphExecutor(Executor):
    """Launches runs of calls as CUDA graphs. `cached` says whether graphs are stored."""

    def __init__(self, options: Options, cached: bool) -> None:
        self.name = "graph-cached" if cached else "graph"
        self._options = options
        self._cached = cached
        self._conflicts = options.table(self.name).conflicts
        self._driver: Driver = driver_for(options)
        self._builder = GraphBuilder(self.name, options, self._driver)
        self._first = FirstRuns(self.name, options, self._builder.profile)
        self._store = GraphStore(options.graphs if cached else 1)
        self._pool = EventPool(self._driver)
        self._done = self._pool.take()
        self._of_lists = self._graphs_of_lists()
        self._lanes = Lanes(self._driver, 1 if self._of_lists is None else options.streams)
        self._home = 0
        self._finalizer = weakref.finalize(
            self, _release, self._pool, self._lanes, self._store, self._of_lists, self._driver
        )

    def _graphs_of_lists(self) -> ListGraphs | None:
        """Return a store of graphs by list, if graphs are stored so."""
        options = self._options
        if not self._cached or options.graph_of == "run":
            return None
        return ListGraphs(self._builder, self._driver, self._conflicts, options.graphs, options.together)

    @property
    def built(self) -> int:
        """How many graphs were built."""
        return self._builder.built

    @property
    def rounds(self) -> int:
        """How many rounds of fixed lists run best as one list, because the device is idle between graphs.

        It is 1 where runs are recorded, so that each round has a trace.
        """
        return 8 if self._cached and self._options.record == "off" else 1

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Launch the emitters' calls. On return the home stream waits for all of them."""
        home = self._home = self._driver.current_stream() if self._options.stream is None else self._options.stream
        if (timed := self._first.run(emitters)) is not None:
            return timed
        trace = Trace(self.name, self._options.record)
        if trace.record == "off" and type(emitters) is list and are_fixed(emitters):
            return self._run_lists(emitters, home, trace)
        with CudaRun(self.name, self._driver, self._lanes.handles) as run:
            self._lanes.begin(home)
            feeder = run.feeder = Feeder(emitters, lambda seq: False)
            recorder = run.recorder = start_recording(trace, self._driver, home)
            sinks: list[int] = []  # calls of the latest graph that none of its other calls waits for
            while True:
                first, calls = feeder.latest + 1, list[KernelCall]()
                while (call := feeder.pull()) is not None:
                    calls.append(call)
                    if recorder is not None:
                        recorder.enter(call)
                if calls:
                    run.latest = calls[-1]
                    sinks = self._launch_run(tuple(calls), first, sinks, recorder, trace)
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
            return finish_run(trace, feeder, recorder)

    def _run_lists(self, lists: Sequence[FixedList], home: int, trace: Trace) -> Trace:
        key = tuple(map(id, lists))
        graph = self._find(key)
        if graph is None and self._of_lists is not None:
            prepared = self._of_lists.prepare(lists)
            if prepared is not None:
                return self._launch_lists(self._of_lists, prepared, home, trace)
        if graph is None:
            graph = self._build(key, tuple(iter(Feeder(lists, lambda seq: True).pull, None)), tuple(lists))
        if graph.calls:
            with CudaRun(self.name, self._driver, self._lanes.handles) as run:
                run.latest = graph.calls[-1]
                self._lanes.begin(home)
                self._launch(graph.handle)
                self._lanes.join(home)
        trace.counters.calls = len(graph.calls)
        trace.counters.add_waits(graph.shape.asked, graph.shape.edges)
        return trace

    def _launch_lists(self, of_lists: ListGraphs, lists: ListRun, home: int, trace: Trace) -> Trace:
        """Launch graphs of lists that do not wait for each other: one alone on the home stream, or each on the next."""
        lanes, alone = self._lanes, len(lists.graphs) == 1
        with CudaRun(self.name, self._driver, lanes.handles) as run:
            if not alone:
                lanes.begin(home)
            for number, graph in enumerate(lists.graphs):
                run.latest = graph.built.calls[-1]
                of_lists.switch(graph)
                stream = home if alone else lanes.use(number % len(lanes.handles))
                self._driver.launch_graph(graph.built.handle, stream)
            if not alone:
                lanes.join(home)
        trace.counters.calls = lists.total.calls
        trace.counters.add_waits(lists.total.asked, lists.total.edges)
        return trace

    def _find(self, key: tuple[int, ...]) -> BuiltGraph | None:
        return self._store.find(key) if self._cached else None

    def _build(self, key: tuple[int, ...], calls: tuple[KernelCall, ...], keys: Any) -> BuiltGraph:
        """Build the graph of a run of calls and store it."""
        return self._store.add(key, lambda: self._make(calls, keys), self._drop)

    def _make(self, calls: tuple[KernelCall, ...], keys: Any) -> BuiltGraph:
        return self._builder.make(calls, keys)

    def _drop(self, handle: int) -> None:
        self._driver.destroy_graph(handle)

    def _launch_run(
        self, calls: tuple[KernelCall, ...], first: int, behind: list[int], recorder: Recorder | None, trace: Trace
    ) -> list[int]:
        """Launch a run of calls as a graph. Returns the calls that no others of the run wait for, if runs are recorded.

        Args:
            calls: the run.
            first: the number of its first call.
            behind: calls of the graph before that no others of it wait for.
            recorder: fills the trace. Where it records times, the graph has events and is launched once.
            trace: counts waits.
        """
        timed = recorder is not None and recorder.times
        key = tuple(map(id, calls))
        graph = None if timed else self._find(key) or self._build(key, calls, calls)
        shape = graph.shape if graph is not None else self._builder.shape(calls, recorder)
        seqs = range(first, first + len(calls))
        events = recorder.graph_events(seqs) if recorder is not None and timed else None
        handle = graph.handle if graph is not None else self._builder.instantiate(calls, shape, events)
        if recorder is not None:
            recorder.graph([seqs[i] for i in shape.order], behind, seqs, shape.waits, shape.rows)
        trace.counters.add_waits(shape.asked, shape.edges)
        self._launch(handle)
        if graph is None:
            self._driver.synchronize(self._lanes.handles[0])
            self._driver.destroy_graph(handle)
        return [] if recorder is None else [seqs[i] for i in shape.sinks()]

    def _launch(self, handle: int) -> None:
        self._driver.launch_graph(handle, self._lanes.use(0))

    def _wait(self) -> None:
        self._driver.record(self._done, self._lanes.use(0))
        while not self._driver.query(self._done):
            pass

    def synchronize(self) -> None:
        """Block the host until the home stream of the last run is empty."""
        wait_for(self._home, self.name, self._driver)

    def close(self) -> None:
        """Destroy graphs and events, once their work is done."""
        self._finalizer()


def _release(pool: EventPool, lanes: Lanes, store: GraphStore, of_lists: ListGraphs | None, driver: Driver) -> None:
    release(pool, lanes)
    store.close(driver)
    if of_lists is not None:
        of_lists.close()
