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
from time import perf_counter, sleep
from typing import Any

from ..core.calls import Emitter, FixedList, KernelCall
from ..core.dependencies import chains
from ..core.emission import Feeder
from ..core.errors import call_stuck
from ..device.book import Book, Full, KnownCall, KnownList
from ..device.machine import Machine
from ..device.recording import Log
from ..device.ring import CALL, END, PLAY, TELL, Ring
from ..device.segments import Outdated
from ..device.sessions import MOST_SLOTS, Session, State, fill_structs, plan_session
from ..launch.tasks import DeviceBody
from ..tracing.trace import Trace
from .base import Executor, Options, finish_run
from .recorder import Recorder, start_recording

_GRACE = 2.0  # time that blocks have to stop after one of them has given up the list [s]
_TOGETHER = 64  # calls that are described before a session is chosen for them
_WAITS_FOR_SLOT = -2


class DeviceExecutor(Executor):
    """Runs lists with a window and workers on the GPU.

    Args:
        options: as for every executor.
        machine: replaces the GPU, for example by threads of the host.
    """

    def __init__(self, options: Options, machine: Machine | None = None) -> None:
        self.name = "device"
        if options.window > MOST_SLOTS:
            raise ValueError(
                f"executor option window={options.window} is too large for executor 'device', whose upstream lists "
                f"are words of {MOST_SLOTS} bits; give at most {MOST_SLOTS}"
            )
        self._options = options
        self._conflicts = options.table(self.name).conflicts
        self._machine: Machine = _gpu(self.name, options) if machine is None else machine
        self._hangs = False
        self._sessions: list[tuple[bool, Session]] = []
        self.started = 0  # sessions
        self._begin(1)

    def _begin(self, scale: int) -> None:
        """Begin a new book, with an empty ring and no sessions. None runs."""
        for _, session in self._sessions:
            self._machine.drop(session.handle)
        self._sessions.clear()
        self._memory = self._machine.memory()
        self._state = State(self._memory, self._options.window)
        self._ring = Ring(self._machine.visible)
        self._log: Log | None = None
        self._book = Book(self._conflicts, self._memory, self._options.tiled, self._options.merged, scale)
        self._played: Session | None = None  # for the fixed lists that ran last
        self._streamed: dict[int, frozenset[DeviceBody]] = {}  # bodies of calls that were named one by one

    # -------------------------------------------------------------------------------------------------- sessions

    def _session_for(self, bodies: dict[int, frozenset[DeviceBody]], recorded: bool) -> Session:
        """Return a session that runs calls of given bodies, and copy what is new in the book to the device."""
        session = next((s for own, s in self._sessions if own == recorded and s.can_run(self._book, bodies)), None)
        if session is None:
            self._prune()
            machine, options = self._machine, self._options
            if recorded and self._log is None:
                self._log = Log(self._memory)
            session = plan_session(
                self._book, bodies, machine.multiprocessors, options.window, machine.workers_of, options.merged
            )
            places = {**self._ring.addresses(), **self._state.addresses()}
            log = self._log if recorded else None
            fill_structs(session, self._book, self._memory, places, log, options.window, options.watchdog)
            session.handle = machine.prepare(session, self._state)
            self._sessions.insert(0, (recorded, session))
        self._book.flush()
        return session

    def _prune(self) -> None:
        """Drop sessions that have become too small for what calls of the book ask for."""
        fit = [(own, session) for own, session in self._sessions if session.can_run(self._book, {})]
        for pair in self._sessions:
            if pair not in fit:
                self._machine.drop(pair[1].handle)
        self._sessions = fit

    def _start(self, session: Session) -> None:
        self._ring.starts()
        self.started += 1
        self._machine.start(session.handle)

    # ----------------------------------------------------------------------------------------------- fixed lists

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Hand over the emitters' calls. On return the home stream waits for all of them."""
        self._check()
        if self._options.record == "off" and type(emitters) is list and all(type(e) is FixedList for e in emitters):
            played = self._play(emitters, 1)
            if played is not None:
                return played
        return self._feed(emitters)

    def repeat(self, lists: Sequence[FixedList], times: int) -> Trace:
        """Run fixed lists several times in a row. Returns the trace of the last time."""
        self._check()
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
        with self._machine.run() as run:
            run.latest = next(call for calls in lists for call in calls)
            numbers = [of.number for of in known] * times
            fits = len(numbers) < self._ring.room()
            if not fits:
                self._start(session)
            self._ring.put(PLAY, numbers, lambda: self._again(session))
            self._ring.put_one(END, 0, lambda: self._again(session))
            if fits:
                self._start(session)
            else:
                self._again(session)
        return trace

    def _known_lists(self, lists: Sequence[FixedList]) -> list[KnownList] | None:
        """Return the entries of lists that are not empty, or None if some of them conflict."""
        describe = self._book.list
        try:
            known = [describe(calls) for calls in lists if calls]
        except (Full, Outdated) as error:
            self._retry(error)
            known = [self._book.list(calls) for calls in lists if calls]
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
        session = self._played
        if session is not None and not wanted & ~session.lists and session.can_run(self._book, {}):
            return session
        bodies: dict[int, set[DeviceBody]] = {}
        for of_class, body in frozenset().union(*(of.bodies for of in lists)):
            bodies.setdefault(of_class, set()).add(body)
        session = self._session_for({number: frozenset(own) for number, own in bodies.items()}, recorded=False)
        session.lists |= wanted
        self._played = session
        return session

    def _retry(self, error: Exception) -> None:
        """Begin a new book after an error of this one. A book that was full before it had much in it grows."""
        self._wait()
        few = len(self._book.calls) < 2048 * self._book.scale
        self._begin(self._book.scale * (2 if isinstance(error, Full) and few else 1))

    # -------------------------------------------------------------------------------------------- calls one by one

    def _feed(self, emitters: Iterable[Emitter]) -> Trace:
        trace = Trace(self.name, self._options.record)
        with self._machine.run() as run:
            feeder = run.feeder = Feeder(emitters, lambda seq: False)
            stream = _Stream(self, run, start_recording(trace))
            try:
                while True:
                    stream.name_all(feeder)
                    if feeder.exhausted:
                        break
                    for seq in stream.wait(list(feeder.waiting)):
                        feeder.release(seq)
            except BaseException:
                stream.end(waits=False)
                self._wait_or_hang()
                raise
            stream.end(waits=stream.recorder is not None)
            finish_run(trace, feeder, stream.recorder)
        return trace

    # --------------------------------------------------------------------------------------------------- the end

    def _again(self, session: Session) -> None:
        """Start a session again if it has left before it read all of the ring. Raises if its list was given up."""
        if self._ring.needs_start():
            self._start(session)
        self._check()
        sleep(0)

    def _wait_or_hang(self) -> None:
        """Wait until the session has ended, or has had time to after its list was given up."""
        given_up = 0.0
        while self._machine.is_running():
            sleep(0)
            if not self._ring.status[0]:
                continue
            given_up = given_up or perf_counter()
            if perf_counter() - given_up > _GRACE:
                self._hangs = True
                return

    def _wait(self) -> None:
        """Wait until the session has ended. Raises CallError if its list was given up."""
        self._wait_or_hang()
        self._check()

    def _check(self) -> None:
        """Raise CallError if a list was given up."""
        status = self._ring.status
        if not status[0]:
            return
        self._wait_or_hang()
        _, task, tile, waits_for = status[:4].tolist()
        calls = self._book.calls
        who = f"call {calls[task].name!r}" + (f", tile {tile}," if tile >= 0 else "")
        what = "for a slot of the window"
        if waits_for != _WAITS_FOR_SLOT:
            what = f"for call {calls[waits_for].name!r}, which has not ended"
        why = f"{who} waited {self._options.watchdog:g} s {what}"
        error = call_stuck(calls[task], self.name, f"{why} and does not stop" if self._hangs else why)
        error.fatal = self._hangs
        if self._hangs:
            status[0] = 0
        else:
            self._begin(self._book.scale)
        raise error

    def synchronize(self) -> None:
        """Block the host until all that was issued has ended. Raises CallError if a list was given up."""
        self._wait()
        self._machine.synchronize()

    def close(self) -> None:
        """Free memory on the device, after all work on it has completed."""
        if self._hangs:
            return  # a list that hangs may use its memory for ever
        self._wait_or_hang()
        for _, session in self._sessions:
            self._machine.drop(session.handle)
        self._sessions.clear()
        self._machine.close()


