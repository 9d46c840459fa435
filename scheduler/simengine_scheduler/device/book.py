"""The book of an executor: all calls and lists that it knows, as tables on the device (protocol.cuh).

A call is described once, when it first comes, and has a number from then on. It is described anew, under another
number, if a buffer among its arguments has moved; calls that run keep the old description. Tables only grow. When one
is full, the executor lets all work end and begins a new book.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..core.calls import FixedList, KernelCall
from ..launch.arguments import address_of
from ..launch.tasks import DeviceBody, DeviceTask
from .segments import Numbering, Uses, before, words_of
from .workers import Kind

_BITS = (
    *("touched", "written", "touched_whole", "written_whole"),
    *(f"against_{name}" for name in ("written", "touched", "written_whole", "touched_whole")),
)
WORD = np.dtype({"names": ["at", *_BITS], "formats": ["i4"] + ["u4"] * len(_BITS), "itemsize": 48})
TASK = np.dtype(
    [
        *((name, "i4") for name in ("body", "of_class", "arguments", "num_arguments", "tiles", "first_word")),
        *((name, "i4") for name in ("num_words", "first_part", "parts", "strided", "size", "units")),
        ("count", "u8"),
    ]
)
LINE = np.dtype([("before", "u8"), ("tiled", "u8"), ("task", "i4"), ("unused", "i4", 3)])
SCRIPT = np.dtype([("first", "i4"), ("length", "i4")])
MOST_CLASSES = 14
REACH = 64
_ROOM = {"tasks": 4096, "words": 8192, "arguments": 32768, "lines": 8192, "scripts": 1024, "parts": 1 << 18}
_TYPES = {"tasks": TASK, "words": WORD, "arguments": np.dtype(np.uint64), "lines": LINE, "scripts": SCRIPT}
_COUNTERS = {"executions": "tasks", "played": "scripts", "ended": "parts"}


class Full(Exception):
    """A table of the book has no room."""


class Memory(Protocol):
    """Memory of the device."""

    def zeros(self, nbytes: int) -> int:
        """Return the address of new memory, filled with zeros, that lives as long as this object."""
        ...

    def write(self, address: int, array: np.ndarray) -> None:
        """Copy an array to the device, while kernels may run. It is there when this returns."""
        ...

    def read(self, address: int, nbytes: int) -> np.ndarray:
        """Return bytes of the device, once all work is done."""
        ...


@dataclass(slots=True)
class BodyClass:
    """The bodies of one kind that calls of the book have, and the most that their calls ask for.

    Attributes:
        bodies: by number.
        arguments: 8-byte words of arguments.
        memory: shared memory of a block [bytes].
        tiles: of one call.
    """

    bodies: dict[DeviceBody, int] = field(default_factory=dict)
    arguments: int = 0
    memory: int = 0
    tiles: int = 1


@dataclass(frozen=True, slots=True)
class KnownCall:
    """A call in the book: its number, its class, and the segments that it uses."""

    number: int
    of_class: int
    body: DeviceBody
    uses: Uses
    epoch: int


@dataclass(slots=True, eq=False)
class KnownList:
    """A list in the book.

    Attributes:
        number: in the table.
        uses: what its calls use together.
        bodies: of its calls, with the numbers of their classes.
        epochs: the sets of buffers of its calls, and how often their buffers had moved when it was described.
        bit: 1 << number.
        conflicts: the bits of all lists that it conflicts with.
    """

    number: int
    uses: Uses
    bodies: frozenset[tuple[int, DeviceBody]]
    epochs: tuple[tuple[Any, int], ...]
    bit: int
    conflicts: int = 0

    def is_current(self) -> bool:
        """Whether no buffer has moved since."""
        for buffers, epoch in self.epochs:  # noqa: SIM110  (a generator would take twice the time)
            if buffers.epoch != epoch:
                return False
        return True


class _Table:
    """A table: the host's copy, and how many rows are in use and how many of them on the device."""

    def __init__(self, dtype: np.dtype[Any], room: int, memory: Memory) -> None:
        self.rows = np.zeros(room, dtype)
        self.used = self.written = 0
        self.address = memory.zeros(self.rows.nbytes)

    def add(self, rows: Sequence[Any] | np.ndarray) -> int:
        """Add rows and return the number of the first."""
        first, end = self.used, self.used + len(rows)
        if end > len(self.rows):
            raise Full
        if len(rows):
            self.rows[first:end] = rows
        self.used = end
        return first

    def flush(self, memory: Memory) -> None:
        """Copy new rows to the device."""
        if self.written < self.used:
            new = self.rows[self.written : self.used]
            memory.write(self.address + self.written * self.rows.itemsize, new)
            self.written = self.used


