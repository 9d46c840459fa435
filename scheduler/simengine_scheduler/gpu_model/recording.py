"""Recorded lists: the calls of a run as data, with what each asks of a GPU and how long it takes alone.

recorder = ListRecorder(make_executor("serial", device="cuda", record="times"), segments)
recorder.run(emitters)                        # as often as you like
recorder.result().save("list.json.gz")        # and then, on any machine:
recorded = RecordedList.load("list.json.gz")
trace = make_executor("simulated", segments=recorded.segments).run(recorded.emitters())
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..core.calls import AwaitCounts, Cost, Emitter, FixedList, Item, KernelCall, Tag
from ..core.segments import Segments

_VERSION = 1


class LaunchShape(NamedTuple):
    """What a launch asks of a GPU: blocks, threads per block, registers per thread, shared memory per block [bytes]."""

    blocks: int = 1
    threads: int = 32
    registers: int = 32
    shared: int = 0


class RecordedLaunch(NamedTuple):
    """A kernel in a recorded list: its shape, and its duration alone on the device [s]. It has no body."""

    shape: LaunchShape
    seconds: float

    def issue(self, stream: int) -> None:
        """Raise RuntimeError: there is nothing to run."""
        raise RuntimeError("a recorded call has no body to run; give recorded lists to executor 'simulated'")


class RecordedCall(NamedTuple):
    """One call. Its segments are positions in the table of its list."""

    name: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    updates: tuple[int, ...]
    shape: LaunchShape
    seconds: float
    cost: Cost
    tag: Tag

    def kernel_call(self) -> KernelCall:
        """Return a `KernelCall` with the same data, which cannot run."""
        launch = RecordedLaunch(self.shape, self.seconds)
        return KernelCall(self.name, launch, self.reads, self.writes, self.updates, self.cost, self.tag)


def shape_of(launch: Any) -> LaunchShape:
    """Return what a launch asks of a GPU. A host launch, which does not say, counts as one block of one warp."""
    shape = getattr(launch, "shape", None)
    if isinstance(shape, LaunchShape):
        return shape
    if not hasattr(launch, "grid"):
        return LaunchShape()
    registers, static = launch.resources()
    (a, b, c), (x, y, z) = launch.grid, launch.block
    return LaunchShape(a * b * c, x * y * z, registers, launch.shared + static)


@dataclass(frozen=True, eq=False)
class RecordedList:
    """A list of calls as it was emitted.

    Attributes:
        calls: in program order.
        items: what each emitter yielded: n is call n, and ~n is the await of call n.
        fixed: for each emitter whether it was a `FixedList`.
        segments: the table that the calls' segments belong to.
        about: what was recorded, and on which machine; plain data.

    Raises ValueError if the parts do not fit together.
    """

    calls: tuple[RecordedCall, ...]
    items: tuple[tuple[int, ...], ...]
    fixed: tuple[bool, ...]
    segments: Segments
    about: Mapping[str, Any] = field(default_factory=dict)
    _made: list[KernelCall] = field(init=False, repr=False)
    _lists: list[FixedList | None] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the parts, and make the calls once, so that executors recognise them in later runs."""
        _check(self)
        made = [call.kernel_call() for call in self.calls]
        lists = [
            FixedList(made[n] for n in items) if fixed else None
            for items, fixed in zip(self.items, self.fixed, strict=True)
        ]
        object.__setattr__(self, "_made", made)
        object.__setattr__(self, "_lists", lists)

    def emitters(self, repeats: int = 1) -> list[Emitter]:
        """Return new emitters, each of which yields its items `repeats` times.

        An emitter that was a `FixedList` is one again, unless it is repeated. The calls are the same objects each time.
        """
        found: list[Emitter] = []
        for items, fixed in zip(self.items, self._lists, strict=True):
            found.append(fixed if fixed is not None and repeats == 1 else self._emit(items, repeats))
        return found

    def _emit(self, items: tuple[int, ...], repeats: int) -> Iterator[Item]:
        made = self._made
        for _ in range(repeats):
            for n in items:
                yield made[n] if n >= 0 else AwaitCounts(made[~n])

    def seconds(self) -> float:
        """Return the sum of all durations [s]."""
        return sum(call.seconds for call in self.calls)

    def to_data(self) -> dict[str, Any]:
        """Return the list as plain data, with the segments that its calls use."""
        used = sorted({s for call in self.calls for s in call.reads + call.writes + call.updates})
        place = {segment: n for n, segment in enumerate(used)}

        def row(call: RecordedCall) -> list[Any]:
            touched = ([place[s] for s in part] for part in (call.reads, call.writes, call.updates))
            return [call.name, *touched, call.shape, call.seconds, call.cost, call.tag]

        return {
            "version": _VERSION,
            "about": dict(self.about),
            "segments": self.segments.to_data(used),
            "emitters": [{"fixed": f, "items": i} for f, i in zip(self.fixed, self.items, strict=True)],
            "calls": [row(call) for call in self.calls],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> RecordedList:
        """Return the list that `to_data` described. Raises ValueError for another version or missing parts."""
        if data.get("version") != _VERSION:
            raise ValueError(f"a recorded list has version {data.get('version')!r}, not {_VERSION}; record it anew")
        try:
            segments = Segments.from_data(data["segments"])
            calls = tuple(_call(row) for row in data["calls"])
            items = tuple(tuple(emitter["items"]) for emitter in data["emitters"])
            fixed = tuple(bool(emitter["fixed"]) for emitter in data["emitters"])
            return cls(calls, items, fixed, segments, data["about"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"a recorded list is damaged ({type(error).__name__}: {error}); record it anew") from error

    def save(self, path: str | Path) -> None:
        """Write the list as JSON, compressed where the name ends in `.gz`."""
        write_json(path, self.to_data())

    @classmethod
    def load(cls, path: str | Path) -> RecordedList:
        """Read what `save` wrote."""
        return cls.from_data(read_json(path))


def _call(row: list[Any]) -> RecordedCall:
    name, reads, writes, updates, shape, seconds, cost, (groups, shard, stage) = row
    touched = tuple(reads), tuple(writes), tuple(updates)
    return RecordedCall(name, *touched, LaunchShape(*shape), seconds, Cost(*cost), Tag(tuple(groups), shard, stage))


def _check(recorded: RecordedList) -> None:
    count = len(recorded.calls)
    if sorted(n for items in recorded.items for n in items if n >= 0) != list(range(count)):
        raise ValueError(f"the emitters of a recorded list must yield each of its {count} calls once; record it anew")
    for items in recorded.items:
        yielded = set[int]()
        for n in items:
            if n < 0 and ~n not in yielded:
                raise ValueError(
                    f"an emitter of a recorded list awaits call {~n} before it yields that call; record it anew"
                )
            yielded.add(n)
    for call in recorded.calls:
        if not call.seconds >= 0.0:
            raise ValueError(f"recorded call {call.name!r} lasts {call.seconds} s; record it with record='times'")
        if min(call.shape.blocks, call.shape.threads) < 1:
            raise ValueError(f"recorded call {call.name!r} has no threads: {call.shape}; record it anew")
        for segment in call.reads + call.writes + call.updates:
            if not 0 <= segment < len(recorded.segments):
                raise ValueError(
                    f"recorded call {call.name!r} names segment {segment}, which its table lacks; record it anew"
                )


def write_json(path: str | Path, data: Any) -> None:
    """Write plain data as JSON, compressed if the name ends in `.gz`. The same data give the same bytes."""
    raw = json.dumps(data, separators=(",", ":")).encode()
    Path(path).write_bytes(gzip.compress(raw, mtime=0) if str(path).endswith(".gz") else raw)


def read_json(path: str | Path) -> Any:
    """Read what `write_json` wrote."""
    raw = Path(path).read_bytes()
    return json.loads(gzip.decompress(raw) if str(path).endswith(".gz") else raw)
