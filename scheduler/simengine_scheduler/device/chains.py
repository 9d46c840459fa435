"""Which calls one block runs after each other, tile by tile, and in which order blocks take them.

If tile i of a call waits for tile i of another one, and both are of one kind, the block that ran the one goes on with
the other. Nobody then tells the block that it may: what it wrote, it sees. Calls that follow each other so are a chain.

Blocks take chains in an order in which each comes after all those that it waits for. Let C be the first chain of the
order that has not ended. What its calls wait for has ended, or is in C itself, where a tile waits only for tiles that
its own block has run. Blocks with tickets of earlier chains are done with them. So a block of its kind holds the next
ticket of C or is free to take it, C ends, and by induction every chain does. For this, chains must not wait for each
other in a circle, which single calls never do.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from .upstream import Wait


class Chain(NamedTuple):
    """Calls that one block runs after each other, and when they could begin if each call took one unit of time."""

    calls: tuple[int, ...]
    begins: int


def chains_of(waits: Sequence[Sequence[Wait]], kinds: Sequence[Hashable]) -> list[Chain]:
    """Return chains of calls, in the order in which blocks take them.

    Args:
        waits: for each call what it waits for, newest first.
        kinds: for each call something that is equal for calls whose tiles the same block may run; None for calls that
            are chains by themselves.
    """
    heights = _heights(waits)
    heir = _heirs(waits, kinds, heights)
    chains: list[list[int]] = []
    chain_of: list[int] = []
    behind: list[int] = []  # for each chain, the chains that it comes after, as bits
    for call, own in enumerate(waits):
        outside = {chain_of[wait.call]: 0 for wait in own}
        joined = None
        for wait in sorted(own, key=lambda wait: heights[wait.call]):
            chain = chain_of[wait.call]
            if heir[wait.call] == call and chains[chain][-1] == wait.call and _may_join(chain, own, chain_of, behind):
                joined = chain
                break
        after = 0
        for chain in outside:
            if chain != joined:
                after |= behind[chain] | 1 << chain
        if joined is None:
            chains.append([call])
            behind.append(after)
            chain_of.append(len(chains) - 1)
            continue
        chains[joined].append(call)
        chain_of.append(joined)
        behind[joined] |= after
        for other, before in enumerate(behind):
            if before >> joined & 1:
                behind[other] |= after
    return _in_order(chains, chain_of, waits, heights)


def _may_join(chain: int, waits: Sequence[Wait], chain_of: Sequence[int], behind: Sequence[int]) -> bool:
    """Whether a call may be the next of a chain: its other waits lead to no call that comes after the chain."""
    for wait in waits:
        other = chain_of[wait.call]
        if other == chain:
            if wait.whole:
                return False
        elif behind[other] >> chain & 1:
            return False
    return True


def _heights(waits: Sequence[Sequence[Wait]]) -> list[int]:
    """For each call, how many calls follow it one after another at most."""
    heights = [0] * len(waits)
    for call in reversed(range(len(waits))):
        for wait in waits[call]:
            heights[wait.call] = max(heights[wait.call], heights[call] + 1)
    return heights


def _heirs(waits: Sequence[Sequence[Wait]], kinds: Sequence[Hashable], heights: Sequence[int]) -> list[int]:
    """For each call the one that may follow it in its blocks: of several, that from which most calls follow; or -1."""
    heir = [-1] * len(waits)
    for call, own in enumerate(waits):
        for wait in own:
            other = wait.call
            if wait.whole or kinds[call] is None or kinds[call] != kinds[other]:
                continue
            if heir[other] < 0 or heights[call] > heights[heir[other]]:
                heir[other] = call
    return heir


def _in_order(
    chains: Sequence[list[int]], chain_of: Sequence[int], waits: Sequence[Sequence[Wait]], heights: Sequence[int]
) -> list[Chain]:
    """Return the chains in the order in which they could begin."""
    before = [
        {chain_of[wait.call] for call in own for wait in waits[call] if chain_of[wait.call] != number}
        for number, own in enumerate(chains)
    ]
    after: list[list[int]] = [[] for _ in chains]
    for number, others in enumerate(before):
        for other in others:
            after[other].append(number)
    left = [len(others) for others in before]
    begins = [0] * len(chains)
    free = [number for number, count in enumerate(left) if not count]
    for number in free:  # grows
        for following in after[number]:
            begins[following] = max(begins[following], begins[number] + len(chains[number]))
            left[following] -= 1
            if not left[following]:
                free.append(following)
    assert len(free) == len(chains), "chains wait for each other in a circle"
    ranked = sorted(range(len(chains)), key=lambda number: (begins[number], -heights[chains[number][0]], number))
    return [Chain(tuple(chains[number]), begins[number]) for number in ranked]


def most_at_once(chains: Sequence[Chain], blocks: Sequence[int]) -> int:
    """Return how many blocks some chains take at most at once, if each call takes as long as any other.

    Args:
        chains: of one class.
        blocks: for each call how many blocks it takes.
    """
    changes: dict[int, int] = {}
    for chain in chains:
        taken = max(blocks[call] for call in chain.calls)
        changes[chain.begins] = changes.get(chain.begins, 0) + taken
        end = chain.begins + len(chain.calls)
        changes[end] = changes.get(end, 0) - taken
    most = now = 0
    for time in sorted(changes):
        now += changes[time]
        most = max(most, now)
    return most
