"""Where the items of a kernel are in a world's scratch: those live at the same time do not overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

_ALIGN = 4  # words, so that one instruction can load four


class ScratchItem(NamedTuple):
    """A field or a working array in a world's scratch, live from body `first` to body `last`."""

    name: str
    first: int
    last: int


class ScratchPlan(NamedTuple):
    """Offset of each scratch item in words, and the words that a world needs."""

    offsets: dict[str, int]
    words: int


class _Neighbours(NamedTuple):
    """Indices of the items that are live at the same time as one of them.

    Attributes:
        alive: all of them.
        partners: those that may have exactly the same words, since one is written over the other.
    """

    alive: tuple[int, ...]
    partners: frozenset[int]


@lru_cache(maxsize=4096)
def place_items(
    items: tuple[ScratchItem, ...], lengths: tuple[int, ...], shared: frozenset[tuple[str, str]]
) -> ScratchPlan:
    """Assign offsets to items of given lengths in words, so that those live at the same time do not overlap; in few
    words.

    `shared` holds pairs of items of which the second may take the words of the first, if the body that writes the
    second is the last to read the first.
    """
    neighbours = _neighbours(items, shared)
    orders = list(_orders(items, lengths))
    starts, words = min((_place(order, lengths, neighbours) for order in orders), key=lambda place: place[1])
    least = (
        max(sum(_alive(body, items, lengths)) for body in range(max(item.last for item in items) + 1)) if items else 0
    )
    for order in _with_one_last(orders):
        if words <= least:
            break
        starts, words = min((starts, words), _place(order, lengths, neighbours), key=lambda place: place[1])
    return ScratchPlan({item.name: start for item, start in zip(items, starts, strict=True)}, words)


def _orders(items: Sequence[ScratchItem], lengths: Sequence[int]) -> Iterator[Sequence[int]]:
    """Orders of placement to try: by first body, largest first, longest lifetime first, latest end first."""
    numbers = range(len(items))
    yield numbers
    yield sorted(numbers, key=lambda i: -lengths[i])
    yield sorted(numbers, key=lambda i: (items[i].first - items[i].last, -lengths[i]))
    yield sorted(numbers, key=lambda i: -items[i].last)


def _with_one_last(orders: Sequence[Sequence[int]]) -> Iterator[Sequence[int]]:
    """The same orders with one item behind all others, where words between items are left free otherwise."""
    for order in orders:
        yield from ([*(i for i in order if i != item), item] for item in order)


def _alive(body: int, items: Sequence[ScratchItem], lengths: Sequence[int]) -> Iterator[int]:
    """The words of each item that is live in a body."""
    return (words for item, words in zip(items, lengths, strict=True) if item.first <= body <= item.last)


@lru_cache(maxsize=1024)
def _neighbours(items: tuple[ScratchItem, ...], shared: frozenset[tuple[str, str]]) -> tuple[_Neighbours, ...]:
    """The neighbours of each item, which are the same for all models."""
    found = []
    for number, item in enumerate(items):
        together = (i for i, other in enumerate(items) if item.first <= other.last and other.first <= item.last)
        alive = [i for i in together if i != number]
        partners = frozenset(i for i in alive if _handed_over(item, items[i], shared))
        found.append(_Neighbours(tuple(alive), partners))
    return tuple(found)


def _handed_over(a: ScratchItem, b: ScratchItem, shared: frozenset[tuple[str, str]]) -> bool:
    """Whether a body may write b over a: the pair is declared, and a's lifetime ends in the body that starts b's."""
    return ((a.name, b.name) in shared and a.last == b.first) or ((b.name, a.name) in shared and b.last == a.first)


def _place(order: Sequence[int], lengths: Sequence[int], neighbours: Sequence[_Neighbours]) -> tuple[list[int], int]:
    """Where each item starts, if they are placed in some order, and the words that they take."""
    starts, words = [-1] * len(order), 0  # -1 until it is placed
    for item in order:
        near, length = neighbours[item], lengths[item]
        taken = [(starts[other], lengths[other]) for other in near.alive if starts[other] >= 0]
        start = _of_partner(item, order, starts, lengths, near) if near.partners else -1
        starts[item] = start = _first_fit(length, taken) if start < 0 else start
        words = max(words, start + length)
    return starts, -(-words // _ALIGN) * _ALIGN


def _of_partner(
    item: int, order: Sequence[int], starts: Sequence[int], lengths: Sequence[int], near: _Neighbours
) -> int:
    """The start of the first partner whose words the item can take; -1 if there is none.

    It takes exactly the same words: with an offset, one lane would overwrite what another has not read yet.
    """
    length = lengths[item]
    others = [(starts[i], lengths[i]) for i in near.alive if starts[i] >= 0 and i not in near.partners]
    for partner in order:
        start = starts[partner]
        if partner not in near.partners or start < 0 or lengths[partner] != length:
            continue
        if all(start + length <= other or other + size <= start for other, size in others):
            return start
    return -1


def _first_fit(length: int, taken: list[tuple[int, int]]) -> int:
    """The first place for so many words between those that are taken, (start, length) each."""
    start = 0
    for other, size in sorted(taken):
        if start + length <= other:
            break
        start = max(start, other + size)
    return start
