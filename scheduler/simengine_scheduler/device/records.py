"""Records of the calls of a list whose waits the host has worked out: all that a block needs to run one, side by side.

A record is in 8-byte words: a header, the waits, the arguments. A block copies it to its shared memory at once, and
that of the call which it runs next while it still waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from .chains import Chain
from .upstream import Wait

HEADER = np.dtype(
    [
        *((name, "i4") for name in ("body", "arguments", "num_arguments", "tiles", "run", "first_word", "num_words")),
        *((name, "i4") for name in ("first_part", "parts", "strided", "size", "units")),
        ("count", "u8"),
        *((name, "i4") for name in ("call", "num_waits", "tells", "next", "next_words", "unused")),
    ]
)
"""The structures `Task` and `Step` of the protocol."""
WAIT = np.dtype([("call", "i4"), ("first_part", "i4"), ("tiles", "i4"), ("size", "i4")])
START = np.dtype([("at", "i4"), ("words", "i4"), ("first", "i4"), ("call", "i4")])
BY_PARTS = 0x40000000
_WORD = 8


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a list.

    Attributes:
        words: all records.
        places: for each call its first word and the words of its record.
        waits: for each call what it waits for.
        chains: in the order in which blocks take them.
    """

    words: np.ndarray
    places: Sequence[tuple[int, int]]
    waits: Sequence[Sequence[Wait]]
    chains: Sequence[Chain]

    def starts(self, chains: Sequence[Chain], tasks: np.ndarray) -> np.ndarray:
        """Return the tickets of some chains: where a block begins, and with which tile."""
        heads = [chain.calls[0] for chain in chains]
        return np.array(
            [
                (*self.places[head], first, head)
                for head in heads
                for first in range(0, int(tasks[head]["tiles"]), int(tasks[head]["run"]))
            ],
            START,
        )


def words_of(waits: Sequence[Sequence[Wait]], chains: Sequence[Chain], arguments: Sequence[int]) -> list[int]:
    """Return for each call the words of its record, by the number of its arguments. It is even."""
    fixed = HEADER.itemsize // _WORD
    each = [fixed + WAIT.itemsize // _WORD * len(own) for own in _outside(waits, chains)]
    return [-(-(words + given) // 2) * 2 for words, given in zip(each, arguments, strict=True)]


def _outside(waits: Sequence[Sequence[Wait]], chains: Sequence[Chain]) -> list[list[Wait]]:
    """The waits of each call for calls of other chains."""
    chain_of = {call: number for number, chain in enumerate(chains) for call in chain.calls}
    return [[wait for wait in own if chain_of[wait.call] != chain_of[call]] for call, own in enumerate(waits)]


def make_records(
    tasks: np.ndarray, arguments: Sequence[np.ndarray], waits: Sequence[Sequence[Wait]], chains: Sequence[Chain]
) -> Records:
    """Return the records of calls.

    Args:
        tasks: the rows of the calls.
        arguments: their arguments in 8-byte words.
        waits: for each call what it waits for.
        chains: in the order in which blocks take them.
    """
    outside = _outside(waits, chains)
    following = dict(pair for chain in chains for pair in pairwise(chain.calls))
    tells = [0] * len(tasks)  # whether others wait for its end, and by parts
    for wait in (wait for own in outside for wait in own):
        tells[wait.call] |= 1 if wait.whole else 2
    sizes = words_of(waits, chains, [len(given) for given in arguments])
    at = [0, *accumulate(sizes)]
    words = np.zeros(at[-1], np.uint64)
    for call, (own, given) in enumerate(zip(outside, arguments, strict=True)):
        header = np.zeros(1, HEADER)
        for name in tasks.dtype.names or ():
            header[name] = tasks[name][call]
        header["call"], header["num_waits"], header["tells"] = call, len(own), tells[call]
        if (after := following.get(call)) is not None:
            header["next"], header["next_words"] = at[after], sizes[after]
        raw = header.tobytes() + _rows(own, tasks).tobytes() + np.asarray(given, np.uint64).tobytes()
        words[at[call] : at[call] + len(raw) // _WORD] = np.frombuffer(raw, np.uint64)
    return Records(words, list(zip(at, sizes, strict=False)), waits, chains)


def _rows(waits: Sequence[Wait], tasks: np.ndarray) -> np.ndarray:
    """The waits of a call, as blocks read them."""
    rows = np.zeros(len(waits), WAIT)
    for i, wait in enumerate(waits):
        other = tasks[wait.call]
        size = -int(other["size"]) if other["strided"] else int(other["size"])
        rows[i] = (wait.call | (0 if wait.whole else BY_PARTS), other["first_part"], other["tiles"], size)
    return rows
