"""The image of a list whose waits the host works out: records of its calls, and chains that blocks take (known.cuh)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.calls import KernelCall
from ..launch.arguments import address_of
from ..launch.tasks import DeviceBody, DeviceTask
from .chains import Chain, chains_of, most_at_once
from .image import FIRST_CLASS, OF_CLASS, STRIDE, TASK, TICKET, Image, ResourceClass, kinds_of, task_of
from .occupancy import Multiprocessors, Need, joint_grids
from .records import make_records, words_of
from .upstream import upstream_of
from .workers import Kind, WorkersOf, just_these

_BESIDE = 2
"""Blocks for each that works at once. The others have tickets of calls that come next, and wait for what these need."""


def build_known_image(
    calls: Sequence[KernelCall],
    conflicts: Sequence[tuple[int, ...]],
    device: Multiprocessors,
    tiled: bool = True,
    workers_of: WorkersOf | None = None,
    merged: bool = False,
) -> Image:
    """Return the image of calls in program order.

    Args:
        conflicts: the conflicts of the table that the segments come from.
        device: the resources that workers share.
        tiled: whether calls wait for single parts where they may. Without it, no calls are a chain.
        workers_of: returns workers that run given bodies, and maybe others; without it, workers run just these bodies.
        merged: whether all bodies are one class.

    Raises:
        ValueError: a call cannot run on the device, or the workers do not fit on it together.
    """
    given = [task_of(call) for call in calls]
    arguments = [call.launch.packed_arguments() for call in calls]  # type: ignore[attr-defined]
    parts = [_parts(call, task) if tiled else 0 for call, task in zip(calls, given, strict=True)]
    kinds = kinds_of([task.body for task in given], merged, known=True)
    kind_of = {i: kind for kind, own in kinds.items() for i in own}
    waits = upstream_of(calls, parts, conflicts)
    alike = [
        (kind_of[i], task.tiles) if parts[i] and task.tiling.kind == "tile" else None for i, task in enumerate(given)
    ]
    chains = chains_of(waits, alike)
    words = words_of(waits, chains, [len(own) for own in arguments])
    own_chains = {kind: [chain for chain in chains if kind_of[chain.calls[0]] == kind] for kind in kinds}
    classes, of_body = _classes(given, kinds, own_chains, words, [len(own) for own in arguments], device, workers_of)
    rows, first_part = [], 0
    for i, task in enumerate(given):
        c, body = of_body[task.body]
        run = -(-task.tiles // classes[c].blocks)
        count = 0 if task.count is None else address_of(task.count)
        part = (first_part, parts[i], task.tiling.kind == "strided", task.tiling.size)
        rows.append((body, 0, len(arguments[i]), task.tiles, run, 0, 0, *part, task.units, count))
        first_part += parts[i]
    tasks = np.array(rows, TASK)
    records = make_records(tasks, arguments, waits, chains)
    head = STRIDE * (FIRST_CLASS + OF_CLASS * len(classes))
    ended = head + len(calls) * STRIDE
    state = np.zeros(ended + first_part, np.int32)
    state[head:ended:STRIDE] = -(-tasks["tiles"] // tasks["run"])
    return Image(
        tuple(calls),
        tuple(of._replace(tickets=records.starts(own_chains[of.kind], tasks)) for of in classes),
        tasks,
        np.zeros(0, np.uint8),
        np.zeros(0, np.uint64),
        state,
        remaining=head,
        ended=ended,
        upstream_count=0,
        retired=0,
        num_words=0,
        taken=None,
        records=records,
    )


def _parts(call: KernelCall, task: DeviceTask) -> int:
    """Into how many parts the tiles of a call divide what it touches; 0 if they do not, or leave some parts out."""
    parts = task.tiling.parts(task.tiles) if call.tiled else 0
    return parts if parts <= task.tiles else 0


def _classes(
    tasks: Sequence[DeviceTask],
    kinds: dict[Kind, list[int]],
    chains: dict[Kind, list[Chain]],
    words: Sequence[int],
    arguments: Sequence[int],
    device: Multiprocessors,
    workers_of: WorkersOf | None,
) -> tuple[list[ResourceClass], dict[DeviceBody, tuple[int, int]]]:
    """Return the resource classes of some tasks, and for each body its class and its number there."""
    made, needs = [], []
    tiles = [task.tiles for task in tasks]
    workers = (workers_of or just_these)({kind: frozenset(tasks[i].body for i in own) for kind, own in kinds.items()})
    for kind, own in sorted(kinds.items(), reverse=True):
        bodies, registers = workers[kind]
        of_arguments = -(-max(arguments[i] for i in own) // 2) * 2
        record = max(words[i] for i in own)
        memory = 8 * (of_arguments + 2 * record) + max(tasks[i].memory for i in own)
        work = min(sum(tiles[i] for i in own), _BESIDE * most_at_once(chains[kind], tiles))
        needs.append(Need(kind.threads, registers, memory, work))
        made.append(ResourceClass(kind, memory, of_arguments, bodies, 0, np.zeros(0, TICKET), record))
    classes = [of._replace(blocks=blocks) for of, blocks in zip(made, joint_grids(needs, device, None), strict=True)]
    return classes, {body: (c, i) for c, of in enumerate(classes) for i, body in enumerate(of.bodies)}
