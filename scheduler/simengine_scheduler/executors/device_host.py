"""The host's side of executor `device`: the book, the ring, and the sessions that run one after another."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, sleep
from typing import TypeVar

from ..core.errors import call_stuck
from ..device.book import Book, Full, KnownCall, KnownList
from ..device.machine import Machine
from ..device.recording import Log
from ..device.ring import Ring
from ..device.segments import Outdated
from ..device.sessions import MOST_SLOTS, Session, State, fill_structs, plan_session
from ..launch.tasks import DeviceBody
from .base import Options

_GRACE = 2.0  # time that blocks have to stop after one of them has given up the list [s]
_USUAL_SCALE, _MOST_SCALE = 16, 256  # how many times larger than at first a book may be
_WAITS_FOR_SLOT = -2
_Known = TypeVar("_Known", KnownCall, KnownList)


class DeviceHost:
    """Describes calls, and starts sessions for them.

    Args:
        executor: name of the executor, for errors.
        options: as for every executor.
        machine: the GPU, or threads of the host.

    Attributes:
        machine: as given.
        book: describes calls and lists.
        ring: names them.
        log: what recorded sessions write down, once there was one.
        streamed: bodies of calls that were named one by one, by the number of their class.
        started: how many sessions were started.
        hangs: whether a list was given up and does not stop.
    """

    def __init__(self, executor: str, options: Options, machine: Machine) -> None:
        if options.window > MOST_SLOTS:
            raise ValueError(
                f"executor option window={options.window} is too large for executor 'device', whose upstream lists "
                f"are words of {MOST_SLOTS} bits; give at most {MOST_SLOTS}"
            )
        self.machine = machine
        self.started = 0
        self.hangs = False
        self._executor = executor
        self._options = options
        self._conflicts = options.table(executor).conflicts
        self._sessions: list[tuple[bool, Session]] = []
        self._begin(1)

    def _begin(self, scale: int) -> None:
        """Begin a new book, with an empty ring and no sessions. None runs."""
        for _, session in self._sessions:
            self.machine.drop(session.handle)
        self._sessions.clear()
        self._memory = self.machine.memory()
        self._state = State(self._memory, self._options.window)
        self.ring = Ring(self.machine.visible)
        self.log: Log | None = None
        self.book = Book(self._conflicts, self._memory, self._options.tiled, self._options.merged, scale)
        self._fresh = True  # whether nothing was described yet
        self.streamed: dict[int, frozenset[DeviceBody]] = {}

    def session_for(self, bodies: dict[int, frozenset[DeviceBody]], recorded: bool) -> Session:
        """Return a session that runs calls of given bodies, and copy what is new in the book to the device."""
        session = next((s for own, s in self._sessions if own == recorded and s.can_run(self.book, bodies)), None)
        if session is None:
            self._prune()
            machine, options = self.machine, self._options
            if recorded and self.log is None:
                self.log = Log(self._memory)
            session = plan_session(
                self.book, bodies, machine.multiprocessors, options.window, machine.workers_of, options.merged
            )
            places = {**self.ring.addresses(), **self._state.addresses()}
            log = self.log if recorded else None
            fill_structs(session, self.book, self._memory, places, log, options.window, options.watchdog)
            session.handle = machine.prepare(session, self._state)
            self._sessions.insert(0, (recorded, session))
        self.book.flush()
        return session

    def _prune(self) -> None:
        """Drop sessions that have become too small for what calls of the book ask for."""
        fit = [(own, session) for own, session in self._sessions if session.can_run(self.book, {})]
        for pair in self._sessions:
            if pair not in fit:
                self.machine.drop(pair[1].handle)
        self._sessions = fit

    def start(self, session: Session) -> None:
        """Start a session after those before it."""
        self.ring.starts()
        self.started += 1
        self.machine.start(session.handle)

    def described(
        self, describe: Callable[[Book], list[_Known]], before: Callable[[], None] = lambda: None
    ) -> list[_Known]:
        """Return what `describe` returns, from a new book if it finds this one full or outdated.

        `before` is called before a new book is begun. Raises ValueError if the calls fit into no book.
        """
        while True:
            try:
                known = describe(self.book)
            except (Full, Outdated) as error:
                before()
                self.wait()
                scale = self.book.scale
                if isinstance(error, Full) and (self._fresh or scale < _USUAL_SCALE):
                    scale *= 2
                if scale > _MOST_SCALE:
                    raise ValueError(
                        "executor 'device' has no room for so many calls at once; hand them over in several runs, or "
                        "choose executor 'streams'"
                    ) from error
                self._begin(scale)
            else:
                self._fresh = False
                return known

    def again(self, session: Session) -> None:
        """Start a session again if it has left before it read all of the ring.

        Raises if its list was given up, or if a call has faulted.
        """
        if self.ring.needs_start():
            self.start(session)
        self.machine.is_running()
        self.check()
        sleep(0)

    def wait_or_hang(self) -> None:
        """Wait until the session has ended, or has had time to after its list was given up."""
        given_up = 0.0
        while self.machine.is_running():
            sleep(0)
            if not self.ring.status[0]:
                continue
            given_up = given_up or perf_counter()
            if perf_counter() - given_up > _GRACE:
                self.hangs = True
                return

    def wait(self) -> None:
        """Wait until the session has ended. Raises CallError if its list was given up."""
        self.wait_or_hang()
        self.check()

    def check(self) -> None:
        """Raise CallError if a list was given up."""
        status = self.ring.status
        if not status[0]:
            return
        self.wait_or_hang()
        _, task, tile, waits_for = status[:4].tolist()
        calls = self.book.calls
        who = f"call {calls[task].name!r}" + (f", tile {tile}," if tile >= 0 else "")
        what = "for a slot of the window"
        if waits_for != _WAITS_FOR_SLOT:
            what = f"for call {calls[waits_for].name!r}, which has not ended"
        why = f"{who} waited {self._options.watchdog:g} s {what}"
        error = call_stuck(calls[task], self._executor, f"{why} and does not stop" if self.hangs else why)
        error.fatal = self.hangs
        if self.hangs:
            status[0] = 0
        else:
            self._begin(self.book.scale)
        raise error

    def close(self) -> None:
        """Free memory on the device, after all work on it has completed."""
        if self.hangs:
            return  # a list that hangs may use its memory for ever
        try:
            self.wait_or_hang()
        except RuntimeError:
            return  # the device has failed, and all that it held is lost
        for _, session in self._sessions:
            self.machine.drop(session.handle)
        self._sessions.clear()
        self.machine.close()
