"""The pipeline executor: several batches in flight, after SET (arXiv 2606.05495).

    emitters --pull--> program order --cut--> jobs --deal--> queue of worker 0 --take-->  stream 0   job | job
                                                             queue of worker 1            stream 1   job | job
                                                                  ...      \\--steal-->   stream W-1 job
                                                                                             |
    emitters that await  <--release--  jobs seen complete  <--poll--  events behind the jobs-+--join--> home stream

A job is what one emitter yields between two of its awaits, or one call whose launch is a `JobKind.job`. In the second
case each worker has working memory for the job, and the arguments of a job replace those of the job before. Jobs that
come again are launched as graphs, which are built once. Other jobs are issued call by call.

In traces the stream of worker w has number w, and row r of a graph on it has number w + r W.

Invariants
    1. A worker is a stream. Its jobs run one after another. Up to `depth` of them are in flight, so that the next job
       starts on the device without the host.
    2. A job is launched once the jobs that it must come after are launched. Its stream waits for their events, unless
       `StreamClocks` finds that other waits imply this. Jobs cannot wait for each other in a circle; see
       `simengine_scheduler/jobs/cutting.py`.
    3. A worker with nothing in flight steals a job whose predecessors are complete.
    4. Only the stream of a worker uses its working memory and the graphs on it.
    5. The host polls until every job is launched. Then streams finish by themselves.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from ..core.calls import Emitter, FixedList, KernelCall, are_fixed
from ..core.emission import Feeder
from ..core.hazards import HazardTracker
from ..cuda.driver import Driver, EventPool
from ..jobs.cutting import Job, JobCutter
from ..tracing.trace import Trace
from .base import Executor, Options, finish_run
from .cuda import Lanes, driver_for, wait_for
from .pipeline_flow import Flow, Resources
from .pipeline_launch import JobLauncher

_BACKLOG = 8  # jobs per worker that may wait to be launched before the host stops pulling calls
_LIVE = 8192  # the host pulls no call while so many are not complete


class _Emitted(Flow):
    """A flow of jobs that are cut from what emitters yield."""

    def __init__(self, executor: PipelineExecutor, trace: Trace, home: int, emitters: Iterable[Emitter]) -> None:
        super().__init__(executor.resources, trace, home, executor.following)
        self._executor = executor
        executor.tracker.clear()
        self.cutter = JobCutter(executor.tracker, len(self.workers))
        self.feeder = self._feeder = Feeder(emitters, self._is_complete, executor.following)

    def _is_complete(self, seq: int) -> bool:
        if seq not in self.cutter.job_of:
            return True
        self.cutter.split_after(seq)
        return False

    def pull(self) -> None:
        """Pull calls and cut them into jobs, until all emitters wait or enough jobs wait to be launched."""
        feeder, cutter, recorder = self._feeder, self.cutter, self.recorder
        enough = _BACKLOG * len(self.workers)
        while self.queues.waiting + len(cutter.closed) < enough and len(cutter.job_of) < _LIVE:
            call = feeder.pull()
            if call is None:
                break
            if recorder is not None:
                recorder.enter(call)
            self._executor.following = feeder.latest + 1
            cutter.add(feeder.latest, call, feeder.emitter)
        cutter.close_all()
        for job in cutter.take_closed():
            self.put(job)

    def run(self) -> Trace:
        """Run until every emitter has ended and every job is launched."""
        while True:
            self.pull()
            self.dispatch()
            if not self.queues.waiting and self._feeder.exhausted:
                break
            for job in self.poll():
                self.cutter.complete(job)
                for seq in list(self._feeder.waiting):
                    if seq in job.calls:
                        self._feeder.release(seq)
        self.finish()
        return finish_run(self.trace, self._feeder, self.recorder)


class _Script:
    """The jobs of fixed lists, and for each the jobs that it comes after, in its own round and in the round before."""

    def __init__(self, lists: Sequence[FixedList], executor: PipelineExecutor) -> None:
        self.lists = tuple(lists)  # kept alive, so that no other lists get their id()
        conflicts = executor.options.table(executor.name).conflicts
        cutter = JobCutter(HazardTracker(conflicts), executor.options.streams)
        feeder = Feeder(lists, lambda seq: True)
        self.calls: list[KernelCall] = []  # in program order
        while (call := feeder.pull()) is not None:
            self.calls.append(call)
            cutter.add(feeder.latest, call, feeder.emitter)
        cutter.close_all()
        self.jobs = cutter.take_closed()
        for job in self.jobs:
            executor.resources.launcher.prepare(job)
        place = {job.number: position for position, job in enumerate(self.jobs)}
        self.within = [[place[other] for other in job.before] for job in self.jobs]
        # A job comes after itself in the round before. So it also comes after what it conflicts with in earlier rounds.
        tracker, count = HazardTracker(conflicts), len(self.jobs)
        upstream = [tracker.add(number, job.as_call()) for number, job in enumerate([*self.jobs, *self.jobs])]
        self.former = [{i, *(other for other in upstream[count + i] if other < count)} for i in range(count)]

    def repeated(self, times: int) -> Iterator[Job]:
        """Yield the jobs of a number of rounds, in order."""
        count = len(self.jobs)
        for number in range(times):
            for position, pattern in enumerate(self.jobs):
                job = Job(number * count + position, pattern.emitter, pattern.home)
                job.calls, job.fixed = pattern.calls, pattern.fixed
                job.before = {number * count + other for other in self.within[position]}
                if number:
                    job.before |= {(number - 1) * count + other for other in self.former[position]}
                yield job


class PipelineExecutor(Executor):
    """Runs jobs on worker streams. Each worker has a queue of jobs and steals from the others."""

    name = "pipeline"

    def __init__(self, options: Options) -> None:
        self.options = options
        self.tracker = HazardTracker(options.table(self.name).conflicts)
        self.following = 0  # sequence number of the next call
        driver: Driver = driver_for(options)
        lanes, pool = Lanes(driver, options.streams), EventPool(driver)
        launcher = JobLauncher(self.name, options, driver)
        self.resources = Resources(driver, lanes, pool, launcher, options.streams, options.depth)
        self._scripts: OrderedDict[tuple[int, ...], _Script] = OrderedDict()
        self._home = 0
        self._finalizer = weakref.finalize(self, self.resources.close)

    @property
    def built(self) -> int:
        """How many graphs were built."""
        return self.resources.launcher.built

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Run the emitters' calls. On return the home stream waits for all of them."""
        if type(emitters) is list and are_fixed(emitters):
            return self.repeat(emitters, 1)
        home, trace = self._begin()
        with _Emitted(self, trace, home, emitters) as flow:
            return flow.run()

    def repeat(self, lists: Sequence[FixedList], times: int) -> Trace:
        """Run fixed lists `times` times. Only hazards order the rounds: a list begins its next round at once.

        Returns the trace of all rounds, or of the last one where runs are recorded. Raises ValueError for less than one
        round.
        """
        if times < 1:
            raise ValueError(f"repeat() of executor 'pipeline' got times={times}; give at least 1")
        if self.options.record == "off":
            return self._rounds(lists, times)
        return [self._rounds(lists, 1) for _ in range(times)][-1]

    def _rounds(self, lists: Sequence[FixedList], times: int) -> Trace:
        home, trace = self._begin()
        script = self._script(lists)
        with Flow(self.resources, trace, home) as flow:
            if flow.recorder is not None:
                for call in script.calls:
                    flow.recorder.enter(call)
            rest = script.repeated(times)
            while True:
                while flow.queues.waiting < _BACKLOG * self.options.streams and (job := next(rest, None)) is not None:
                    flow.put(job)
                flow.dispatch()
                if not flow.queues.waiting:
                    break
                flow.poll()
            flow.finish()
            trace.counters.calls = times * len(script.calls)
            if flow.recorder is not None:
                flow.recorder.finish()
        return trace

    def _begin(self) -> tuple[int, Trace]:
        self._home = self.resources.driver.current_stream() if self.options.stream is None else self.options.stream
        return self._home, Trace(self.name, self.options.record)

    def _script(self, lists: Sequence[FixedList]) -> _Script:
        key = tuple(map(id, lists))
        script = self._scripts.get(key)
        if script is None:
            script = self._scripts[key] = _Script(lists, self)
            if len(self._scripts) > self.options.graphs:
                self.resources.launcher.forget(self._scripts.popitem(last=False)[1].jobs)
        self._scripts.move_to_end(key)
        return script

    def synchronize(self) -> None:
        """Block the host until the home stream of the last run is empty, and with it every call of the run."""
        wait_for(self._home, self.name, self.resources.driver)

    def close(self) -> None:
        """Destroy streams, events and graphs, once their work is done, and forget scripts."""
        self._finalizer()
        self._scripts.clear()
