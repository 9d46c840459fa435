"""Grids of workers: as many blocks of each resource class as fit on the device together, one a multiprocessor at least.

Workers that wait hold their place, so every class must get one: a list is then free of deadlock (see protocol.cuh).
Registers belong to the partitions of a multiprocessor, and a warp takes all of its own from one of them: of warps that
need 5376, no more than three fit into the 16384 of each. What is counted on is that warps go where most is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_REGISTERS_AT_ONCE = 256  # registers are given to warps in such portions
_SHARED_AT_ONCE = 1024  # bytes; also what the system takes of every block
_MOST_A_CLASS = 32  # blocks a multiprocessor, beyond which more only wait
_WHAT = ("registers in one of its partitions", "bytes of shared memory", "threads", "blocks")


@dataclass(frozen=True, slots=True)
class Multiprocessors:
    """What a device offers. The defaults are an H200's."""

    number: int = 132
    registers: int = 65536
    shared: int = 228 * 1024
    threads: int = 2048
    blocks: int = 32
    partitions: int = 4


class Need(NamedTuple):
    """What a block of a class takes, and the most blocks for which there is work at once."""

    threads: int
    registers: int  # a thread
    shared: int  # bytes
    work: int


def joint_grids(needs: Sequence[Need], device: Multiprocessors, single: Need | None = None) -> list[int]:
    """Blocks of each class.

    Every multiprocessor gets the same; blocks are added one by one to the class that has most work for each of its own,
    until none fits or has work. The multiprocessor on which the one block of `single` is gets fewer, if it must.

    Raises ValueError where one block of each does not fit.
    """
    blocks = [1] * len(needs)
    beside = [single, *needs] if single else needs  # in the order in which they are launched
    if (lack := max(lacks := _lacks(beside, [1] * len(beside), device))) > 0:
        raise ValueError(
            f"one block of each of {len(beside)} resource classes does not fit on a multiprocessor, which lacks "
            f"{lack} {_WHAT[lacks.index(lack)]}; use fewer classes of bodies, or executor 'graph-cached'"
        )
    growing = set(range(len(needs)))
    while growing:
        c = max(growing, key=lambda c: (needs[c].work / blocks[c], -c))
        blocks[c] += 1
        unused = (blocks[c] - 1) * device.number >= needs[c].work or blocks[c] > _MOST_A_CLASS
        if unused or max(_lacks(needs, blocks, device)) > 0:
            blocks[c] -= 1
            growing.discard(c)
    fewer = list(blocks)
    while single and max(_lacks(beside, [1, *fewer], device)) > 0:
        fewer[max(range(len(needs)), key=fewer.__getitem__)] -= 1
    grids = [n * (device.number - 1) + least for n, least in zip(blocks, fewer, strict=True)]
    return [min(grid, max(1, need.work)) for grid, need in zip(grids, needs, strict=True)]


def _lacks(needs: Sequence[Need], blocks: Sequence[int], device: Multiprocessors) -> list[int]:
    """What a multiprocessor lacks for so many blocks of each class, as in `_WHAT`; what it has left is negative."""
    registers = _registers(needs, blocks, device.partitions)
    shared = sum(
        n * -(-(need.shared + _SHARED_AT_ONCE) // _SHARED_AT_ONCE) * _SHARED_AT_ONCE
        for n, need in zip(blocks, needs, strict=True)
    )
    threads = sum(n * need.threads for n, need in zip(blocks, needs, strict=True))
    return [
        registers - device.registers // device.partitions,
        shared - device.shared,
        threads - device.threads,
        sum(blocks) - device.blocks,
    ]


def _registers(needs: Sequence[Need], blocks: Sequence[int], partitions: int) -> int:
    """Registers taken in the fullest partition, when blocks come class by class and spread over the emptiest ones."""
    taken = [0] * partitions
    for n, need in zip(blocks, needs, strict=True):
        of_warp = -(-need.registers * 32 // _REGISTERS_AT_ONCE) * _REGISTERS_AT_ONCE
        for _ in range(n):
            order = sorted(range(partitions), key=taken.__getitem__)
            for warp in range(need.threads // 32):
                taken[order[warp % partitions]] += of_warp
    return max(taken)
