"""The image of a list: its calls as the arrays that the window and the workers on the device read (protocol.cuh).

A hazard check is a few ANDs of the words of a call (`words.py`) with the bits of a slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..core.calls import KernelCall
from ..launch.arguments import address_of
from ..launch.tasks import DeviceBody, DeviceTask
from .occupancy import Multiprocessors, Need, joint_grids
from .records import Records
from .words import WORD, WordTable
from .workers import Kind, WorkersOf, just_these

TASK = np.dtype(
    [
        *((name, "i4") for name in ("body", "arguments", "num_arguments", "tiles", "run", "first_word", "num_words")),
        *((name, "i4") for name in ("first_part", "parts", "strided", "size", "units")),
        ("count", "u8"),
    ]
)
TICKET = np.dtype([("task", "i4"), ("first", "i4")])
STRIDE = 32
STOP, HAS_WINDOW, GATHERED, FIRST_CLASS = 1, 2, 3, 4  # positions in the state in units of STRIDE; `admitted` is at 0
OF_CLASS = 2  # counters of each class: its next ticket, and its blocks that have begun
_KINDS = 4  # kinds of bits that the window holds for a slot

WINDOW_THREADS = 32
_WINDOW_REGISTERS = 128  # registers of a thread, at most


def window_memory(num_words: int, window: int, most_words: int) -> int:
    """Return the shared memory of the window [bytes]: bits and two numbers of each slot, and the words of two tasks."""
    return _KINDS * 4 * num_words * window + 8 * window + 2 * WORD.itemsize * most_words


class ResourceClass(NamedTuple):
    """The workers of one kind, and their work."""

    kind: Kind
    memory: int  # shared memory of a block [bytes]: arguments, records and what the body asks for, or the window's
    arguments: int  # 8-byte words of the task with the most arguments, rounded up to an even number
    bodies: tuple[DeviceBody, ...]
    blocks: int
    tickets: np.ndarray
    record: int = 0  # words of the longest record


@dataclass(frozen=True, slots=True)
class Image:
    """The arrays of one list.

    Attributes:
        state: int32 numbers that the list starts with. First come numbers that are STRIDE apart, so that reads of one
            do not slow down others: `admitted`, `stop`, `has_window`, `gathered`, for each class its next ticket and
            its blocks that have begun, and for each task the tickets that remain. Then come, side by side, for each
            part the tiles that have ended, for each task the number of upstream tasks, and for each task the task that
            was admitted first after its end. Last come, for each task, its taken tickets.
        remaining, ended, upstream_count, retired: where these begin in the state.
        taken: where the counters of taken tickets of each task begin, STRIDE apart; None with tickets in program order.
        num_words: how many words hold one bit of each segment.
        records: of a list whose waits the host has worked out. It has no words, and nothing about upstream tasks.
    """

    calls: tuple[KernelCall, ...]
    classes: tuple[ResourceClass, ...]
    tasks: np.ndarray
    words: np.ndarray
    arguments: np.ndarray
    state: np.ndarray
    remaining: int
    ended: int
    upstream_count: int
    retired: int
    num_words: int
    taken: int | None
    records: Records | None = None

    @property
    def most_words(self) -> int:
        """Words of the task that has the most."""
        return int(self.tasks["num_words"].max(initial=0))

    @property
    def with_window(self) -> bool:
        """Whether the window has a launch of its own: it is neither one of the blocks, nor left out."""
        return not self.classes[0].kind.merged and self.records is None


def task_of(call: KernelCall) -> DeviceTask:
    """Return how workers run a call. Raises ValueError if its launch does not say."""
    task: DeviceTask | None = getattr(call.launch, "task", None)
    if task is None:
        raise ValueError(
            f"executor 'device' cannot run call {call.name!r}, whose launch has no body for workers; give its launch a "
            f"DeviceTask, or choose executor 'graph-cached'"
        )
    return task


def build_image(
    calls: Sequence[KernelCall],
    conflicts: Sequence[tuple[int, ...]],
    device: Multiprocessors,
    window: int,
    tiled: bool = True,
    workers_of: WorkersOf | None = None,
    merged: bool = False,
    ready: bool = False,
    known_words: WordTable | None = None,
) -> Image:
    """Return the image of calls in program order.

    Args:
        conflicts: the conflicts of the table that the segments come from.
        device: the resources that workers share.
        window: slots of the window.
        tiled: whether calls wait for single parts where they may.
        workers_of: returns workers that run given bodies, and maybe others; without it, workers run just these bodies.
        merged: whether all bodies are one class, of which one block is the window.
        ready: whether tickets of any ready task are taken. Calls then wait for whole calls.
        known_words: words of calls of earlier images, so that they are not worked out again.

    Raises:
        ValueError: a call cannot run on the device, or the workers do not fit on it together.
    """
    given = [task_of(call) for call in calls]
    words, spans, num_words = (known_words or WordTable(conflicts)).of(calls)
    arguments, places = _all_arguments(calls)
    most_words = max((count for _, count in spans), default=0)
    of_window = Need(WINDOW_THREADS, _WINDOW_REGISTERS, window_memory(num_words, window, most_words), 1)
    words_of = [count for _, count in places]
    classes, of_body = _classes(given, words_of, device, workers_of or just_these, of_window, merged, ready)
    rows, runs = [], []
    parts = 0
    for i, (call, task) in enumerate(zip(calls, given, strict=True)):
        c, body = of_body[task.body]
        own = task.tiling.parts(task.tiles) if tiled and call.tiled and not ready else 0
        run = -(-task.tiles // classes[c].blocks)  # taking a ticket costs some 13 ns, and tickets are taken one by one
        count = 0 if task.count is None else address_of(task.count)
        part = (parts, own, task.tiling.kind == "strided", task.tiling.size)
        rows.append((body, *places[i], task.tiles, run, *spans[i], *part, task.units, count))
        runs.append(run)
        parts += own
    tasks = np.array(rows, TASK)
    tickets: list[list[tuple[int, int]]] = [[] for _ in classes]
    for i, task in enumerate(given):
        firsts = (0,) if ready else range(0, task.tiles, runs[i])
        tickets[of_body[task.body][0]] += [(i, first) for first in firsts]
    remaining = -(-tasks["tiles"] // tasks["run"])
    n = len(calls)
    head = STRIDE * (FIRST_CLASS + OF_CLASS * len(classes))
    ended = head + n * STRIDE
    taken = -(-(ended + parts + 2 * n) // STRIDE) * STRIDE
    state = np.zeros(taken + n * STRIDE if ready else ended + parts + 2 * n, np.int32)
    state[head:ended:STRIDE] = remaining
    state[ended + parts + n : ended + parts + 2 * n] = n
    return Image(
        tuple(calls),
        tuple(of._replace(tickets=np.array(own, TICKET)) for of, own in zip(classes, tickets, strict=True)),
        tasks,
        words,
        arguments,
        state,
        head,
        ended,
        ended + parts,
        ended + parts + n,
        num_words,
        taken if ready else None,
    )


def _classes(
    tasks: Sequence[DeviceTask],
    arguments: Sequence[int],
    device: Multiprocessors,
    workers_of: WorkersOf,
    of_window: Need,
    merged: bool,
    ready: bool,
) -> tuple[list[ResourceClass], dict[DeviceBody, tuple[int, int]]]:
    """Return the resource classes of some tasks, and for each body its class and its number there."""
    made, needs = [], []
    kinds = kinds_of([task.body for task in tasks], merged, ready)
    workers = workers_of({kind: frozenset(tasks[i].body for i in own) for kind, own in kinds.items()})
    for kind, own in sorted(kinds.items(), reverse=True):
        bodies, taken = workers[kind]
        words = -(-max(arguments[i] for i in own) // 2) * 2
        memory = 8 * words + max(tasks[i].memory for i in own)
        work = sum(tasks[i].tiles for i in own)
        if merged:
            memory, work = max(memory, of_window.shared), work + 1
        needs.append(Need(kind.threads, taken, memory, work))
        made.append(ResourceClass(kind, memory, words, bodies, 0, np.zeros(0, TICKET)))
    grids = joint_grids(needs, device, None if merged else of_window)
    if merged and grids[0] < 2:
        raise ValueError(
            "executor option merged=True needs room for two blocks of workers, of which one is the window, and the "
            "device has it for one; use bodies of fewer threads, registers or less memory, or choose merged=False"
        )
    classes = [of._replace(blocks=blocks) for of, blocks in zip(made, grids, strict=True)]
    return classes, {body: (c, i) for c, of in enumerate(classes) for i, body in enumerate(of.bodies)}


def kinds_of(
    bodies: Sequence[DeviceBody], merged: bool, ready: bool = False, known: bool = False
) -> dict[Kind, list[int]]:
    """Return the kinds of bodies, and the positions of the bodies of each."""
    if merged:
        one = Kind(max(body.threads for body in bodies), max(body.registers for body in bodies), "", True, ready, known)
        return {one: list(range(len(bodies)))}
    found: dict[Kind, list[int]] = {}
    for i, body in enumerate(bodies):
        found.setdefault(Kind(body.threads, body.registers, body.family, False, ready, known), []).append(i)
    return found


def _all_arguments(calls: Sequence[KernelCall]) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Return the 8-byte words of all arguments, equal ones once, and for each call its first word and their number."""
    known: dict[bytes, tuple[int, int]] = {}
    parts: list[np.ndarray] = []
    places, end = [], 0
    for call in calls:
        words = call.launch.packed_arguments()  # type: ignore[attr-defined]
        key = words.tobytes()
        if key not in known:
            known[key] = (end, len(words))
            parts.append(words)
            end += len(words)
        places.append(known[key])
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64), places
