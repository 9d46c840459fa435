"""Sessions: a window and workers that run on the device together, until the host ends the list that they run.

A session has workers of some resource classes, whose grids fit on the device together. It runs any calls whose bodies
its workers have, so it is kept and started again.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..launch.tasks import DeviceBody
from .book import MOST_CLASSES, WORD, Book, Memory
from .occupancy import Multiprocessors, Need, joint_grids
from .recording import Log
from .ring import SIZE
from .workers import Kind, WorkersOf

MOST_SLOTS = 64
WINDOW_THREADS = 32
Bodies = Mapping[int, frozenset[DeviceBody]]
"""Bodies by the number of their class."""

_WINDOW_REGISTERS = 128  # registers of a thread, at most
_OPENED_TOGETHER = 4
_MOST_PLAYED = 64
_KINDS = 4  # kinds of bits that the window holds for a slot
_STATIC = 256  # shared memory that a block of workers takes for itself [bytes], at most
_LINE = 128  # bytes of a cache line, which a counter or a board has to itself
_COPIES = 8  # of boards and entries
_ENTRY = 64  # bytes
_PAUSE_A_WORKER = 0.5  # ns; reads of one address are served one after another, some two in a nanosecond
_SHORTEST, _LONGEST = 100, 2000  # pauses between two reads [ns]
_TABLES = ("tasks", "words", "arguments", "lines", "scripts")
_COUNTERS = ("executions", "played", "ended")
_STATE = ("boards", "entries", "remaining", "finished", "stop", "has_window", "next")
_LOG = ("slots", "upstream", "retired", "times", "checked", "compared")


class ListStruct(ctypes.Structure):
    """The structure `List` of protocol.cuh."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in (*_TABLES, "numbers", "ring", "status", "notices", "place", *_COUNTERS)),
        *((name, ctypes.c_uint64) for name in ("boards", "entries", "next", "remaining", "finished", "stop")),
        *((name, ctypes.c_uint64) for name in ("has_window", *_LOG)),
        ("limit", ctypes.c_int64),
        ("grids", ctypes.c_int32 * MOST_CLASSES),
        *((name, ctypes.c_int32) for name in ("own_class", "ring_size", "num_words", "window", "longest_pause")),
        *((name, ctypes.c_int32) for name in ("most_words", "num_recorded")),
    ]


def window_memory(num_words: int, window: int, most_words: int) -> int:
    """Return the shared memory of the window [bytes].

    It holds words of two calls, bits and seven numbers of each slot, and numbers of slots that are about to open, of
    classes and of lists that are played.
    """
    slots = (_KINDS * 4 * num_words + 2 * 8 + 5 * 4) * window
    return slots + 2 * WORD.itemsize * most_words + 4 * (2 * _OPENED_TOGETHER + MOST_CLASSES + 4 * _MOST_PLAYED)


class SessionClass(NamedTuple):
    """The workers of one class.

    Attributes:
        number: of the class in the book.
        kind: of the program.
        bodies: those of the program, in the order of their numbers there.
        arguments: 8-byte words of shared memory for arguments.
        memory: shared memory of a block [bytes]: arguments and what tasks ask for, or what the window needs.
        tiles: of the largest call that the grid was planned for.
        blocks: of the grid.
    """

    number: int
    kind: Kind
    bodies: tuple[DeviceBody, ...]
    arguments: int
    memory: int
    tiles: int
    blocks: int


@dataclass(slots=True, eq=False)
class Session:
    """A window and workers.

    Attributes:
        classes: the workers.
        bodies: what the workers must run, and do.
        num_words, most_words, window_memory: what the window has room for.
        shared: the most shared memory that the blocks on a multiprocessor take [bytes].
        structs: by class, the structure that its workers read.
        handle: what starts the session.
        lists: the bits of lists known to have its bodies.
    """

    classes: tuple[SessionClass, ...]
    bodies: Bodies
    num_words: int
    most_words: int
    window_memory: int
    shared: int = 0
    structs: list[ListStruct] = field(default_factory=list)
    handle: int = 0
    lists: int = 0

    @property
    def merged(self) -> bool:
        """Whether one block of the workers is the window."""
        return self.classes[0].kind.merged

    def can_run(self, book: Book, bodies: Bodies) -> bool:
        """Whether it has these bodies, and room for all that calls of the book ask for."""
        if any(not own <= self.bodies.get(number, frozenset()) for number, own in bodies.items()):
            return False
        if book.num_words > self.num_words or book.most_words > self.most_words:
            return False
        of = list(book.classes.values())
        return all(
            of[c.number].arguments <= c.arguments
            and 8 * c.arguments + of[c.number].memory <= c.memory
            and of[c.number].tiles <= c.tiles
            for c in self.classes
        )


