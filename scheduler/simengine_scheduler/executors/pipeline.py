"""The pipeline executor: several batches in flight, after SET (arXiv 2606.05495).

    emitters --pull--> program order --cut--> jobs --deal--> queue of worker 0 --take-->  stream 0   job | job
                                                             queue of worker 1            stream 1   job | job
                                                                  ...      \\--steal-->   stream W-1 job
                                                                                             |
    emitters that await  <--release--  jobs seen complete  <--poll--  events behind the jobs-+--join--> home stream

A job is what one emitter emits between two of its waits, or a call whose launch is a `JobKind.job`: then its working
memory is the worker's, and its arguments are put in place of the job's before. Jobs that come again are launched as
graphs, made once; those that do not are issued call by call.

In traces a worker's stream has the worker's number w, and chain r of a graph on it the number w + r W.

Invariants
    1. A worker is a stream. Its jobs run one after another; at most `depth` of them are in flight, so that the next one
       starts on the device without the host.
    2. A job is launched once the jobs that it must come after are launched. Its stream waits for their events, where
       `StreamClocks` finds that it is not behind them already. Jobs cannot wait for each other; see
       `simengine_scheduler/jobs/cutting.py`.
    3. A worker with nothing in flight steals a job whose predecessors are complete.
    4. Working memory of a worker, and the graphs on it, are used by its stream alone.
    5. The host watches until every job is launched; then streams finish by themselves.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from ..core.calls import Emitter, FixedList, KernelCall
from ..core.emission import Feeder
from ..core.hazards import HazardTracker
from ..cuda.driver import CudaDriver, Driver, EventPool
from ..jobs.cutting import Job, JobCutter
from ..tracing.trace import Trace
from .base import Executor, Options, finish_run
from .cuda import Lanes, wait_for
from .pipeline_flow import Flow, Resources
from .pipeline_launch import JobLauncher

_BACKLOG = 8  # jobs a worker that are pulled before they can be launched
_LIVE = 8192  # calls pulled and not complete, beyond which none is pulled


class _Emitted(Flow):
    """A flow of jobs that are cut from emitters as it goes."""

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
        """Cut what emitters have into jobs, until they wait or there is enough."""
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
    """The jobs of fixed lists: for each those that it comes after, in its own and in the former round of the lists."""

    def __init__(self, lists: Sequence[FixedList], executor: PipelineExecutor) -> None:
        self.lists = tuple(lists)  # kept alive, so that no other lists take their identity
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
        # A job that touches what another one touched in the former round, or in one before, comes after that of the
        # former round: each comes after itself.
        tracker, count = HazardTracker(conflicts), len(self.jobs)
        upstream = [tracker.add(number, job.as_call()) for number, job in enumerate([*self.jobs, *self.jobs])]
        self.former = [{i, *(other for other in upstream[count + i] if other < count)} for i in range(count)]

    def repeated(self, times: int) -> Iterator[Job]:
        """Yield the jobs of so many rounds, in order."""
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
    """Runs jobs on worker streams with queues of their own, which take from each other."""

    name = "pipeline"

    def __init__(self, options: Options) -> None:
        self.options = options
        self.tracker = HazardTracker(options.table(self.name).conflicts)
        self.following = 0  # sequence number of the next call
        driver: Driver = options.driver if options.driver is not None else CudaDriver()
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
        """Run the emitters' calls; on return the home stream waits for all of them."""
        if type(emitters) is list and all(type(e) is FixedList for e in emitters):
            return self.repeat(emitters, 1)
        home, trace = self._begin()
        with _Emitted(self, trace, home, emitters) as flow:
            return flow.run()

    def repeat(self, lists: Sequence[FixedList], times: int) -> Trace:
        """Run fixed lists so many times. Rounds are ordered by hazards alone: a list goes on to its next round at once.

        The trace is of all rounds, or of the last one where it is recorded. Raises ValueError for less than one round.
        """
        if times < 1:
            raise ValueError(f"repeat() was asked for {times} rounds; ask for at least 1")
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
        """Destroy streams, events and graphs, once their work is done, and let scripts go."""
        self._finalizer()
        self._scripts.clear()
