"""The list recorder: an executor that wraps another one and stores what went through it as a `RecordedList`.

Durations are measured on a GPU as follows. The inner executor is `serial` with `record="times"`: one stream, with an
event before and one after each call. A *pause* is a kernel that lasts until the host has issued what follows. There is
one before the first call and one behind each await, so that the stream always has work and no time of the host is
counted. `overhead` is subtracted from the time between two events: it is the time that they show around an empty
kernel. A duration is therefore the time of a kernel beyond that of an empty one. What an empty kernel takes belongs to
the machine and not to the list. Time stamps tick coarsely, every half microsecond on an H200, so the mean of the middle
half of several runs is taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from ..core.calls import AwaitCounts, Emitter, FixedList, Item, KernelCall, Tag
from ..core.segments import Segments
from ..executors.base import Executor
from ..tracing.trace import Trace
from .recording import LaunchShape, RecordedCall, RecordedList, shape_of

_Key = tuple[str, Tag, LaunchShape]


class ListRecorder(Executor):
    """Runs emitters through an executor, and stores the latest run as a list.

    Args:
        inner: an executor with record="times".
        segments: the table that calls' segments come from.
        pause: yielded before the first call of an emitter and after each of its awaits, and left out of the list.
        overhead: subtracted from every duration [s]; no duration is less than zero.
    """

    def __init__(
        self, inner: Executor, segments: Segments, pause: KernelCall | None = None, overhead: float = 0.0
    ) -> None:
        self.name = inner.name
        self._inner = inner
        self._segments = segments
        self._pause = pause
        self._overhead = overhead
        self._seen: dict[_Key, list[float]] = defaultdict(list)
        self._latest: list[RecordedCall] = []
        self._items: list[list[int]] = []
        self._fixed: list[bool] = []
        self._order: list[KernelCall] = []  # calls of the present run, with pauses

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Run the emitters, and note what they yield and how long it takes.

        Raises ValueError if the inner executor records no times.
        """
        sources = list(emitters)
        self._order = []
        self._items = [[] for _ in sources]
        self._fixed = [type(source) is FixedList for source in sources]
        trace = self._inner.run([self._tap(source, self._items[n]) for n, source in enumerate(sources)])
        if trace.record != "times":
            raise ValueError(
                f"the list recorder got a trace with record={trace.record!r}; give its inner executor record='times'"
            )
        self._inner.synchronize()
        self._note(trace)
        return trace

    def synchronize(self) -> None:
        """Block until everything issued has completed."""
        self._inner.synchronize()

    def close(self) -> None:
        """Close the inner executor."""
        self._inner.close()

    def durations(self) -> list[float]:
        """Return the duration of each call of the latest run, over all runs [s]."""
        return [self._duration(call) for call in self._latest]

    def result(self, **about: Any) -> RecordedList:
        """Return the list of the latest run. A duration is taken over all calls of one name, tag and shape in all runs.

        Raises RuntimeError before the first run.
        """
        if not self._items:
            raise RuntimeError("the list recorder has recorded nothing; run() emitters first")
        calls = tuple(call._replace(seconds=self._duration(call)) for call in self._latest)
        return RecordedList(calls, tuple(map(tuple, self._items)), tuple(self._fixed), self._segments, about)

    def _tap(self, source: Emitter, items: list[int]) -> Iterator[Item]:
        """Yield what an emitter yields, and pauses. `items` gets the positions of calls in the order."""
        latest: dict[KernelCall, int] = {}
        if self._pause is not None:
            yield self._enter(self._pause)
        for item in source:
            if isinstance(item, AwaitCounts):
                if item.call in latest:  # otherwise the executor refuses it
                    items.append(~latest[item.call])
                yield item
                if self._pause is not None:
                    yield self._enter(self._pause)
            elif isinstance(item, KernelCall):
                latest[item] = len(self._order)
                items.append(latest[item])
                yield self._enter(item)
            else:
                yield item

    def _enter(self, call: KernelCall) -> KernelCall:
        self._order.append(call)
        return call

    def _note(self, trace: Trace) -> None:
        """Number the calls without the pauses, and store their durations."""
        lasted = {event.seq: event.end - event.start for event in trace.events}
        number: dict[int, int] = {}
        self._latest = []
        for place, call in enumerate(self._order):
            if call is self._pause:
                continue
            number[place] = len(self._latest)
            touched = call.reads, call.writes, call.updates
            noted = RecordedCall(call.name, *touched, shape_of(call.launch), 0.0, call.cost, call.tag)
            self._latest.append(noted)
            self._seen[_key(noted)].append(lasted[place])
        self._items = [[number[n] if n >= 0 else ~number[~n] for n in items] for items in self._items]

    def _duration(self, call: RecordedCall) -> float:
        return max(0.0, middle_mean(self._seen[_key(call)]) - self._overhead)


def _key(call: RecordedCall) -> _Key:
    return call.name, call.tag, call.shape


def middle_mean(values: Iterable[float]) -> float:
    """Return the mean of the middle half: outliers do not move it, and it is finer than the tick of the clock."""
    ordered = sorted(values)
    quarter = len(ordered) // 4
    kept = ordered[quarter : len(ordered) - quarter]
    return sum(kept) / len(kept)
