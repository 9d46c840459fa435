"""Calls of executor `device` that are named one by one to a session which runs meanwhile."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from ..core.calls import KernelCall
from ..core.dependencies import chains
from ..core.emission import Feeder
from ..device.book import KnownCall
from ..device.recording import Log
from ..device.ring import CALL, END, TELL
from ..device.sessions import Session
from .device_host import DeviceHost
from .recorder import Recorder

_TOGETHER = 64  # calls that are described before a session is chosen for them


class CallStream:
    """The calls of a run, named one by one to a session that runs meanwhile."""

    def __init__(self, host: DeviceHost, run: Any, recorder: Recorder | None) -> None:
        self.recorder = recorder
        self._of = host
        self._run = run
        self._session: Session | None = None
        self._base = 0  # number in program order of the first call since the last end
        self._named = 0  # calls since then
        self._asked: set[int] = set()
        self._began = perf_counter()
        self._ring = host.ring

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
        log = of.log
        if self.recorder is not None and log is not None and self._named + len(calls) > log.room:
            self.end()
        known = self._known(calls)
        for call in known:
            bodies = of.streamed.get(call.of_class, frozenset())
            if call.body not in bodies:
                of.streamed[call.of_class] = bodies | {call.body}
        if self._session is not None and not self._session.can_run(of.book, of.streamed):
            self.end()
        if self._session is None:
            self._session = of.session_for(of.streamed, self.recorder is not None)
            if self.recorder is not None and of.log is not None:
                of.wait()
                of.log.clear()
            self._began = perf_counter()
            of.start(self._session)
        else:
            of.book.flush()
        self._run.latest = calls[-1]
        of.ring.put(CALL, [call.number for call in known], self._again)
        self._named += len(calls)
        self._again()

    def _known(self, calls: list[KernelCall]) -> list[KnownCall]:
        known: list[KnownCall] = self._of.described(lambda book: [book.call(call) for call in calls], self.end)
        self._ring = self._of.ring
        return known

    def _again(self) -> None:
        if self._session is not None:
            self._of.again(self._session)

    def wait(self, seqs: list[int], until_one: bool) -> list[int]:
        """Return those of some calls that have ended, at least one if `until_one`. Numbers are of program order."""
        of = self._of
        for seq in seqs:
            if seq >= self._base and seq not in self._asked:
                self._asked.add(seq)
                of.ring.put_one(TELL, seq - self._base, self._again)
        while True:
            ended = [seq for seq in seqs if seq < self._base or of.ring.has_ended(seq - self._base)]
            if ended or not until_one:
                break
            self._again()
        for seq in ended:
            self._asked.discard(seq)
            if seq >= self._base:
                of.ring.forget(seq - self._base)
        return ended

    def end(self, waits: bool = True) -> None:
        """End the session. If it `waits`, all calls have ended when this returns."""
        of = self._of
        if self._session is None or of.ring is not self._ring:  # the list was given up
            return
        of.ring.put_one(END, 0, self._again)
        self._again()
        self._session = None
        if waits:
            of.wait()
            for seq in self._asked:
                of.ring.forget(seq - self._base)
            self._asked.clear()
        if self.recorder is not None and of.log is not None and self._named:
            self._collect(self.recorder, of.log)
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
