"""The device executor: the window runs on the GPU, where persistent workers run the tiles of calls.

    emitters --round-robin--> numbers of calls --ring in host memory--> window on the GPU --slots--> workers
    fixed lists             --> numbers of lists --------^

This is the hardware form of ACS (arXiv 2401.12377) in software. Calls and lists are described on the GPU once
(`simengine_scheduler/device/book.py`). After that the host names them by their numbers, in a ring that the window
reads while it runs. No image of a list is built, and any subset of known lists runs without preparation. What an
emitter waits for is told through host memory, while the window and its workers stay on the GPU. They leave when the
host names no call for 0.1 ms and are started again with the next one, so that other work finds room.

Fixed lists that do not conflict are played: their calls bring along which earlier calls of the list they wait for, and
the window checks nothing. Other calls are compared with those in the window.

The authors of ACS found a persistent kernel slower, because every task then pays for the registers of the largest. Here
bodies with like needs of registers and threads share a worker. Calls follow each other tile by tile (cuSync, arXiv
2305.13450) where they say which segments are `tiled`. The work of a call may depend on counts that only the GPU knows.
`simengine_scheduler/device/protocol.cuh` is the protocol, and says why it cannot deadlock.

Invariants
    1. Sessions follow each other on one stream. A run's sessions come after what the home stream held when the run
       began, and the home stream waits for them.
    2. An entry of the ring is written once all tables that it refers to are on the device.
    3. A session runs calls of bodies that its workers have. For other bodies it is ended, and another one started.
    4. A wait that lasts longer than `watchdog` ends the list. The next run or `synchronize` raises an error, which says
       which call waited for which. If a body never ends and a call waits for it, the error is the same, but only a new
       process can go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.calls import Emitter, FixedList
from ..core.emission import Feeder
from ..device.book import Book, KnownList
from ..device.machine import Machine
from ..device.ring import END, PLAY
from ..device.sessions import Session
from ..launch.tasks import DeviceBody
from ..tracing.trace import Trace
from .base import Executor, Options, finish_run
from .device_host import DeviceHost
from .device_stream import CallStream
from .recorder import start_recording


class DeviceExecutor(Executor):
    """Runs lists with a window and workers on the GPU.

    Args:
        options: as for every executor.
        machine: replaces the GPU, for example by threads of the host.
    """

    def __init__(self, options: Options, machine: Machine | None = None) -> None:
        self.name = "device"
        self._options = options
        self.host = DeviceHost(self.name, options, _gpu(self.name, options) if machine is None else machine)
        self._played: tuple[Book, Session] | None = None  # for the fixed lists that ran last

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Hand over the emitters' calls. On return the home stream waits for all of them."""
        self.host.check()
        if self._options.record == "off" and type(emitters) is list and all(type(e) is FixedList for e in emitters):
            played = self._play(emitters, 1)
            if played is not None:
                return played
        return self._feed(emitters)

    def repeat(self, lists: Sequence[FixedList], times: int) -> Trace:
        """Run fixed lists several times in a row. Returns the trace of the last time."""
        self.host.check()
        played = self._play(lists, times) if self._options.record == "off" else None
        if played is not None:
            return played
        for _ in range(times - 1):
            self.run(list(lists))
        return self.run(list(lists))

    def _play(self, lists: Sequence[FixedList], times: int) -> Trace | None:
        """Run lists by their numbers. Returns None if some of them conflict."""
        known = self._known_lists(lists)
        if known is None:
            return None
        trace = Trace(self.name)
        trace.counters.calls = sum(map(len, lists))
        if not trace.counters.calls:
            return trace
        session = self._session_of_lists(known)
        with self.host.machine.run() as run:
            run.latest = next(call for calls in lists for call in calls)
            numbers = [of.number for of in known] * times
            fits = len(numbers) < self.host.ring.room()
            if not fits:
                self.host.start(session)
            self.host.ring.put(PLAY, numbers, lambda: self.host.again(session))
            self.host.ring.put_one(END, 0, lambda: self.host.again(session))
            if fits:
                self.host.start(session)
            else:
                self.host.again(session)
        return trace

    def _known_lists(self, lists: Sequence[FixedList]) -> list[KnownList] | None:
        """Return the entries of lists that are not empty, or None if some of them conflict."""
        known = self.host.described(lambda book: [book.list(calls) for calls in lists if calls])
        present = 0
        for of in known:
            if present & (of.conflicts | of.bit):
                return None
            present |= of.bit
        return known

    def _session_of_lists(self, lists: Sequence[KnownList]) -> Session:
        """Return a session for lists: the one of the last run if it can run them."""
        wanted = 0
        for of in lists:
            wanted |= of.bit
        book = self.host.book
        if self._played is not None and self._played[0] is book:
            session = self._played[1]
            if not wanted & ~session.lists and session.can_run(book, {}):
                return session
        bodies: dict[int, set[DeviceBody]] = {}
        for of_class, body in frozenset().union(*(of.bodies for of in lists)):
            bodies.setdefault(of_class, set()).add(body)
        session = self.host.session_for({number: frozenset(own) for number, own in bodies.items()}, recorded=False)
        session.lists |= wanted
        self._played = book, session
        return session

    def _feed(self, emitters: Iterable[Emitter]) -> Trace:
        trace = Trace(self.name, self._options.record)
        with self.host.machine.run() as run:
            feeder = run.feeder = Feeder(emitters, lambda seq: False)
            stream = CallStream(self.host, run, start_recording(trace))
            try:
                while True:
                    stream.name_all(feeder)
                    if feeder.exhausted:
                        break
                    for seq in stream.wait(list(feeder.waiting), until_one=not feeder.idle):
                        feeder.release(seq)
            except BaseException:
                stream.end(waits=False)
                self.host.wait_or_hang()
                raise
            stream.end(waits=stream.recorder is not None)
            finish_run(trace, feeder, stream.recorder)
        return trace

    def synchronize(self) -> None:
        """Block the host until all that was issued has ended. Raises CallError if a list was given up."""
        self.host.wait()
        self.host.machine.synchronize()

    def close(self) -> None:
        """Free memory on the device, after all work on it has completed."""
        self.host.close()


def _gpu(executor: str, options: Options) -> Machine:
    from .device_machine import CudaMachine

    return CudaMachine(executor, options)
