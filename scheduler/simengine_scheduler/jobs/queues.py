"""A queue of jobs for each worker, with stealing and a bound on the jobs in flight. Pure logic: no GPU, no threads.

put -> queue of the home worker --take, in turn--> in flight on it --complete--> gone
                 |
                 +--steal, from its end--> in flight on a worker that has nothing to do
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class JobQueues:
    """Jobs by number. A job must be put before all jobs that come after it.

    A worker takes jobs from its own queue while fewer than `depth` of its jobs are in flight. It takes the oldest job
    whose predecessors are all in flight or complete, since a stream can wait for predecessors in flight. A worker with
    nothing in flight steals a job from the longest queue: the newest one whose predecessors are all complete, which
    need not wait.
    """

    def __init__(self, workers: int, depth: int) -> None:
        self.depth = depth
        self.flying: list[deque[int]] = [deque() for _ in range(workers)]  # jobs in flight, oldest first
        self.waiting = 0  # jobs in the queues
        self._queues: list[deque[int]] = [deque() for _ in range(workers)]
        self._held: dict[int, int] = {}  # job in a queue -> predecessors that are in queues
        self._unfinished: dict[int, int] = {}  # job in a queue -> predecessors that are not complete
        self._after: dict[int, list[int]] = {}  # job that is not complete -> later jobs that wait for it

    def put(self, job: int, home: int, before: Iterable[int]) -> None:
        """Put a job into the queue of its home worker. Predecessors that are in no queue or flight are complete."""
        alive = [other for other in before if other in self._after]
        for other in alive:
            self._after[other].append(job)
        self._held[job] = sum(other in self._held for other in alive)
        self._unfinished[job] = len(alive)
        self._after[job] = []
        self._queues[home].append(job)
        self.waiting += 1

    def take(self, worker: int) -> int | None:
        """Move a job from the worker's own queue into flight on it. Returns it, or None if there is none."""
        queue = self._queues[worker]
        if not queue or len(self.flying[worker]) >= self.depth:
            return None
        return self._fly(worker, queue, next((job for job in queue if not self._held[job]), None))

    def steal(self, worker: int) -> int | None:
        """Move a job from the queue of another worker into flight on this one. Returns it, or None if there is none."""
        if self.flying[worker] or not self.waiting:
            return None
        for queue in sorted(self._queues, key=len, reverse=True):
            job = next((job for job in reversed(queue) if not self._unfinished[job]), None)
            if job is not None:
                return self._fly(worker, queue, job)
        return None

    def _fly(self, worker: int, queue: deque[int], job: int | None) -> int | None:
        if job is None:
            return None
        queue.remove(job)
        self.waiting -= 1
        self.flying[worker].append(job)
        del self._held[job]
        del self._unfinished[job]
        for later in self._after[job]:
            self._held[later] -= 1
        return job

    def complete(self, worker: int) -> int:
        """Note that the oldest job in flight on a worker has completed, and return it."""
        job = self.flying[worker].popleft()
        for later in self._after.pop(job):
            if later in self._unfinished:
                self._unfinished[later] -= 1
        return job
