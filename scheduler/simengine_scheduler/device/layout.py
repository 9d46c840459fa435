"""The layout of an image in one block of memory, and the structures through which kernels find its arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..tracing.events import Counters
from .image import Image

_POINTERS = (
    *("tasks", "words", "arguments", "boards", "entries", "next", "remaining", "finished", "ended", "stop"),
    *("has_window", "status", "slots", "upstream", "retired", "times", "checked", "compared"),
)
_NUMBERS = ("num_tasks", "num_words", "window", "own_class", "grid", "longest_pause", "most_words")
_LINE = 128  # bytes of a cache line, which a counter or a board has to itself
_COPIES = 8  # of boards and entries
_ENTRY = 32  # bytes
_PAUSE_A_WORKER = 0.5  # ns; reads of one address are served one after another, some two in a nanosecond
_SHORTEST, _LONGEST = 100, 2000  # pauses between two reads [ns]
_WAITS_FOR = {-2: "for a slot of the window"}
STATUS_WORDS = 4


class ListStruct(ctypes.Structure):
    """The structure `List` of protocol.cuh."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in _POINTERS),
        ("limit", ctypes.c_int64),
        *((name, ctypes.c_int32) for name in _NUMBERS),
    ]


@dataclass(frozen=True, slots=True)
class Layout:
    """Sections of a block of memory: the offset and size [bytes] of each, by name."""

    image: Image
    window: int
    sections: dict[str, tuple[int, int]]
    content: np.ndarray

    @property
    def state(self) -> tuple[int, int]:
        """Where the state of a list begins, and its size [bytes]."""
        start = self.sections["boards"][0]
        return start, len(self.content) - start

    def of(self, name: str, dtype: str, memory: np.ndarray) -> np.ndarray:
        """Return a section of a copy of the block."""
        start, nbytes = self.sections[name]
        return memory[start : start + nbytes].view(dtype)


def lay_out(image: Image, window: int) -> Layout:
    """Return the layout of an image in one block, with its content.

    The sections from `boards` on are the state of a list: it starts with zeros, and is `state_of` the layout.
    """
    n = len(image.calls)
    arrays = {
        "tasks": image.tasks,
        "words": image.words,
        "arguments": image.arguments,
        "times": np.tile(np.array([2**63 - 1, -(2**63)], np.int64), n),
        "checked": np.zeros(1, np.int64),
        "compared": np.zeros(1, np.int64),
    }
    state = {
        "boards": _LINE * _COPIES,
        "entries": _ENTRY * _COPIES * window,
        "next": _LINE * len(image.classes) * window,
        "remaining": _LINE * window,
        **dict.fromkeys(("finished", "stop", "has_window"), _LINE),
        "ended": 4 * image.num_parts,
        "upstream": 8 * n,
        "slots": 4 * n,
        "retired": 4 * n,
    }
    sections, parts, end = {}, [], 0
    for name, raw in [
        *((name, np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)) for name, array in arrays.items()),
        *((name, np.zeros(nbytes, np.uint8)) for name, nbytes in state.items()),
    ]:
        sections[name] = (end, raw.nbytes)
        padding = -raw.nbytes % _LINE
        parts += [raw, np.zeros(padding, np.uint8)]
        end += raw.nbytes + padding
    return Layout(image, window, sections, np.concatenate(parts))


def list_structs(layout: Layout, base: int, status: int, limit: float, times: bool) -> list[ListStruct]:
    """Return the structure for each class of workers. The window takes any of them.

    Args:
        base: address of the block.
        status: address of the words that say what a worker waited for in vain.
        limit: longest wait [s].
        times: whether starts and ends are recorded, and how long checks take.
    """
    image = layout.image
    at = {name: base + start for name, (start, _) in layout.sections.items()}
    workers = sum(of.blocks for of in image.classes)
    common = {
        **{name: at[name] for name in _POINTERS if name in at},
        "status": status,
        "times": at["times"] if times else 0,
        "compared": at["compared"] if times else 0,
        "limit": int(limit * 1e9),
        "num_tasks": len(image.calls),
        "num_words": image.num_words,
        "most_words": image.most_words,
        "window": layout.window,
        "longest_pause": int(min(max(_SHORTEST, _PAUSE_A_WORKER * workers / _COPIES), _LONGEST)),
    }
    return [ListStruct(**common, own_class=c, grid=of.blocks) for c, of in enumerate(image.classes)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a list left behind.

    Attributes:
        waits: for each call those that it was made to wait for, newest first.
        retired: for each call the call that was admitted first after the window had seen it end, or the number of
            calls if there is none.
        times: start and end of each call [ns].
        checked: time of the window [s].
        compared: the part of it in which calls were compared with those in the window [s]; 0 without times.
    """

    waits: list[tuple[int, ...]]
    retired: list[int]
    times: list[tuple[int, int]]
    checked: float
    compared: float

    def count_into(self, counters: Counters) -> None:
        """Add the times of checks to counters."""
        counters.check_seconds += self.checked
        counters.compare_seconds += self.compared


def outcome(layout: Layout, memory: np.ndarray) -> Outcome:
    """Return what a list left in its block."""
    n = len(layout.image.calls)
    slots, retired = (layout.of(name, "i4", memory)[:n].tolist() for name in ("slots", "retired"))
    upstream = layout.of("upstream", "u8", memory)[:n].tolist()
    times = layout.of("times", "i8", memory).reshape(n, 2)
    return Outcome(
        _waits(slots, upstream),
        [by - 1 if by else n for by in retired],
        [(int(start), int(end)) for start, end in times],
        *(float(layout.of(name, "i8", memory)[0]) * 1e-9 for name in ("checked", "compared")),
    )


def _waits(slots: Sequence[int], upstream: Sequence[int]) -> list[tuple[int, ...]]:
    """Return for each call those that it waited for, newest first, by the slots of calls and of those upstream."""
    holder: dict[int, int] = {}  # slot -> the call that is in it
    waits = []
    for call, (slot, bits) in enumerate(zip(slots, upstream, strict=True)):
        waits.append(tuple(sorted((other for at, other in holder.items() if bits >> at & 1), reverse=True)))
        holder[slot] = call
    return waits


def explain(layout: Layout, status: Sequence[int], limit: float) -> tuple[int, str]:
    """Return the call that waited in vain, and a sentence that says for what."""
    _, task, tile, waits_for = (int(x) for x in status)
    calls = layout.image.calls
    who = f"call {calls[task].name!r}" + (f", tile {tile}," if tile >= 0 else "")
    what = _WAITS_FOR.get(waits_for) or f"for call {calls[waits_for].name!r}, which has not ended"
    return task, f"{who} waited {limit:g} s {what}"
