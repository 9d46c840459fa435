"""Queues of jobs, one a worker, with stealing and a bound on the jobs in flight. Pure logic: no GPU, no threads.

put -> queue of the home worker --take, in turn--> in flight on it --complete--> gone
                 |
                 +--steal, from its end--> in flight on a worker that has nothing to do
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class JobQueues:
    """Jobs by number, each put before any that must come after it.

    A worker takes from its own queue while it has fewer than `depth` jobs in flight, the oldest first whose
    predecessors are all in flight or complete: on the device it may wait for them. A worker with nothing in flight
    steals the newest job of the longest queue whose predecessors are all complete, so that it need not wait.
    """

    def __init__(self, workers: int, depth: int) -> None:
        self.depth = depth
        self.flying: list[deque[int]] = [deque() for _ in range(workers)]  # jobs in flight, oldest first
        self.waiting = 0  # jobs in the queues
        self._queues: list[deque[int]] = [deque() for _ in range(workers)]
        self._held: dict[int, int] = {}  # job in a queue -> predecessors that are in queues
        self._unfinished: dict[int, int] = {}  # job in a queue -> predecessors that are not complete
        self._after: dict[int, list[int]] = {}  # job that is not complete -> those put after it that wait for it

    def put(self, job: int, home: int, before: Iterable[int]) -> None:
        """Enter a job in the queue of its home worker; predecessors that are not here any more are complete."""
        alive = [other for other in before if other in self._after]
        for other in alive:
            self._after[other].append(job)
        self._held[job] = sum(other in self._held for other in alive)
        self._unfinished[job] = len(alive)
        self._after[job] = []
        self._queues[home].append(job)
        self.waiting += 1

    def take(self, worker: int) -> int | None:
        """Return a job of the worker's own queue that is now in flight on it, or None."""
        queue = self._queues[worker]
        if not queue or len(self.flying[worker]) >= self.depth:
            return None
        return self._fly(worker, queue, next((job for job in queue if not self._held[job]), None))

    def steal(self, worker: int) -> int | None:
        """Return a job of another worker's queue that is now in flight on this one, or None."""
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
        """The oldest job in flight on a worker has completed; return it."""
        job = self.flying[worker].popleft()
        for later in self._after.pop(job):
            if later in self._unfinished:
                self._unfinished[later] -= 1
        return job