def _gpu(executor: str, options: Options) -> Machine:
    from .device_machine import CudaMachine

    return CudaMachine(executor, options)


class _Stream:
    """The calls of a run, named one by one to a session that runs meanwhile."""

    def __init__(self, executor: DeviceExecutor, run: Any, recorder: Recorder | None) -> None:
        self.recorder = recorder
        self._of = executor
        self._run = run
        self._session: Session | None = None
        self._base = 0  # number in program order of the first call since the last end
        self._named = 0  # calls since then
        self._asked: set[int] = set()
        self._began = perf_counter()
        self._ring = executor._ring

    def name_all(self, feeder: Feeder) -> None:
        """Name calls until every emitter has ended or waits."""
        calls: list[KernelCall] = []
        while (call := feeder.pull()) is not None:
            calls.append(call)
            if self.recorder is not None:
                self.recorder.enter(call)
            if len(calls) == _TOGETHER:
                self._name(calls)
                calls = []
        if calls:
            self._name(calls)

    def _name(self, calls: list[KernelCall]) -> None:
        of = self._of
        log = of._log
        if self.recorder is not None and log is not None and self._named + len(calls) > log.room:
            self.end()
        known = self._known(calls)
        for call in known:
            bodies = of._streamed.get(call.of_class, frozenset())
            if call.body not in bodies:
                of._streamed[call.of_class] = bodies | {call.body}
        if self._session is not None and not self._session.can_run(of._book, of._streamed):
            self.end()
        if self._session is None:
            self._session = of._session_for(of._streamed, self.recorder is not None)
            if self.recorder is not None and of._log is not None:
                of._wait()
                of._log.clear()
            self._began = perf_counter()
            of._start(self._session)
        else:
            of._book.flush()
        self._run.latest = calls[-1]
        of._ring.put(CALL, [call.number for call in known], self._again)
        self._named += len(calls)
        self._again()

    def _known(self, calls: list[KernelCall]) -> list[KnownCall]:
        of = self._of
        try:
            return [of._book.call(call) for call in calls]
        except (Full, Outdated) as error:
            self.end()
            of._retry(error)
            self._ring = of._ring
            return [of._book.call(call) for call in calls]

    def _again(self) -> None:
        if self._session is not None:
            self._of._again(self._session)

    def wait(self, seqs: list[int]) -> list[int]:
        """Wait for some calls, by their numbers in program order, and return those that have ended."""
        of = self._of
        for seq in seqs:
            if seq >= self._base and seq not in self._asked:
                self._asked.add(seq)
                of._ring.put_one(TELL, seq - self._base, self._again)
        while True:
            ended = [seq for seq in seqs if seq < self._base or of._ring.has_ended(seq - self._base)]
            if ended or not seqs:
                break
            self._again()
        for seq in ended:
            self._asked.discard(seq)
            if seq >= self._base:
                of._ring.forget(seq - self._base)
        return ended

    def end(self, waits: bool = True) -> None:
        """End the session. If it `waits`, all calls have ended when this returns."""
        of = self._of
        if self._session is None or of._ring is not self._ring:  # the list was given up
            return
        of._ring.put_one(END, 0, self._again)
        self._again()
        self._session = None
        if waits:
            of._wait()
            for seq in self._asked:
                of._ring.forget(seq - self._base)
            self._asked.clear()
        if self.recorder is not None and of._log is not None and self._named:
            self._collect(self.recorder, of._log)
        self._base += self._named
        self._named = 0

    def _collect(self, recorder: Recorder, log: Log) -> None:
        found = log.outcome(self._named)
        recorder.device_list(self._base, found.waits, chains(found.waits), found.retired)
        found.count_into(recorder.trace.counters)
        if recorder.times:
            start = min(t for t, _ in found.times)
            for i, (a, b) in enumerate(found.times):
                recorder.ran(self._base + i, self._began + (a - start) * 1e-9, self._began + (b - start) * 1e-9)
