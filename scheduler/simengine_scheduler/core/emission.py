"""The feeder: pulls calls from emitters, round-robin, into program order.

Program order is the order in which `pull` hands calls out. A call's sequence number is its position in
program order, counted from the feeder's `first`. An executor that lives for several runs thus never meets a number
twice.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import starmap

from .calls import AwaitCounts, Emitter, Idle, Item, KernelCall

_ITEMS = KernelCall, AwaitCounts  # which are no emitters


class _Source:
    """One emitter, its position among the emitters, and the sequence number under which it yielded each call last."""

    __slots__ = ("index", "items", "latest")

    def __init__(self, index: int, items: Iterator[Item]) -> None:
        self.index = index
        self.items = items
        self.latest: dict[KernelCall, int] = {}


class Feeder:
    """Hands out the emitters' calls in turn. Emitters that wait for a call to complete are passed over.

    Args:
        emitters: what yields the calls.
        is_complete: asked once when an emitter awaits call `seq`. If it returns False, the executor must report the
            completion later, with `release(seq)`.
        first: the sequence number of the first call.

    Attributes:
        latest: the sequence number of the call pulled last.
        awaits: how many awaits the emitters have yielded.
        idle: whether `pull`, after it has returned None, is to be called again soon.
        waiting: the emitters that wait, by the sequence number of the call that they await.
        taken: the calls that `take` has pulled. `hand_over` empties it.
    """

    def __init__(self, emitters: Iterable[Emitter], is_complete: Callable[[int], bool], first: int = 0) -> None:
        self.latest = first - 1
        self._first = first
        self.awaits = 0
        self.idle = False
        self.waiting: dict[int, list[_Source]] = {}
        self.taken: list[KernelCall] = []
        self._from = array("i")  # their emitters
        self._is_complete = is_complete
        self._turns: deque[_Source] = deque()
        self._turns.extend(starmap(_Source, enumerate(iterators_of(emitters))))

    @property
    def calls(self) -> int:
        """How many calls have been pulled."""
        return self.latest + 1 - self._first

    @property
    def emitter(self) -> int:
        """The position of the emitter from which the latest call was pulled. Ask before the next pull."""
        return self._turns[-1].index

    @property
    def exhausted(self) -> bool:
        """Whether every emitter has ended."""
        return not self._turns and not self.waiting

    def pull(self) -> KernelCall | None:
        """Return the next call of program order, or None when every emitter that has not ended is blocked or idle.

        An exception of an emitter passes through. Raises TypeError if an emitter yields something that is no call.
        """
        turns = self._turns
        idle = 0  # emitters at the end of the turns that had no call in this pull
        while len(turns) > idle:
            source = turns[0]
            item = next(source.items, None)
            if type(item) is KernelCall:
                self.idle = False
                self.latest += 1
                source.latest[item] = self.latest
                turns.rotate(-1)
                return item
            if item is None:
                turns.popleft()
            elif type(item) is AwaitCounts:
                if self._must_wait(source, item):
                    turns.popleft()
            elif type(item) is Idle:
                idle += 1
                turns.rotate(-1)
            else:
                raise not_a_call(item)
        self.idle = idle > 0
        return None

    def take(self, most: int) -> None:
        """Pull calls until `taken` has so many, or there is none at present."""
        while len(self.taken) < most and (call := self.pull()) is not None:
            self.taken.append(call)
            self._from.append(self.emitter)

    def hand_over(self) -> tuple[list[KernelCall], array[int]]:
        """Return the calls that were taken, and the position of the emitter of each."""
        calls, self.taken = self.taken, []
        emitters, self._from = self._from, array("i")
        return calls, emitters

    def _must_wait(self, source: _Source, item: AwaitCounts) -> bool:
        """Whether an emitter has to wait for a call. It is put down among those that wait then."""
        seq = source.latest.get(item.call)
        if seq is None:
            raise never_yielded(item)
        self.awaits += 1
        if self._is_complete(seq):
            return False
        self.waiting.setdefault(seq, []).append(source)
        return True

    def release(self, seq: int) -> None:
        """Let the emitters that await call `seq` go on."""
        sources = self.waiting.pop(seq, None)
        if sources:
            self._turns.extend(sources)

    def close(self) -> None:
        """Close generators that have not ended, after a failure, so that their `finally` blocks run."""
        sources = [*self._turns, *(s for blocked in self.waiting.values() for s in blocked)]
        self._turns.clear()
        self.waiting.clear()
        close_all(source.items for source in sources)


def iterators_of(emitters: Iterable[Emitter]) -> list[Iterator[Item]]:
    """Return an iterator of each emitter. Raises TypeError for what is no list of emitters."""
    if isinstance(emitters, _ITEMS):
        raise TypeError(f"run() got a single {type(emitters).__name__}; pass a list of emitters, e.g. run([[call]])")
    found = []
    for index, emitter in enumerate(emitters):
        if isinstance(emitter, _ITEMS) or not hasattr(emitter, "__iter__"):
            raise TypeError(
                f"emitter {index} given to run() is a {type(emitter).__name__}, not a generator or list of calls; "
                f"wrap a plain list of calls once more: run([calls])"
            )
        found.append(iter(emitter))
    return found


def close_all(iterators: Iterable[Iterator[Item]]) -> None:
    """Close those of some iterators that are generators."""
    for items in iterators:
        close = getattr(items, "close", None)
        if close is not None:
            close()


def never_yielded(item: AwaitCounts) -> ValueError:
    """Return the error of an emitter that awaits a call which it has not yielded."""
    return ValueError(f"an emitter awaits call {item.call.name!r}, which it has not yielded; yield the call first")


def not_a_call(item: object) -> TypeError:
    """Return the error of an emitter that has yielded something else."""
    return TypeError(f"an emitter yielded a {type(item).__name__}; yield KernelCall or AwaitCounts")
