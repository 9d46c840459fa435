"""What the window and the workers write down of a list, if it is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..tracing.events import Counters
from .book import Memory

_SIZES = {"slots": 4, "upstream": 8, "retired": 4, "times": 16}  # bytes of a call
_NEVER = (2**63 - 1, -(2**63))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a list left behind.

    Attributes:
        waits: for each call those that it was made to wait for, newest first.
        retired: for each call the call that was admitted first after the window had seen it end, or the number of
            calls if there is none.
        times: start and end of each call [ns].
        checked: time of the window [s].
        compared: the part of it in which calls were compared with those in the window [s].
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


class Log:
    """Memory for what is written down of up to `room` calls."""

    def __init__(self, memory: Memory, room: int = 1 << 14) -> None:
        self.room = room
        self._memory = memory
        self._at = {name: memory.zeros(size * room) for name, size in _SIZES.items()}
        self._spent = memory.zeros(16)

    def addresses(self) -> dict[str, int]:
        """Return where the parts are, by name."""
        return {**self._at, "checked": self._spent, "compared": self._spent + 8}

    def clear(self) -> None:
        """Forget what was written down."""
        self._memory.write(self._spent, np.zeros(2, np.int64))
        self._memory.write(self._at["retired"], np.zeros(self.room, np.int32))
        self._memory.write(self._at["times"], np.tile(np.array(_NEVER, np.int64), self.room))

    def outcome(self, calls: int) -> Outcome:
        """Return what was written down of the first calls, once all work is done."""
        raw = {name: self._memory.read(self._at[name], size * calls) for name, size in _SIZES.items()}
        slots, retired = (raw[name].view(np.int32).tolist() for name in ("slots", "retired"))
        times = raw["times"].view(np.int64).reshape(calls, 2)
        spent = self._memory.read(self._spent, 16).view(np.int64) * 1e-9
        return Outcome(
            _waits(slots, raw["upstream"].view(np.uint64).tolist()),
            [by - 1 if by else calls for by in retired],
            [(int(start), int(end)) for start, end in times],
            *(float(seconds) for seconds in spent),
        )


def _waits(slots: Sequence[int], upstream: Sequence[int]) -> list[tuple[int, ...]]:
    """Return for each call those that it waited for, newest first, by the slots of calls and of those upstream."""
    holder: dict[int, int] = {}  # slot -> the call that is in it
    waits = []
    for call, (slot, bits) in enumerate(zip(slots, upstream, strict=True)):
        waits.append(tuple(sorted((other for at, other in holder.items() if bits >> at & 1), reverse=True)))
        holder[slot] = call
    return waits
