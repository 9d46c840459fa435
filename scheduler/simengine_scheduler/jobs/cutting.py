"""Cutting: the calls of emitters become jobs, each of which runs as a whole.

Each emitter has at most one open job, to which its calls are added as they come in program order. When a
call of another emitter must come after a job, the job is closed: no call is added to it any more. Jobs therefore depend
on closed jobs only, and no two jobs can wait for each other. A job that has become very long is closed as well.
"""

from __future__ import annotations

from typing import Any

from ..core.calls import KernelCall
from ..core.hazards import HazardTracker
from ..launch.host import PythonLaunch
from .kinds import JobLaunch

_LONGEST = 1024  # calls of a job; its first calls start only when its last one is known


class Job:
    """Calls of one emitter by sequence number, and the jobs that they must come after.

    Attributes:
        number: of the job.
        emitter: the position of the emitter.
        home: the worker in whose queue the job is put.
        calls: by sequence number.
        before: numbers of the jobs that it must come after.
        fixed: what `JobLauncher.prepare` made for a job that comes again.
    """

    __slots__ = ("before", "calls", "emitter", "fixed", "home", "number")

    def __init__(self, number: int, emitter: int, home: int) -> None:
        self.number = number
        self.emitter = emitter
        self.home = home
        self.calls: dict[int, KernelCall] = {}
        self.before: set[int] = set()
        self.fixed: Any = None

    def as_call(self) -> KernelCall:
        """Return a call that touches all that the job's calls touch, for hazard checks between jobs."""
        calls = self.calls.values()
        reads = dict.fromkeys(segment for call in calls for segment in call.reads)
        written = dict.fromkeys(segment for call in calls for segment in call.writes + call.updates)
        return KernelCall("job", PythonLaunch(lambda: None), tuple(reads), tuple(written))


class JobCutter:
    """Makes jobs of calls. Each emitter has one worker. Calls that are whole jobs go to the workers in turn."""

    def __init__(self, tracker: HazardTracker, workers: int) -> None:
        self.closed: list[Job] = []  # closed jobs that nobody has taken
        self.job_of: dict[int, Job] = {}  # call -> its job, for jobs that are not complete
        self._tracker = tracker
        self._workers = workers
        self._open: dict[int, Job] = {}  # by emitter
        self._made = 0
        self._dealt = 0

    def add(self, seq: int, call: KernelCall, emitter: int) -> None:
        """Add the next call of program order."""
        whole = isinstance(call.launch, JobLaunch)
        if whole:
            self._close(emitter)
        job = self._open.get(emitter)
        if job is None:
            job = self._open[emitter] = self._new(emitter, emitter % self._workers)
            if whole:
                job.home = self._dealt % self._workers
                self._dealt += 1
        for other in self._tracker.add(seq, call):
            earlier = self.job_of[other]
            if earlier is not job and earlier.number not in job.before:
                job.before.add(earlier.number)
                if self._open.get(earlier.emitter) is earlier:
                    self._close(earlier.emitter)
        job.calls[seq] = call
        self.job_of[seq] = job
        if whole or len(job.calls) >= _LONGEST:
            self._close(emitter)

    def split_after(self, seq: int) -> None:
        """End a job with call `seq`, which its emitter awaits, so that the emitter need not wait for later calls."""
        job = self.job_of[seq]
        later = [other for other in job.calls if other > seq]
        if later and self._open.get(job.emitter) is job:
            self._close(job.emitter)
            rest = self._open[job.emitter] = self._new(job.emitter, job.home)
            rest.before = {*job.before, job.number}
            for other in later:
                rest.calls[other] = job.calls.pop(other)
                self.job_of[other] = rest

    def close_all(self) -> None:
        """Close every job."""
        for emitter in list(self._open):
            self._close(emitter)

    def take_closed(self) -> list[Job]:
        """Return the jobs that were closed since the last time, each after those that it must come after."""
        taken, self.closed = self.closed, []
        return taken

    def complete(self, job: Job) -> None:
        """Forget a job that has completed."""
        for seq in job.calls:
            self._tracker.remove(seq)
            del self.job_of[seq]

    def _new(self, emitter: int, home: int) -> Job:
        self._made += 1
        return Job(self._made, emitter, home)

    def _close(self, emitter: int) -> None:
        job = self._open.pop(emitter, None)
        if job is not None:
            self.closed.append(job)