def plan_session(
    book: Book, bodies: Bodies, device: Multiprocessors, window: int, workers_of: WorkersOf, merged: bool
) -> Session:
    """Return a session for some bodies.

    Args:
        book: says what calls of the bodies ask for.
        bodies: what the workers must run. Not empty.
        device: the resources that workers share.
        window: slots of the window.
        workers_of: returns workers that run given bodies, and maybe others.
        merged: whether all bodies are one class, of which one block is the window.

    Raises:
        ValueError: the workers do not fit on the device together.
    """
    kinds = book.kinds()
    wanted = {kinds[number] or _merged_kind(own): (number, own) for number, own in bodies.items()}
    programs = workers_of({kind: own for kind, (_, own) in wanted.items()})
    memory = window_memory(book.num_words, window, book.most_words)
    of_window = Need(WINDOW_THREADS, _WINDOW_REGISTERS, memory, 1)
    of_classes = list(book.classes.values())
    made, needs = [], []
    for kind in sorted(wanted, reverse=True):
        number, of, program = wanted[kind][0], of_classes[wanted[kind][0]], programs[kind]
        shared, work = 8 * of.arguments + of.memory, window * of.tiles
        if merged:
            shared, work = max(shared, memory), work + 1
        needs.append(Need(kind.threads, program.registers, shared + _STATIC, work))
        made.append(SessionClass(number, kind, program.bodies, of.arguments, shared, of.tiles, 0))
    grids, most = joint_grids(needs, device, None if merged else of_window)
    if merged and grids[0] < 2:
        raise ValueError(
            "executor option merged=True needs room for two blocks of workers, of which one is the window, and the "
            "device has it for one; use bodies of fewer threads, registers or less memory, or choose merged=False"
        )
    classes = tuple(of._replace(blocks=blocks) for of, blocks in zip(made, grids, strict=True))
    return Session(classes, dict(bodies), book.num_words, book.most_words, memory, most)


def _merged_kind(bodies: frozenset[DeviceBody]) -> Kind:
    return Kind(max(body.threads for body in bodies), max(body.registers for body in bodies), merged=True)


class State:
    """Where the window and the workers keep what they do. It starts with zeros in every session, except `place`."""

    def __init__(self, memory: Memory, window: int) -> None:
        sizes = {
            "boards": _LINE * _COPIES,
            "entries": _ENTRY * _COPIES * window,
            "remaining": _LINE * window,
            **dict.fromkeys(("finished", "stop", "has_window"), _LINE),
            "next": _LINE * MOST_CLASSES * window,
        }
        self.place = memory.zeros(_LINE)
        self.start = memory.zeros(sum(sizes.values()))
        self._of_class = _LINE * window
        self._addresses, end = {}, self.start
        for name in _STATE:
            self._addresses[name] = end
            end += sizes[name]

    def addresses(self) -> dict[str, int]:
        """Return where the parts are, by name."""
        return {**self._addresses, "place": self.place}

    def size(self, classes: int) -> int:
        """Return how much of it classes with numbers up to this one use [bytes]."""
        return self._addresses["next"] - self.start + self._of_class * classes


def fill_structs(
    session: Session,
    book: Book,
    memory: Memory,
    places: Mapping[str, int],
    log: Log | None,
    window: int,
    limit: float,
) -> None:
    """Set the structure of each class of a session. The window takes any of them.

    Args:
        session: gets the structures.
        book: its tables.
        memory: gets a table of the numbers of bodies.
        places: addresses of the ring, its parts, and the state.
        log: what is recorded, or None.
        window: slots.
        limit: longest wait [s].
    """
    workers = sum(of.blocks for of in session.classes)
    known = list(book.classes.values())
    common: dict[str, Any] = {
        **book.addresses(),
        **places,
        **({} if log is None else log.addresses()),
        "limit": int(limit * 1e9),
        "ring_size": SIZE,
        "num_words": session.num_words,
        "most_words": session.most_words,
        "window": window,
        "longest_pause": int(min(max(_SHORTEST, _PAUSE_A_WORKER * workers / _COPIES), _LONGEST)),
        "num_recorded": 0 if log is None else log.room,
    }
    names = {declared[0] for declared in ListStruct._fields_}
    session.structs = []
    for of in session.classes:
        place = {body: number for number, body in enumerate(of.bodies)}
        numbers = np.array([place.get(body, -1) for body in known[of.number].bodies], np.int32)
        address = memory.zeros(numbers.nbytes)
        memory.write(address, numbers)
        struct = ListStruct(
            **{name: value for name, value in common.items() if name in names}, numbers=address, own_class=of.number
        )
        for other in session.classes:
            struct.grids[other.number] = other.blocks
        session.structs.append(struct)
