"""Random kernel lists over small arrays, whose results show the order in which they ran.

Bodies do not commute: a write replaces a piece by a hash of what was read, and an update multiplies before it adds. An
illegal order therefore changes bits. Emitters branch on numbers that they have awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from simengine_scheduler import AwaitCounts, KernelCall, PythonLaunch, Segments, validate
from simengine_scheduler.core import Tag

BUFFERS, SHARDS, SIZE = 3, 2, 4

# Pieces of a buffer of four elements: the whole, and the members of two families that divide it differently.
PIECES: list[tuple[tuple[str, int] | None, slice]] = [
    (None, slice(0, 4)),
    (("half", 0), slice(0, 2)),
    (("half", 1), slice(2, 4)),
    (("comb", 0), slice(0, 4, 2)),
    (("comb", 1), slice(1, 4, 2)),
]

Access = tuple[int, int, int]  # buffer, shard, piece


@dataclass(frozen=True)
class Spec:
    """One call of a list: what it accesses, and whether the emitter awaits it and may then omit the next call."""

    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    updates: tuple[Access, ...]
    awaited: bool = False


def specs(shards: int = SHARDS, awaits: bool = True) -> st.SearchStrategy[list[list[Spec]]]:
    """Lists with one to three emitters, each of up to a dozen calls."""
    access = st.tuples(st.integers(0, BUFFERS - 1), st.integers(0, shards - 1), st.integers(0, len(PIECES) - 1))
    pieces = [st.lists(access, max_size=n).map(tuple) for n in (3, 2, 1)]
    spec = st.builds(Spec, *pieces, st.booleans() if awaits else st.just(False))
    return st.lists(st.lists(spec, max_size=12), min_size=1, max_size=3)


class Program:
    """Memory, segments and emitters of one list. `launcher` makes a launch of a Python body."""

    def __init__(
        self, emitters: list[list[Spec]], launcher: Callable[[Callable[[], None]], Any] = PythonLaunch
    ) -> None:
        self.segments = Segments()
        self.memory = np.zeros((BUFFERS, SHARDS, SIZE), np.uint64)
        self.counts = np.zeros(len(emitters), np.uint64)
        self.bodies_run = 0
        self._launcher = launcher
        self._calls = [
            [self._call(e, 100 * e + k, spec) for k, spec in enumerate(emitter)] for e, emitter in enumerate(emitters)
        ]
        self._specs = emitters
        self.reset()

    def reset(self) -> None:
        """Restore the initial memory."""
        self.memory[:] = np.arange(self.memory.size, dtype=np.uint64).reshape(self.memory.shape)
        self.counts[:] = 0
        self.bodies_run = 0

    def snapshot(self) -> bytes:
        """Return all of memory."""
        return self.memory.tobytes() + self.counts.tobytes()

    def emitters(self) -> list[Iterator[KernelCall | AwaitCounts]]:
        """Return fresh emitters."""
        return [self._emit(e) for e in range(len(self._calls))]

    def _emit(self, e: int) -> Iterator[KernelCall | AwaitCounts]:
        skip = False
        for call, spec in zip(self._calls[e], self._specs[e], strict=True):
            if skip:
                skip = False
                continue
            yield call
            if spec.awaited:
                yield AwaitCounts(call)
                skip = int(self.counts[e]) % 3 == 0

    def _segment(self, access: Access) -> int:
        buffer, shard, piece = access
        return self.segments.intern(f"b{buffer}", shard, PIECES[piece][0])

    def _view(self, access: Access) -> np.ndarray:
        buffer, shard, piece = access
        return self.memory[buffer, shard, PIECES[piece][1]]

    def _call(self, e: int, number: int, spec: Spec) -> KernelCall:
        reads, writes, updates = ([self._view(a) for a in group] for group in (spec.reads, spec.writes, spec.updates))
        weights = np.array([3, 5, 7, 11], np.uint64)

        def body() -> None:
            self.bodies_run += 1
            value = np.array([number + 1], np.uint64)
            for view in reads + updates:
                value = value * np.uint64(6364136223846793005) + np.sum(view * weights[: len(view)])
            for view in writes:
                view[:] = value + np.uint64(1)
            for view in updates:
                view[:] = view * np.uint64(31) + value
            self.counts[e] = value[0] >> np.uint64(7)

        count = self.segments.intern(f"count{e}")
        return KernelCall(
            f"call{number}",
            self._launcher(body),
            tuple(self._segment(a) for a in spec.reads),
            (count, *(self._segment(a) for a in spec.writes)),
            tuple(self._segment(a) for a in spec.updates),
            tag=Tag(shard=e, stage=f"stage{number % 3}"),
        )


def run_and_check(program: Program, executor: Any) -> bytes:
    """Run a list and return its bits. Check that the order was legal, all calls ran, and the bits are the expected."""
    program.reset()
    trace = executor.run(program.emitters())
    executor.synchronize()
    result = program.snapshot()
    assert validate(trace.order, trace, program.segments) == []
    assert trace.counters.calls == len(trace.order) == len(trace.events) == program.bodies_run
    program.reset()
    for call in trace.order:
        call.launch.function()
    assert program.snapshot() == result
    return result
