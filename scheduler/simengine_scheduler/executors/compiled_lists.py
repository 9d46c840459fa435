"""Counted lists that compiled code runs, beside fixed lists, on streams or on one stream.

    lists --numbers, tables of calls by count--> programs (C++) --> issuer --> driver
                        ^                            |
                        +--- a count that is new, an awaited call that has ended, a call that only Python can launch

Invariants
    1. A program has the calls of its list by number, and for each counted entry a table of numbers by count. A count
       that is new is looked up by Python once.
    2. What follows an awaited call is issued only once Python has run the entry's `then`, unless compiled code finds
       that what was counted has room.
    3. The programs of counted lists end with these, since such a list refers to the memory that its counts fill. The
       calls that they had are kept as all others are.
    4. A call whose buffers have moved is defined again, before the run or behind the `then` that moved them. If another
       list has moved a buffer of its set, it is defined again at the latest when a copy of it is defined: copies share
       packed arguments, of which only the latest are kept.
"""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..core.calls import FixedList, KernelCall
from ..core.counted import Arrival, Counted, CountedList, Entry
from ..core.errors import call_failed
from ..launch.arguments import BufferSet
from ..native.issuer import Outcome
from ..native.programs import AWAIT, CALL, COUNTED, Halt, Pause, Programs
from .compiled import CompiledCalls, failed
from .cuda import CudaRun
from .kept_pieces import KeptPieces

_MOST_ENDED = 1024  # programs of lists that are no more, at which all programs are made anew


class Known:
    """A list as a program. A fixed list is kept alive, so that no other gets its id().

    Args:
        given: the list.
        end: called once a counted list is no more.

    Attributes:
        number: of its program.
        tables: of its counted entries, by position.
        calls: those that it has had so far.
        buffers, moves: of the arguments of these calls, and how often these had moved when they were defined.
        looked: what `BufferSet.changes` was when these were looked at.
        rooms: words that its program reads, kept alive.
    """

    __slots__ = ("_fixed", "_given", "buffers", "calls", "looked", "moves", "number", "rooms", "tables")

    def __init__(self, given: CountedList | FixedList, end: Callable[[object], object]) -> None:
        self._fixed = given if isinstance(given, FixedList) else None
        self._given = weakref.ref(given, end) if isinstance(given, CountedList) else None
        self.number = -1
        self.tables: dict[int, int] = {}
        self.calls: list[KernelCall] = []
        self.buffers: list[Any] = []
        self.moves: list[int] = []
        self.rooms: list[array[int]] = []
        self.looked = -1

    def entry(self, number: int) -> Entry:
        """Return an entry of the counted list, which its caller runs and so keeps alive."""
        given = None if self._given is None else self._given()
        assert given is not None, "entries are asked for only while the list runs"
        return given.entries[number]

    def add(self, call: KernelCall) -> None:
        """Note a call."""
        self.calls.append(call)
        buffers = getattr(call.launch, "buffers", None)
        if buffers is not None and not any(buffers is known for known in self.buffers):
            self.buffers.append(buffers)
            self.moves.append(buffers.moves)


def are_lists(emitters: Any) -> bool:
    """Whether all emitters are counted or fixed lists, and one of them is counted."""
    if type(emitters) is not list:
        return False
    kinds = set(map(type, emitters))
    return CountedList in kinds and kinds <= {CountedList, FixedList}


def are_fixed(emitters: Any) -> bool:
    """Whether all emitters are fixed lists, which an executor may look at once and run again and again."""
    return type(emitters) is list and all(type(emitter) is FixedList for emitter in emitters)


