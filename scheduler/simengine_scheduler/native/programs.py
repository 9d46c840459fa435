"""`Programs`: the compiled programs of `programs.h`, lists of which counts choose the calls."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from .issuer import OUTCOMES, Issuer, Outcome, library
from .pieces import Pieces

CALL, COUNTED, AWAIT = range(3)
"""Kinds of entries. An entry is a kind, the number of a call, table or entry, and the addresses of `Entry`."""

_WAITS = 2  # numbers of waits that a whole run writes before all others
_HEAD = 6  # numbers that a run writes before the turns that have arrived


class Pause(IntEnum):
    """How running ended. FOREIGN: Python launches the call. MISSING: there is no call for a count.

    ARRIVED: awaited calls have ended.
    """

    ENDED = 0
    FOREIGN = 1
    FAILED = 2
    MISSING = 3
    ARRIVED = 4


_PAUSES = tuple(Pause)  # by their numbers


@dataclass(frozen=True, slots=True)
class Halt:
    """Where running paused.

    Attributes:
        pause: why.
        turn, entry, count: the program of the run whose call is to be issued, its entry, and the count of this entry.
        issued: how many calls of the run were issued.
        arrived: pairs of a program of the run and the entry at which it awaited a call that has ended.
        passed: how many awaited calls of the run have ended after which the caller had nothing to do.
    """

    pause: Pause
    turn: int
    entry: int
    count: int
    issued: int
    arrived: list[tuple[int, int]]
    passed: int


def _at(values: array[int]) -> int:
    return values.buffer_info()[0]


class Programs:
    """Programs of an issuer, which it outlives. One thread at a time may use them."""

    def __init__(self, issuer: Issuer) -> None:
        self._library = library()
        self._issuer = issuer  # kept alive
        self._handle = self._library.programs_make(issuer.handle)
        self._out = array("q", [0] * (_WAITS + _HEAD))

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            self._library.programs_free(handle)

    def add(self, entries: Sequence[tuple[int, int, int, int, int]]) -> int:
        """Add a program and return its number."""
        words = array("q", [word for entry in entries for word in entry])
        return int(self._library.programs_add(self._handle, _at(words), len(entries)))

    def add_table(self) -> int:
        """Add a table of the calls of a counted entry, which is empty, and return its number."""
        return int(self._library.programs_add_table(self._handle))

    def set(self, table: int, counts: range, number: int) -> None:
        """Set the call for some counts."""
        self._library.programs_set(self._handle, table, counts.start, counts.stop, number)

    def forget(self) -> None:
        """Forget all programs and tables."""
        self._library.programs_forget(self._handle)

    def begin(
        self, chosen: array[int], stream: int = 0, events: array[int] | None = None, pieces: Pieces | None = None
    ) -> None:
        """Begin a run of programs: with an event for each of them on one stream, without on those of the issuer.

        With pieces, which have begun a run as well, calls are issued as these where they may be.
        """
        self._make_room(len(chosen))
        at = None if events is None else _at(events)
        handle = None if pieces is None else pieces.handle
        self._library.programs_begin(self._handle, _at(chosen), len(chosen), stream, at, handle)

    def run(self) -> Halt:
        """Run until all programs have ended, or until the caller has to do something."""
        room = len(self._out) - _WAITS - _HEAD
        return self._halt(self._library.programs_run(self._handle, _at(self._out) + 8 * _WAITS, room))

    def run_whole(
        self,
        chosen: array[int],
        pieces: Pieces | None,
        handles: array[int],
        fork: int,
        events: array[int],
        number: int,
        joins: array[int],
    ) -> tuple[Halt, int, int] | None:
        """Do what `Issuer.begin`, `Pieces.begin`, `begin` and `run` do, and if all programs have ended, `Issuer.join`.

        With polling it does not join, since calls may still wait.

        Returns where running paused, and how many waits hazards asked for and how many were made; None if the driver
        refused to begin or to join.

        Args:
            chosen: programs, by turn.
            pieces: in which calls are issued where they may be, or None.
            handles, fork, events, number: as for `Issuer.begin`.
            joins: as for `Issuer.join`.
        """
        self._make_room(len(chosen))
        at, room = self._out.buffer_info()
        code = self._library.programs_run_whole(
            *(self._handle, self._issuer.handle, None if pieces is None else pieces.handle),
            *(_at(handles), fork, _at(events), number, _at(joins), _at(chosen), len(chosen), at, room - _HEAD),
        )
        return None if code < 0 else (self._halt(code), self._out[0], self._out[1])

    def _make_room(self, programs: int) -> None:
        least = _WAITS + _HEAD + 2 * programs
        if len(self._out) < least:
            self._out = array("q", [0] * least)

    def _halt(self, code: int) -> Halt:
        turn, entry, count, issued, arrived, passed = self._out[_WAITS : _WAITS + _HEAD]
        found = self._out[_WAITS + _HEAD : _WAITS + _HEAD + 2 * arrived] if arrived else ()
        pairs = list(zip(found[::2], found[1::2], strict=True))
        return Halt(_PAUSES[code], turn, entry, count, issued, pairs, passed)

    def advance(self) -> Outcome:
        """Go on behind a call that the caller has launched."""
        return OUTCOMES[self._library.programs_advance(self._handle)]

    def resume(self) -> None:
        """Let the programs go on that have arrived."""
        self._library.programs_resume(self._handle)
