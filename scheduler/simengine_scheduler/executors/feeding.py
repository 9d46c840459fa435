"""`CompiledFeeder`: a feeder that takes many calls at once, by the compiled feed of `native/feed.h`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import Any

from ..core.calls import AwaitCounts, Emitter, Idle, KernelCall
from ..core.emission import Feeder, not_a_call
from ..native.intake import library

_NOTHING, _RAISED, _OTHER = range(3)


class CompiledFeeder(Feeder):
    """A feeder whose calls are pulled by `take` only.

    Args:
        emitters, is_complete, first: as of `Feeder`.
        asks: whether `is_complete` is also asked of calls that were not handed over yet. Else these have not ended.

    Raises:
        RuntimeError, OSError: as `library`.
    """

    def __init__(
        self, emitters: Iterable[Emitter], is_complete: Callable[[int], bool], first: int = 0, asks: bool = True
    ) -> None:
        super().__init__(emitters, is_complete, first)
        self._library = library()
        self._feed = self._library.feed_make(KernelCall, Idle, AwaitCounts)
        self._sources = list(self._turns)  # all of them, which `close` closes
        for source in self._sources:
            self._library.feed_add(self._feed, source.items, source.latest)
        room = 0 if asks else len(self._sources)
        self._state = array("q", bytes(8 * (7 + 2 * room)))  # as `feed_take` has it
        self._state[0], self._state[2], self._state[5] = first, len(self._sources), room
        self._at_state = self._state.buffer_info()[0]

    def __del__(self) -> None:
        feed, self._feed = getattr(self, "_feed", None), None
        if feed:
            self._library.feed_free(feed)

    @property
    def exhausted(self) -> bool:
        """Whether every emitter has ended."""
        return not self._state[2] and not self.waiting

    def take(self, most: int) -> None:
        """Pull calls until `taken` has so many, or there is none at present."""
        state, take = self._state, self._library.feed_take
        state[3], state[4] = 0, state[0] - len(self.taken)
        while True:
            stop = take(self._feed, self.taken, most, self._at_state)
            self.latest = state[0] - 1
            if state[6]:
                self._note_awaits()
            if stop != _OTHER:
                break
            self._other(self._library.feed_item(self._feed))
        self.idle = state[3] > 0

    def hand_over(self) -> tuple[list[KernelCall], array[int]]:
        """Return the calls that were taken, and the position of the emitter of each."""
        calls, self.taken = self.taken, []
        emitters = array("i", bytes(4 * len(calls)))
        self._library.feed_from(self._feed, emitters.buffer_info()[0], len(calls))
        return calls, emitters

    def pull(self) -> KernelCall | None:
        """Return the next call, as `take` would append it. Do not mix with `hand_over`."""
        self.take(len(self.taken) + 1)
        return self.taken.pop() if self.taken else None

    def _note_awaits(self) -> None:
        """Put down the emitters that the feed has found to wait."""
        state, waiting, sources = self._state, self.waiting, self._sources
        self.awaits += state[6]
        for at in range(7, 7 + 2 * state[6], 2):
            waiting.setdefault(state[at], []).append(sources[state[at + 1]])
        state[6] = 0

    def _other(self, item: Any) -> None:
        """Deal with an item of the emitter whose turn it is that is no call."""
        if type(item) is not AwaitCounts:
            raise not_a_call(item)
        if self._must_wait(self._sources[self._state[1]], item):
            self._library.feed_leave(self._feed)
            self._state[2] -= 1

    def release(self, seq: int) -> None:
        """Let the emitters that await call `seq` go on."""
        for source in self.waiting.pop(seq, ()):
            self._library.feed_join(self._feed, source.index)
            self._state[2] += 1


def make_feeder(emitters: Iterable[Emitter], is_complete: Callable[[int], bool], asks: bool = True) -> Feeder:
    """Return a feeder for calls that compiled code issues: a compiled one where it can call Python's functions.

    `asks` is as of `CompiledFeeder`. A feeder in Python asks in any case.
    """
    try:
        library()
    except (OSError, RuntimeError):
        return Feeder(emitters, is_complete)
    return CompiledFeeder(emitters, is_complete, asks=asks)
