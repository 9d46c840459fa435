"""The layout of an image in one block of memory, and the structures through which kernels find its arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..tracing.events import Counters
from .image import FIRST_CLASS, GATHERED, HAS_WINDOW, OF_CLASS, STOP, STRIDE, Image

_POINTERS = (
    *("tasks", "words", "arguments", "tickets", "records", "admitted", "next", "taken", "remaining", "ended"),
    "upstream_count",
    *("upstream", "retired", "stop", "has_window", "begun", "gathered", "status", "times", "checked", "compared"),
)
_NUMBERS = (
    "num_tasks",
    "num_tickets",
    "num_words",
    "window",
    "longest_pause",
    "most_words",
    "num_classes",
    "record_words",
)
_PAUSE_A_WORKER = 0.5  # ns; reads of one address are served one after another, some two in a nanosecond
_SHORTEST, _LONGEST = 100, 2000  # pauses between two reads [ns]
_TILED = 0x40000000
_WAITS_FOR = {-1: "for the window to admit it", -2: "for a slot of the window"}
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

    def of(self, name: str, dtype: str, memory: np.ndarray) -> np.ndarray:
        """Return a section of a copy of the block."""
        start, nbytes = self.sections[name]
        return memory[start : start + nbytes].view(dtype)


def lay_out(image: Image, window: int) -> Layout:
    """Return the layout of an image in one block, with its content."""
    n, known = len(image.calls), image.records
    arrays = {
        "tasks": image.tasks,
        "words": image.words,
        "arguments": image.arguments,
        **{f"tickets{c}": of.tickets for c, of in enumerate(image.classes)},
        "first": image.state,
        "state": image.state,
        "records": np.zeros(0, np.uint64) if known is None else known.words,
        "upstream": np.zeros(n * window if known is None else 0, np.int32),
        "times": np.tile(np.array([2**63 - 1, -(2**63)], np.int64), n),
        "checked": np.zeros(1, np.int64),
        "compared": np.zeros(1, np.int64),
    }
    sections, parts, end = {}, [], 0
    for name, array in arrays.items():
        raw = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        sections[name] = (end, raw.nbytes)
        padding = -raw.nbytes % 16
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
    state = at["state"]
    common = {
        **{name: at[name] for name in ("tasks", "words", "arguments", "records", "upstream", "checked")},
        **{name: state + 4 * getattr(image, name) for name in ("remaining", "ended", "upstream_count", "retired")},
        "admitted": state,
        "taken": 0 if image.taken is None else state + 4 * image.taken,
        "stop": state + 4 * STRIDE * STOP,
        "has_window": state + 4 * STRIDE * HAS_WINDOW,
        "gathered": state + 4 * STRIDE * GATHERED,
        "status": status,
        "times": at["times"] if times else 0,
        "compared": at["compared"] if times else 0,
        "limit": int(limit * 1e9),
        "num_tasks": len(image.calls),
        "num_words": image.num_words,
        "most_words": image.most_words,
        "num_classes": len(image.classes),
        "window": layout.window,
        "longest_pause": int(min(max(_SHORTEST, _PAUSE_A_WORKER * sum(c.blocks for c in image.classes)), _LONGEST)),
    }
    return [
        ListStruct(
            **common,
            tickets=at[f"tickets{c}"],
            next=state + 4 * STRIDE * (FIRST_CLASS + OF_CLASS * c),
            begun=state + 4 * STRIDE * (FIRST_CLASS + OF_CLASS * c + 1),
            num_tickets=len(of.tickets),
            record_words=of.record,
        )
        for c, of in enumerate(image.classes)
    ]


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
    image, n = layout.image, len(layout.image.calls)
    times = [(int(start), int(end)) for start, end in layout.of("times", "i8", memory).reshape(n, 2)]
    if image.records is not None:
        return Outcome([tuple(wait.call for wait in own) for own in image.records.waits], [n] * n, times, 0.0, 0.0)
    state = layout.of("state", "i4", memory)
    upstream = layout.of("upstream", "i4", memory).reshape(n, layout.window)
    counts = state[image.upstream_count : image.upstream_count + n]
    waits = [
        tuple(sorted((int(other) & ~_TILED for other in row[:count]), reverse=True))
        for row, count in zip(upstream, counts, strict=True)
    ]
    return Outcome(
        waits,
        state[image.retired : image.retired + n].tolist(),
        times,
        *(float(layout.of(name, "i8", memory)[0]) * 1e-9 for name in ("checked", "compared")),
    )


def explain(layout: Layout, status: Sequence[int], limit: float) -> tuple[int, str]:
    """Return the call that waited in vain, and a sentence that says for what."""
    _, task, tile, waits_for = (int(x) for x in status)
    calls = layout.image.calls
    who = f"call {calls[task].name!r}" + (f", tile {tile}," if tile >= 0 else "")
    what = _WAITS_FOR.get(waits_for) or f"for call {calls[waits_for].name!r}, which has not ended"
    return task, f"{who} waited {limit:g} s {what}"
