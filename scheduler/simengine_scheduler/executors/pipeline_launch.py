"""How executor `pipeline` launches jobs: as graphs if they come again, else call by call.

Each worker that has run a `JobLaunch` stores a graph for jobs of that kind. The nodes of the graph hold addresses of
the worker's own memory. Nodes that take the arguments of the job are updated before each launch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from ..core.calls import KernelCall
from ..core.errors import CallError, call_failed
from ..cuda.driver import Driver, EventPool
from ..jobs.cutting import Job
from ..jobs.kinds import Instance, JobKind, JobLaunch
from ..tracing.trace import Trace
from .base import Options
from .built_graphs import BuiltGraph, GraphBuilder, GraphStore
from .cuda import CudaRun, Lanes, issue_call
from .recorder import Recorder


class JobRun(CudaRun):
    """The scope of one run of jobs, as a launcher needs it."""

    def __init__(self, executor: str, driver: Driver, lanes: Lanes, pool: EventPool, trace: Trace, home: int) -> None:
        super().__init__(executor, driver, lanes.handles)
        self.lanes = lanes
        self.pool = pool
        self.trace = trace
        self.home = home

    def fork_again(self, handle: int) -> None:
        """Let the stream of a worker wait for what the home stream holds at this moment."""
        event = self.pool.take()
        self.driver.record(event, self.home)
        self.driver.wait(handle, event)
        self.pool.give(event)


class _Fixed:
    """The calls of a job that comes again, and their graph once it has been launched."""

    __slots__ = ("calls", "graph")

    def __init__(self, calls: tuple[KernelCall, ...]) -> None:
        self.calls = calls
        self.graph: BuiltGraph | None = None


class _Ready:
    """A kind of job on one worker: its instance, and a graph if it has more than one call."""

    __slots__ = ("graph", "instance", "takers", "version")

    def __init__(self, instance: Instance, graph: BuiltGraph | None) -> None:
        self.instance = instance
        self.graph = graph
        self.version = instance.arguments.version  # version of the arguments that the graph holds
        self.takers: list[tuple[int, KernelCall]] = []
        if graph is not None:
            arguments = instance.arguments
            graph.epochs = [(s, epoch) for s, epoch in graph.epochs if s is not arguments.buffers]
            self.takers = [
                (node, graph.calls[seq])
                for node, seq in enumerate(graph.shape.order)
                if any(map(arguments.holds, graph.calls[seq].launch.arguments))  # type: ignore[attr-defined]
            ]

    def serves(self, instance: Instance) -> bool:
        """Whether it belongs to an instance, and no memory has moved but that of the arguments."""
        return self.instance is instance and (self.graph is None or self.graph.is_current())


class JobLauncher:
    """Launches jobs on streams, and stores their graphs."""

    def __init__(self, executor: str, options: Options, driver: Driver) -> None:
        self.executor = executor
        self._driver = driver
        self._workers = options.streams
        self._most = options.graphs
        self._builder = GraphBuilder(executor, options, driver)
        self._graphs = GraphStore(options.graphs)
        self._seen: OrderedDict[tuple[int, ...], tuple[KernelCall, ...]] = OrderedDict()
        self._ready: OrderedDict[tuple[JobKind, int], _Ready] = OrderedDict()
        self._fixed: set[_Fixed] = set()
        self._timed: list[int] = []  # graphs with events, each of which is launched once

    @property
    def built(self) -> int:
        """How many graphs were built."""
        return self._builder.built

    def launch(self, run: JobRun, job: Job, worker: int, handle: int, behind: Sequence[int]) -> list[int]:
        """Launch a job on the stream of a worker.

        Args:
            run: the run that the job belongs to.
            job: what to launch.
            worker: its number.
            handle: its stream.
            behind: calls that all of the job comes after.

        Returns:
            The calls of the job that no others of it wait for, if runs are recorded.
        """
        if job.fixed is not None:
            run.latest = job.fixed.calls[-1]
            graph = self._graph_for(job.fixed)
        else:
            calls = tuple(job.calls.values())
            run.latest = calls[-1]
            if isinstance(calls[0].launch, JobLaunch):
                return self._launch_whole(run, *next(iter(job.calls.items())), calls[0].launch, worker, handle, behind)
            found = self._graph_of(calls)
            if found is None:
                return self._issue(run, job, worker, handle, behind)
            graph = found
        sinks, launched = list[int](), graph.handle
        if run.recorder is not None:
            sinks, launched = self._record(run.recorder, job, graph, worker, behind)
        self._driver.launch_graph(launched, handle)
        run.trace.counters.launches += 1
        run.trace.counters.add_waits(graph.shape.asked, graph.shape.edges)
        return sinks

    def _record(
        self, recorder: Recorder, job: Job, graph: BuiltGraph, worker: int, behind: Sequence[int]
    ) -> tuple[list[int], int]:
        """Record the launch of a graph. Returns its last calls, and the graph to launch, which may have events."""
        shape, seqs, launched = graph.shape, list(job.calls), graph.handle
        if recorder.times:
            launched = self._builder.instantiate(graph.calls, shape, recorder.graph_events(seqs))
            self._timed.append(launched)
        rows = [worker + self._workers * row for row in shape.rows]
        recorder.graph([seqs[i] for i in shape.order], behind, seqs, shape.waits, rows)
        return [seqs[i] for i in shape.sinks()], launched

    def prepare(self, job: Job) -> None:
        """Note that a job comes again: it gets a graph of its own if it has more than one call."""
        calls = tuple(job.calls.values())
        if len(calls) > 1:
            job.fixed = _Fixed(calls)
            self._fixed.add(job.fixed)

    def forget(self, jobs: Iterable[Job]) -> None:
        """Destroy what `prepare` has led to."""
        for job in jobs:
            if job.fixed is not None:
                self._fixed.discard(job.fixed)
                self._drop(job.fixed.graph)

    def _graph_for(self, fixed: _Fixed) -> BuiltGraph:
        graph = fixed.graph
        if graph is None or not graph.is_current():
            self._drop(graph)
            fixed.graph = None
            graph = fixed.graph = self._builder.make(fixed.calls, ())
        return graph

    def _graph_of(self, calls: tuple[KernelCall, ...]) -> BuiltGraph | None:
        """Return the graph of calls that have come before, or None for calls that are new."""
        if len(calls) == 1:
            return None
        key = tuple(map(id, calls))
        graph = self._graphs.find(key)
        if graph is not None:
            return graph
        if key in self._seen:
            return self._graphs.add(key, lambda: self._builder.make(calls, calls), self._driver.destroy_graph)
        self._seen[key] = calls
        if len(self._seen) > 4 * self._most:
            self._seen.popitem(last=False)
        return None

    def _issue(self, run: JobRun, job: Job, worker: int, handle: int, behind: Sequence[int]) -> list[int]:
        self._record_waits(run, worker, behind)
        seq = -1
        for seq, call in job.calls.items():
            run.latest = call
            issue_call(run, call, seq, handle, worker)
        run.trace.counters.launches += len(job.calls)
        return [seq]

    def _launch_whole(
        self,
        run: JobRun,
        seq: int,
        call: KernelCall,
        launch: JobLaunch,
        worker: int,
        handle: int,
        behind: Sequence[int],
    ) -> list[int]:
        """Launch a `JobLaunch` on the memory of the worker."""
        self._record_waits(run, worker, behind)
        try:
            ready = self._ready_for(run, launch, handle)
        except CallError:
            raise
        except Exception as error:
            raise call_failed(call, self.executor, error) from error
        if ready.graph is None:
            issue_call(run, call, seq, handle, worker)
        else:
            recorder = run.recorder
            if recorder is not None:
                recorder.issue(seq, worker)
                recorder.before_launch(seq, handle)
            self._driver.launch_graph(ready.graph.handle, handle)
            if recorder is not None:
                recorder.after_launch(seq, handle)
        run.trace.counters.launches += 1
        return [seq]

    def _ready_for(self, run: JobRun, launch: JobLaunch, handle: int) -> _Ready:
        """Return what runs a kind of job on a stream, with the arguments of this job."""
        key = launch.kind, handle
        instance = launch.kind.instance(handle, launch.values)
        ready = self._ready.get(key)
        if ready is None or not ready.serves(instance):
            run.fork_again(handle)  # the home stream may still use memory that was allocated meanwhile
            if (old := self._ready.pop(key, None)) is not None:
                self._drop(old.graph)
            ready = self._ready[key] = _Ready(instance, self._build(instance))
            if len(self._ready) > self._most * self._workers:
                self._drop(self._ready.popitem(last=False)[1].graph)
        self._ready.move_to_end(key)
        if ready.version != instance.arguments.version:
            ready.version = instance.arguments.version
            for node, taker in ready.takers:
                self._driver.update_graph(ready.graph.handle, node, taker.launch)  # type: ignore[union-attr]
        return ready

    def _build(self, instance: Instance) -> BuiltGraph | None:
        calls = tuple(instance.calls)
        return None if len(calls) == 1 else self._builder.make(calls, calls, updatable=True)

    def _record_waits(self, run: JobRun, worker: int, behind: Sequence[int]) -> None:
        if run.recorder is not None:
            for other in behind:
                run.recorder.wait(other, worker)

    def _drop(self, graph: BuiltGraph | None) -> None:
        if graph is not None:
            self._driver.destroy_graph(graph.handle)

    def drop_timed(self) -> None:
        """Destroy the graphs with events."""
        for graph in self._timed:
            self._driver.destroy_graph(graph)
        self._timed.clear()

    def close(self) -> None:
        """Destroy the graphs."""
        self.drop_timed()
        for (kind, handle), ready in self._ready.items():
            self._drop(ready.graph)
            kind.release(handle)
        self._ready.clear()
        for fixed in self._fixed:
            self._drop(fixed.graph)
        self._fixed.clear()
        self._graphs.close(self._driver)
