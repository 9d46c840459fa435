"""The image of a list whose waits the host works out: records of its calls, and chains that blocks take (known.cuh)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from ..core.calls import KernelCall
from ..launch.arguments import address_of
from ..launch.tasks import DeviceBody, DeviceTask
from .chains import chains_of, most_at_once
from .image import FIRST_CLASS, OF_CLASS, STRIDE, TASK, TICKET, Image, ResourceClass, kinds_of, task_of
from .occupancy import Multiprocessors, Need, joint_grids
from .records import make_records, words_of
from .upstream import Wait, upstream_of
from .workers import Kind, WorkersOf, just_these

_WARP = 32
_BESIDE = 2
"""Blocks for each that works at once. The others have tickets of calls that come next, and wait for what these need."""


def build_known_image(
    calls: Sequence[KernelCall],
    conflicts: Sequence[tuple[int, ...]],
    device: Multiprocessors,
    tiled: bool = True,
    workers_of: WorkersOf | None = None,
    merged: bool = False,
    together: bool = False,
) -> Image:
    """Return the image of calls in program order.

    Args:
        conflicts: the conflicts of the table that the segments come from.
        device: the resources that workers share.
        tiled: whether calls wait for single parts where they may. Without it, no calls are a chain.
        workers_of: returns workers that run given bodies, and maybe others; without it, workers run just these bodies.
        merged: whether all bodies are one class.
        together: whether they are one class if its blocks have room for all that may run or wait at once, each body is
            of a warp or of as many threads as any other, and none of a warp asks for its whole block. One class is
            launched sooner than several.

    Raises:
        ValueError: a call cannot run on the device, or the workers do not fit on it together.
    """
    given = [task_of(call) for call in calls]
    arguments = [call.launch.packed_arguments() for call in calls]  # type: ignore[attr-defined]
    parts = [_parts(call, task) if tiled else 0 for call, task in zip(calls, given, strict=True)]
    waits = upstream_of(calls, parts, conflicts)
    bodies = [task.body for task in given]
    several = kinds_of(bodies, merged, known=True)
    plan = None
    if together and len(several) > 1 and {body.threads for body in bodies} <= {_WARP, max(b.threads for b in bodies)}:
        with suppress(ValueError):
            plan = _Plan(given, arguments, parts, waits, kinds_of(bodies, True, known=True))
            plan.find_classes(device, workers_of or just_these, all_at_once=True)
    if plan is None or not plan.classes:
        plan = _Plan(given, arguments, parts, waits, several)
        plan.find_classes(device, workers_of or just_these)
    classes, of_body, chains = plan.classes, plan.of_body, plan.chains
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
        tuple(of._replace(tickets=records.starts(plan.chains_of_kind[of.kind], tasks)) for of in classes),
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


class _Plan:
    """The chains of a list for given kinds of bodies, and the classes that run them.

    Attributes:
        chains: in the order in which blocks take them.
        chains_of_kind: those of each kind.
        classes: once they have been found.
        of_body: for each body its class and its number there.
    """

    def __init__(
        self,
        tasks: Sequence[DeviceTask],
        arguments: Sequence[np.ndarray],
        parts: Sequence[int],
        waits: Sequence[Sequence[Wait]],
        kinds: dict[Kind, list[int]],
    ) -> None:
        kind_of = {i: kind for kind, own in kinds.items() for i in own}
        alike = [
            (kind_of[i], task.tiles) if parts[i] and task.tiling.kind == "tile" else None
            for i, task in enumerate(tasks)
        ]
        self.chains = chains_of(waits, alike)
        self.chains_of_kind = {
            kind: [chain for chain in self.chains if kind_of[chain.calls[0]] == kind] for kind in kinds
        }
        self.classes: list[ResourceClass] = []
        self.of_body: dict[DeviceBody, tuple[int, int]] = {}
        self._tasks, self._kinds = tasks, kinds
        self._arguments = [len(own) for own in arguments]
        self._words = words_of(waits, self.chains, self._arguments)

    def find_classes(self, device: Multiprocessors, workers_of: WorkersOf, all_at_once: bool = False) -> None:
        """Find the classes and their grids. Raises ValueError if they do not fit, with all blocks if `all_at_once`."""
        if all_at_once:
            needs = [self._need(kind, kind.registers) for kind in self._kinds]
            if joint_grids(needs, device) != [need.work for need in needs]:
                raise ValueError("there is no room for all blocks at once")
        tasks = self._tasks
        workers = workers_of({kind: frozenset(tasks[i].body for i in own) for kind, own in self._kinds.items()})
        kinds = sorted(self._kinds, reverse=True)
        grids = joint_grids([self._need(kind, workers[kind].registers) for kind in kinds], device)
        for c, (kind, blocks) in enumerate(zip(kinds, grids, strict=True)):
            bodies, words = workers[kind].bodies, self._arguments_of(kind)
            memory = self._need(kind, 0).shared
            self.classes.append(
                ResourceClass(kind, memory, words, bodies, blocks, np.zeros(0, TICKET), self._record_of(kind))
            )
            self.of_body |= {body: (c, i) for i, body in enumerate(bodies)}

    def _need(self, kind: Kind, registers: int) -> Need:
        """What a block of a kind needs, and how many blocks have work or wait for work at once."""
        tasks, own = self._tasks, self._kinds[kind]
        tiles = [task.tiles for task in tasks]
        words = self._arguments_of(kind) + 2 * self._record_of(kind)
        most = _BESIDE * most_at_once(self.chains_of_kind[kind], tiles)
        memory = 8 * words + max(tasks[i].memory for i in own)
        return Need(kind.threads, registers, memory, min(most, sum(tiles[i] for i in own)))

    def _arguments_of(self, kind: Kind) -> int:
        return -(-max(self._arguments[i] for i in self._kinds[kind]) // 2) * 2

    def _record_of(self, kind: Kind) -> int:
        return max(self._words[i] for i in self._kinds[kind])