class CompiledLists:
    """The programs of an executor. Its calls are those of `calls`, which may be issued as `pieces`."""

    def __init__(self, calls: CompiledCalls, pieces: KeptPieces | None = None) -> None:
        self.calls = calls
        self.pieces = pieces
        self.programs = Programs(calls.issuer)
        self._known: dict[int, Known] = {}
        self._made = 0  # programs, among them those of lists that are no more

    def __len__(self) -> int:
        return len(self._known)

    def forget(self) -> None:
        """Forget all lists, as when the issuer has forgotten all calls. No run may be under way."""
        self._known.clear()
        self._made = 0
        self.programs.forget()

    def make_room(self) -> None:
        """Forget all calls if there are too many, and with them the lists that have their numbers."""
        if self.calls.make_room():
            self.forget()

    def known(self, lists: Sequence[CountedList | FixedList]) -> list[Known]:
        """Return the programs of lists, whose calls are defined for the buffers as they are."""
        if self._made - len(self._known) > _MOST_ENDED:
            self.forget()
        found, changes = [], BufferSet.changes
        for given in lists:
            own = self._known.get(id(given))
            if own is None:
                own = self._known[id(given)] = self._make(given)
            elif own.looked != changes:
                own.looked = changes
                if [buffers.moves for buffers in own.buffers] != own.moves:
                    self.define_again(own)
            found.append(own)
        self.calls.hand_over()
        return found

    def define_again(self, own: Known) -> None:
        """Define the calls of a list again whose buffers have moved. `hand_over` must follow."""
        moves = [buffers.moves for buffers in own.buffers]
        self.calls.numbers(own.calls)
        own.moves = moves

    def look_up(self, own: Known, entry: int, count: int) -> None:
        """Give a counted entry its call for a count, and for those that have the same."""
        counted = own.entry(entry)
        assert isinstance(counted, Counted)
        call = counted.call(count)
        own.add(call)
        (number,) = self.calls.numbers([call])
        if [buffers.moves for buffers in own.buffers] != own.moves:  # another list has moved a buffer of the same set
            self.define_again(own)
        self.calls.hand_over()
        alike = range(count, count + 1) if counted.alike is None else counted.alike(count)
        self.programs.set(own.tables[entry], alike, number)

    def _make(self, given: CountedList | FixedList) -> Known:
        own = Known(given, partial(_end, self._known, id(given)))
        entries, place = [], dict[KernelCall, int]()
        for position, entry in enumerate(given.entries if isinstance(given, CountedList) else given):
            if isinstance(entry, Arrival):
                entries.append((AWAIT, place[entry.call], 0, 0, _rooms(own, entry)))
            elif isinstance(entry, Counted):
                own.tables[position] = self.programs.add_table()
                seen = 0 if entry.seen is None else entry.seen.ctypes.data
                entries.append((COUNTED, own.tables[position], entry.count.ctypes.data, seen, 0))
            else:
                own.add(entry)
                place[entry] = position
                entries.append((CALL, self.calls.numbers([entry])[0], 0, 0, 0))
        own.number = self.programs.add(entries)
        self._made += 1
        return own


def _end(known: dict[int, Known], key: int, _: object) -> None:
    """Forget a list that is no more, before another may get its id()."""
    known.pop(key, None)


def _rooms(own: Known, entry: Arrival) -> int:
    """Return the address of words that say which counts must have how much room; 0 if Python looks itself."""
    if entry.rooms is None:
        return 0
    words = array("q", [len(entry.rooms)])
    for counts, room in entry.rooms:
        words.extend((counts.ctypes.data, len(counts), room.ctypes.data))
    own.rooms.append(words)
    return words.buffer_info()[0]


def run_lists(
    run: CudaRun,
    lists: CompiledLists,
    known: Sequence[Known],
    foreign: Callable[[], int],
    follow_up: Callable[[], Outcome] | None,
    halt: Halt | None = None,
) -> tuple[int, int]:
    """Run programs to their end, after `Programs.begin`. Returns how many calls were issued and awaited.

    Args:
        run: notes the latest call, and raises its faults.
        lists: the programs of the executor.
        known: those of the run, by turn.
        foreign: returns the stream handle of a call that Python launches.
        follow_up: called behind such a call.
        halt: where they are, if they run already.

    Raises:
        CallError: a call could not be launched.
    """
    programs, awaits = lists.programs, 0
    halt = halt or programs.run()
    while halt.pause is not Pause.ENDED:
        if halt.pause is Pause.ARRIVED:
            awaits += len(halt.arrived)
            _arrive(run, lists, known, halt)
        elif halt.pause is Pause.MISSING:
            lists.look_up(known[halt.turn], halt.entry, halt.count)
        else:
            outcome = Outcome.FAILED
            if halt.pause is Pause.FOREIGN:
                call = run.latest = lists.calls.by_number[lists.calls.issuer.state().number]
                try:
                    call.launch.issue(foreign())
                except Exception as error:
                    raise call_failed(call, run.executor, error) from error
                outcome = follow_up() if follow_up is not None else Outcome.DONE
                outcome = programs.advance() if outcome is Outcome.DONE else outcome
            if outcome is Outcome.FAILED:
                raise failed(run, lists.calls)
        halt = programs.run()
    return halt.issued, awaits + halt.passed


def _arrive(run: CudaRun, lists: CompiledLists, known: Sequence[Known], halt: Halt) -> None:
    """Let the lists go on whose awaited calls have ended."""
    moved = False
    for turn, entry in halt.arrived:
        own = known[turn]
        arrival = own.entry(entry)
        assert isinstance(arrival, Arrival)
        arrival.then()
        if [buffers.moves for buffers in own.buffers] != own.moves:
            # with polling, calls of before may wait in the window, which belong to the memory of before
            if lists.calls.issuer.drain() is Outcome.FAILED:
                raise failed(run, lists.calls)
            lists.define_again(own)
            moved = True
    if moved:
        lists.calls.hand_over()
    if lists.pieces is not None:
        lists.pieces.look()
    lists.programs.resume()


def latest_of(known: Sequence[Known]) -> KernelCall | None:
    """Return a call of the last list, to be named in errors that come late."""
    return next((own.calls[-1] for own in reversed(known) if own.calls), None)


def numbers_of(known: Sequence[Known]) -> array[int]:
    """Return the numbers of programs."""
    return array("i", [own.number for own in known])
