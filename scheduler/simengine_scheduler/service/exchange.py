"""The exchange: submissions of all clients on one side, one emitter for the executor on the other.

    session queue  -+
    session queue  -+--one call each in turn--> emitter --> executor --fence--> report
    session queue  -+

Invariants
    1. Queues, turns and counts are touched under the lock only. Nothing is sent or run under the lock.
    2. A submission is flying from its first pulled call until its fence has completed. While a submission is flying,
    the
       emitter is idle rather than at its end, so that new submissions join the run. When none is flying, the emitter
       ends, so that an owner without work takes no processor time.
    3. Of a lost client only the fences of flying submissions are pulled. When the last of them has completed, the
    memory
       of the client is freed.
    4. On a device a fence is an event behind the list, which the emitter queries. While there are calls to emit, it
       queries only the oldest fence of each client, because a query takes a tenth of the time of a launch.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator

from ..core.calls import IDLE, Idle, KernelCall
from ..core.segments import Segments
from ..cuda.driver import Driver, EventPool
from .lists import Submission, Submitter

_BATCH = 8  # calls that are taken under one lock, which takes as long as they do


class Exchange:
    """Feeds an executor from sessions. `driver` is None if calls run to their end when they are issued."""

    def __init__(self, table: Segments, driver: Driver | None) -> None:
        self._table = table
        self._driver = driver
        self._events = EventPool(driver) if driver is not None else None
        self._fences: dict[Submitter, deque[tuple[int, Submission]]] = {}  # (event, submission) on the device
        self._changed = threading.Condition()
        self._turns: deque[Submitter] = deque()
        self._flying = 0
        self._closed = self._abandoned = False

    def submit(self, submission: Submission) -> None:
        """Queue a submission."""
        with self._changed:
            submission.session.queue.append(submission)
            self._take_turns(submission.session)

    def lose(self, session: Submitter) -> None:
        """Drop the queue of a client that has disconnected, and free its memory once none of its calls is in flight."""
        with self._changed:
            session.lost = True
            session.queue.clear()
            drained = session.flying == 0 and not self._abandoned
        if drained:
            session.release()

    def wait(self) -> bool:
        """Block until there is something to emit. Returns False once the exchange is closed."""
        with self._changed:
            while not self._turns and not self._closed:
                self._changed.wait()
            return not self._closed

    def close(self, abandon: bool = False) -> None:
        """Let `wait` return False. A run ends when all sessions are lost and nothing is flying.

        If `abandon`, nothing is freed, because everything is gone with the lost context.
        """
        with self._changed:
            self._closed = True
            self._abandoned |= abandon
            self._changed.notify_all()

    def destroy(self) -> None:
        """Destroy events, once no run is under way."""
        if self._events is not None:
            self._events.close()

    def emit(self) -> Iterator[KernelCall | Idle]:
        """Yield the calls of one run."""
        while True:
            calls = self._next()
            if calls:
                yield from calls
            elif not self._flying:
                return
            self._query(thoroughly=not calls)
            if not calls:
                if self._driver is not None:
                    time.sleep(0)  # lets other threads receive, because the executor asks again at once
                yield IDLE

    def _next(self) -> list[KernelCall]:
        """Return the next few calls, one of each client in turn."""
        calls: list[KernelCall] = []
        with self._changed:
            turns = self._turns
            while turns and len(calls) < _BATCH:
                session = turns[0]
                call = session.pull()
                if call is not None:
                    calls.append(call)
                    turns.rotate(-1)
                elif session.queue:
                    self._flying += 1
                    session.begin(self._table, self._ended)
                else:
                    turns.popleft()
        return calls

    def _take_turns(self, session: Submitter) -> None:
        if session not in self._turns:
            self._turns.append(session)
            self._changed.notify_all()

    def _ended(self, submission: Submission, stream: int) -> None:
        """Note that the fence of a submission is issued. On the host it has thereby completed."""
        if self._driver is None or self._events is None:
            self._finish(submission)
            return
        event = self._events.take()
        self._driver.record(event, stream)
        self._fences.setdefault(submission.session, deque()).append((event, submission))

    def _query(self, thoroughly: bool) -> None:
        """Report submissions whose fences have completed on the device: all of each client, or only the oldest."""
        if self._driver is None or self._events is None:
            return
        for session, fences in list(self._fences.items()):
            for _ in range(len(fences)):
                if self._driver.query(fences[0][0]):
                    event, submission = fences.popleft()
                    self._events.give(event)
                    self._finish(submission)
                elif thoroughly:
                    fences.rotate(-1)
                else:
                    break
            if not fences:
                del self._fences[session]

    def _finish(self, submission: Submission) -> None:
        session = submission.session
        with self._changed:
            self._flying -= 1
            session.flying -= 1  # before the report, since the client may submit the next list at once
            drained = session.lost and session.flying == 0
        session.report(submission)
        if drained:
            session.release()
