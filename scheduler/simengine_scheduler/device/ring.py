"""The ring through which the host names calls to a window that runs (protocol.cuh)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np

CALL, PLAY, TELL, END = range(4)
MOST_NUMBERS = 1 << 28
SIZE = 1 << 14
NOTICES = 1024
STATUS = 8  # int32 numbers: stopped, task, tile, waits_for, gone, read
_GONE, _READ = 4, 5
_NUMBER_BITS = 28


class Ring:
    """Entries that the window reads in order.

    Args:
        visible: returns int32 numbers, filled with zeros, in memory that host and device share.
    """

    def __init__(self, visible: Callable[[int], np.ndarray]) -> None:
        self.status = visible(STATUS)
        self._notices = visible(NOTICES)
        self._raw = visible(2 * SIZE)
        self._entries = self._raw.view(np.uint64)
        self._position = 0
        self._lock = Lock()

    def addresses(self) -> dict[str, int]:
        """Return where the device finds the parts, by name."""
        parts = {"ring": self._raw, "status": self.status, "notices": self._notices}
        return {name: int(part.ctypes.data) for name, part in parts.items()}

    def room(self) -> int:
        """Return how many entries may be written at once."""
        return SIZE - (self._position - int(self.status[_READ]) & 0xFFFFFFFF)

    def put(self, what: int, numbers: Sequence[int], waits: Callable[[], None]) -> None:
        """Name calls or lists. While there is no room, `waits` is called again and again.

        An entry becomes valid by the position that it holds, so the window reads no entry before it is written.
        """
        start = 0
        while start < len(numbers):
            room = self.room()
            if room <= 0:
                waits()
                continue
            part = np.array(numbers[start : start + room], np.uint64)
            at = np.arange(self._position, self._position + len(part), dtype=np.uint64)
            tag = at + np.uint64(1) & np.uint64(0xFFFFFFFF)
            self._entries[at & np.uint64(SIZE - 1)] = tag << np.uint64(32) | np.uint64(what << _NUMBER_BITS) | part
            self._position = self._position + len(part) & 0xFFFFFFFF
            start += len(part)

    def put_one(self, what: int, number: int, waits: Callable[[], None]) -> None:
        """Name one call or list."""
        position = self._position
        while self.room() <= 0:
            waits()
        self._entries[position & SIZE - 1] = (position + 1 & 0xFFFFFFFF) << 32 | what << _NUMBER_BITS | number
        self._position = position + 1 & 0xFFFFFFFF

    def has_ended(self, number: int) -> bool:
        """Whether the device has told that a call has ended. The ring was asked by entry TELL."""
        return bool(self._notices[number % NOTICES] == number + 1)

    def forget(self, number: int) -> None:
        """Let another call have the notice of this one."""
        self._notices[number % NOTICES] = 0

    def needs_start(self) -> bool:
        """Whether the window has left and must be started to read what was written before this was asked.

        The window announces that it leaves, and then reads the ring once more. Host and window each write before they
        read, and taking a lock keeps the host's processor from doing it in the other order.
        """
        with self._lock:
            pass
        while self.status[_GONE] == 1:
            pass
        return bool(self.status[_GONE] == 2 and self.room() < SIZE)

    def starts(self) -> None:
        """Note that the window is started."""
        self.status[_GONE] = 0
