"""One run of executor `pipeline`: its jobs move from queues to streams, until the host has seen them complete."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from ..cuda.driver import Driver, EventPool
from ..jobs.cutting import Job
from ..jobs.queues import JobQueues
from ..planning.clocks import StreamClocks
from ..tracing.trace import Trace
from .cuda import Lanes
from .pipeline_launch import JobLauncher, JobRun
from .recorder import start_recording


@dataclass(frozen=True, slots=True)
class Resources:
    """What the executor holds for all of its runs.

    Attributes:
        driver: CUDA, or what replaces it.
        lanes: the stream of each worker.
        pool: events.
        launcher: puts jobs on streams.
        streams: how many workers there are.
        depth: jobs in flight on a stream at most.
    """

    driver: Driver
    lanes: Lanes
    pool: EventPool
    launcher: JobLauncher
    streams: int
    depth: int

    def close(self) -> None:
        """Destroy streams, events and graphs."""
        self.pool.close()
        self.lanes.close()
        self.launcher.close()


class Flow(JobRun):
    """The jobs of one run, from their queues to their end."""

    def __init__(self, resources: Resources, trace: Trace, home: int, first: int = 0) -> None:
        super().__init__(resources.launcher.executor, resources.driver, resources.lanes, resources.pool, trace, home)
        self.pool.give_all()
        self.launcher = resources.launcher
        self.workers = range(resources.streams)
        self.queues = JobQueues(resources.streams, resources.depth)
        self.clocks = StreamClocks(resources.streams)
        self.jobs: dict[int, Job] = {}  # jobs in queues and in flight
        self.sinks: dict[int, list[int]] = {}  # job in flight -> its calls that no others of it wait for
        self.latest_sinks: list[list[int]] = [[] for _ in self.workers]  # the same, of the latest job of each worker
        self.first = first

    def start(self) -> None:
        """Let the run come after what the home stream holds."""
        self.recorder = start_recording(self.trace, self.driver, self.home, self.first)
        self.lanes.begin(self.home)

    def put(self, job: Job) -> None:
        """Put a job into the queue of its home worker."""
        self.jobs[job.number] = job
        self.queues.put(job.number, job.home, job.before)

    def dispatch(self) -> None:
        """Launch jobs from the workers' own queues, then jobs that idle workers can steal."""
        queues = self.queues
        for worker in self.workers:
            while queues.waiting and (number := queues.take(worker)) is not None:
                self.launch(self.jobs[number], worker)
        for worker in self.workers:
            if queues.waiting and (number := queues.steal(worker)) is not None:
                self.trace.counters.stolen += self.jobs[number].home != worker
                self.launch(self.jobs[number], worker)

    def launch(self, job: Job, worker: int) -> None:
        """Launch a job on the stream of a worker, behind the jobs that it must come after."""
        began = perf_counter()
        handle, places = self.lanes.use(worker), self.clocks.places
        waits = self.clocks.waits([other for other in job.before if other in places], worker)
        for other in waits:
            self.driver.wait(handle, places[other].event)
        behind: list[int] = []
        if self.recorder is not None:
            behind = [*self.latest_sinks[worker], *(seq for other in waits for seq in self.sinks[other])]
        sinks = self.launcher.launch(self, job, worker, handle, behind)
        event = self.pool.take()
        self.driver.record(event, handle)
        self.clocks.put(job.number, worker, event)
        self.sinks[job.number] = self.latest_sinks[worker] = sinks
        counters = self.trace.counters
        counters.jobs += 1
        counters.job_seconds += perf_counter() - began

    def poll(self) -> list[Job]:
        """Query the oldest job of each worker once. Returns the jobs that have completed."""
        done = []
        for worker, flying in enumerate(self.queues.flying):
            if flying and self.driver.query(self.clocks.places[flying[0]].event):
                number = self.queues.complete(worker)
                self.pool.give(self.clocks.places.pop(number).event)
                if self.recorder is not None:
                    for seq in self.sinks[number]:
                        self.recorder.observe(seq, worker)
                del self.sinks[number]
                done.append(self.jobs.pop(number))
        return done

    def finish(self) -> None:
        """Join the streams, once every job has been launched."""
        self.lanes.join(self.home)
        self.trace.counters.add_waits(self.clocks.asked, self.clocks.needed)
        if self.recorder is not None and self.recorder.times:
            self.driver.synchronize(self.home)
            self.launcher.drop_timed()
