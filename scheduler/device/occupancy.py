"""Grids of workers: as many blocks of each resource class as fit on the device together, one a multiprocessor at least.

Workers that wait hold their place, so every class must get one: a list is then free of deadlock (see protocol.cuh).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_REGISTERS_AT_ONCE = 256  # registers are given to warps in such portions
_SHARED_AT_ONCE = 1024  # bytes; also what the system takes of every block
_MOST_A_CLASS = 32  # blocks a multiprocessor, beyond which more only wait


@dataclass(frozen=True, slots=True)
class Multiprocessors:
    """What a device offers. The defaults are an H200's."""

    number: int = 132
    registers: int = 65536
    shared: int = 228 * 1024
    threads: int = 2048
    blocks: int = 32


class Need(NamedTuple):
    """What a block of a class takes, and the most blocks for which there is work at once."""

    threads: int
    registers: int  # a thread
    shared: int  # bytes
    work: int


def _taken(need: Need) -> tuple[int, int, int, int]:
    of_warp = -(-need.registers * 32 // _REGISTERS_AT_ONCE) * _REGISTERS_AT_ONCE
    shared = -(-(need.shared + _SHARED_AT_ONCE) // _SHARED_AT_ONCE) * _SHARED_AT_ONCE
    return need.threads // 32 * of_warp, shared, need.threads, 1


def joint_grids(needs: Sequence[Need], device: Multiprocessors) -> list[int]:
    """Blocks of each class.

    Every multiprocessor gets the same; blocks are added in turn to the class that has the fewest, until none fits or
    has work. Raises ValueError where one block of each does not fit.
    """
    room = (device.registers, device.shared, device.threads, device.blocks)
    taken = [_taken(need) for need in needs]
    left = [have - sum(t[i] for t in taken) for i, have in enumerate(room)]
    if min(left, default=0) < 0:
        what = ("registers", "bytes of shared memory", "threads", "blocks")[min(range(4), key=left.__getitem__)]
        raise ValueError(
            f"one block of each of {len(needs)} resource classes does not fit on a multiprocessor, which lacks "
            f"{-min(left)} {what}; use fewer classes of bodies, or executor 'graph-cached'"
        )
    blocks = [1] * len(needs)
    growing = set(range(len(needs)))
    while growing:
        c = min(growing, key=lambda c: (blocks[c], c))
        fits = all(t <= have for t, have in zip(taken[c], left, strict=True))
        if not fits or blocks[c] * device.number >= needs[c].work or blocks[c] == _MOST_A_CLASS:
            growing.discard(c)
            continue
        blocks[c] += 1
        left = [have - t for have, t in zip(left, taken[c], strict=True)]
    return [min(n * device.number, max(1, need.work)) for n, need in zip(blocks, needs, strict=True)]
