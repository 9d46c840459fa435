"""Grids of workers: as many blocks of each resource class as fit on the device together.

Each multiprocessor must hold a block of every class, because blocks that wait stay on the device. A list is then free
of deadlock (see protocol.cuh). Registers belong to the partitions of a multiprocessor, and a warp takes all its
registers from one partition: of warps that need 5376 registers, three fit into the 16384 of a partition. The
computation assumes that a warp goes to the partition with the most free registers. Blocks that land otherwise, because
of other kernels, cost time but no deadlock (`stays` in protocol.cuh).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_REGISTERS_AT_ONCE = 256  # registers are allocated to warps in multiples of this
_SHARED_AT_ONCE = 1024  # bytes; the system also takes so much for every block
_MOST_A_CLASS = 32  # blocks of a class on a multiprocessor; more would only wait
_WHAT = ("registers in one of its partitions", "bytes of shared memory", "threads", "blocks")


@dataclass(frozen=True, slots=True)
class Multiprocessors:
    """The resources of a device. The defaults are those of an H200."""

    number: int = 132
    registers: int = 65536
    shared: int = 228 * 1024
    threads: int = 2048
    blocks: int = 32
    partitions: int = 4


class Need(NamedTuple):
    """What a block of a class takes, and for how many blocks there is work at once."""

    threads: int
    registers: int  # of a thread
    shared: int  # of a block [bytes]
    work: int


def joint_grids(needs: Sequence[Need], device: Multiprocessors, single: Need | None = None) -> list[int]:
    """Return the number of blocks of each class.

    Every multiprocessor gets the same blocks. They are added one by one to the class with the most work per block,
    until no block fits or has work. The multiprocessor that also holds the block of `single` gets fewer where it must.

    Raises ValueError if one block of each class does not fit on a multiprocessor.
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
    """Return what a multiprocessor lacks for given blocks of each class, as in `_WHAT`; negative if it has enough."""
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
    """Return the registers taken in the fullest partition, where each warp goes to the emptiest partition."""
    taken = [0] * partitions
    for n, need in zip(blocks, needs, strict=True):
        of_warp = -(-need.registers * 32 // _REGISTERS_AT_ONCE) * _REGISTERS_AT_ONCE
        for _ in range(n):
            order = sorted(range(partitions), key=taken.__getitem__)
            for warp in range(need.threads // 32):
                taken[order[warp % partitions]] += of_warp
    return max(taken)