class Book:
    """Describes calls and lists.

    Args:
        conflicts: of the table that the segments come from.
        memory: where the tables are.
        tiled: whether calls wait for single parts where they may.
        merged: whether all bodies are of one class.
        scale: how many times larger than usual the tables are.
    """

    def __init__(
        self, conflicts: Sequence[tuple[int, ...]], memory: Memory, tiled: bool, merged: bool, scale: int = 1
    ) -> None:
        self.scale = scale
        self.calls: list[KernelCall] = []
        self.classes: dict[Kind | None, BodyClass] = {}
        self.most_words = 8  # of a call
        self._memory = memory
        self._tiled = tiled
        self._merged = merged
        self._numbering = Numbering(conflicts)
        self._tables = {name: _Table(dtype, _ROOM[name] * scale, memory) for name, dtype in _TYPES.items()}
        self._parts = 0
        self._counters = {name: memory.zeros(4 * scale * _ROOM[of]) for name, of in _COUNTERS.items()}
        self._known: dict[KernelCall, KnownCall] = {}
        self._lists: dict[FixedList, KnownList] = {}
        self._words: dict[Any, tuple[int, int]] = {}
        self._arguments: dict[bytes, tuple[int, int]] = {}

    @property
    def num_words(self) -> int:
        """How many words hold one bit of each segment; a multiple of 8, so that it seldom changes."""
        return -(-self._numbering.words // 8) * 8

    def addresses(self) -> dict[str, int]:
        """Return where the tables and the counters that belong to them are, by name."""
        return {**{name: table.address for name, table in self._tables.items()}, **self._counters}

    def kinds(self) -> list[Kind | None]:
        """Return the kinds of the classes by number; None for the one of a merged book."""
        return list(self.classes)

    def call(self, call: KernelCall) -> KnownCall:
        """Return a call's entry, described anew if it must be.

        Raises:
            ValueError: its launch has no body for workers.
            Full: there is no room for it.
            Outdated: a segment is new, and other calls must be compared with it.
        """
        known = self._known.get(call)
        buffers = getattr(call.launch, "buffers", None)
        epoch = 0 if buffers is None else buffers.epoch
        if known is None or known.epoch != epoch:
            known = self._known[call] = self._describe(call, epoch)
        return known

    def list(self, calls: FixedList) -> KnownList:
        """Return a list's entry, described anew if it must be. Raises what `call` raises."""
        known = self._lists.get(calls)
        if known is None or not known.is_current():
            members = tuple(self.call(call) for call in calls)
            masks = before([member.uses for member in members], REACH)
            lines = [(*mask, member.number, 0) for mask, member in zip(masks, members, strict=True)]
            number = self._tables["scripts"].add([(self._tables["lines"].add(lines), len(lines))])
            uses = Uses(*[0] * 8)
            for member in members:
                uses = uses.joined(member.uses)
            sets = {id(s): s for call in calls if (s := getattr(call.launch, "buffers", None)) is not None}
            bodies = frozenset((member.of_class, member.body) for member in members)
            epochs = tuple((s, s.epoch) for s in sets.values())
            known = KnownList(number, uses, bodies, epochs, 1 << number)
            self._lists.pop(calls, None)
            for other in self._lists.values():
                if uses.conflicts(other.uses):
                    known.conflicts |= other.bit
                    other.conflicts |= known.bit
            self._lists[calls] = known
        return known

    def flush(self) -> None:
        """Copy new descriptions to the device."""
        for table in self._tables.values():
            table.flush(self._memory)

    def _describe(self, call: KernelCall, epoch: int) -> KnownCall:
        task = task_of(call)
        uses = self._numbering.uses(call)
        words, arguments = self._place_words(call, uses), self._place_arguments(call)
        of_class, body = self._place_body(task, arguments[1])
        parts = task.tiling.parts(task.tiles) if self._tiled and call.tiled else 0
        if self._parts + parts > self.scale * _ROOM["parts"]:
            raise Full
        count = 0 if task.count is None else address_of(task.count)
        tiling = (self._parts, parts, task.tiling.kind == "strided", task.tiling.size)
        row = (body, of_class, *arguments, task.tiles, *words, *tiling, task.units, count)
        number = self._tables["tasks"].add(np.array([row], TASK))
        self._parts += parts
        self.calls.append(call)
        return KnownCall(number, of_class, task.body, uses, epoch)

    def _place_words(self, call: KernelCall, uses: Uses) -> tuple[int, int]:
        key = (call.reads, call.writes, call.updates, call.tiled)
        if key not in self._words:
            rows = words_of(uses)
            self._words[key] = (self._tables["words"].add(rows), len(rows))
            self.most_words = max(self.most_words, -(-len(rows) // 8) * 8)
        return self._words[key]

    def _place_arguments(self, call: KernelCall) -> tuple[int, int]:
        words = call.launch.packed_arguments()  # type: ignore[attr-defined]
        key = words.tobytes()
        if key not in self._arguments:
            self._arguments[key] = (self._tables["arguments"].add(words), len(words))
        return self._arguments[key]

    def _place_body(self, task: DeviceTask, arguments: int) -> tuple[int, int]:
        """Return the number of the class of a task, and of its body in it."""
        body = task.body
        kind = None if self._merged else Kind(body.threads, body.registers, body.family)
        if kind not in self.classes and len(self.classes) == MOST_CLASSES:
            raise ValueError(
                f"body {body.name!r} is of another resource class than the {MOST_CLASSES} that executor 'device' runs "
                f"already, which is the most; give bodies the same threads, registers and family, or choose executor "
                f"'graph-cached'"
            )
        of = self.classes.setdefault(kind, BodyClass())
        of.arguments = max(of.arguments, -(-arguments // 2) * 2)
        of.memory = max(of.memory, task.memory)
        of.tiles = max(of.tiles, task.tiles)
        return list(self.classes).index(kind), of.bodies.setdefault(body, len(of.bodies))


def task_of(call: KernelCall) -> DeviceTask:
    """Return how workers run a call. Raises ValueError if its launch does not say."""
    task: DeviceTask | None = getattr(call.launch, "task", None)
    if task is None:
        raise ValueError(
            f"executor 'device' cannot run call {call.name!r}, whose launch has no body for workers; give its launch a "
            f"DeviceTask, or choose executor 'graph-cached'"
        )
    return task
