"""A step of a shard as one call of the host, whose counts are read without Python; see `BoundEvaluation`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from simengine.backends.host_program import CallOp, HostProgram, RoomOp
from simengine.emission.binding import BoundAwait, BoundEvaluation, BoundLaunch
from simengine.emission.calls import EmittedCall, Shard
from simengine.emission.store import GroupStore
from simengine.plan.evaluation import Count
from simengine_scheduler import HostLaunch, KernelCall
from simengine_scheduler.core import Tag

NAME = "step"


class WholeStep(NamedTuple):
    """The call of a step, and how to tell what it did.

    Attributes:
        call: runs the plans of all evaluations.
        program: its launch.
        works: calls of the program by their places in it.
    """

    call: KernelCall
    program: HostProgram
    works: tuple[tuple[int, BoundLaunch], ...]

    def log(self) -> list[EmittedCall]:
        """The calls that the latest run made."""
        over = self.program.over.tolist()
        return [EmittedCall(work.call.sized(over[at]), over[at]) for at, work in self.works if over[at]]


def whole_step(store: GroupStore, shard: Shard, plans: Sequence[BoundEvaluation]) -> WholeStep:
    """The plans of a step's evaluations on a shard as one call."""
    ops: list[CallOp | RoomOp] = []
    works: list[tuple[int, BoundLaunch]] = []
    for item in (item for plan in plans for item in plan):
        if isinstance(item, BoundAwait):
            ops += _rooms(store, shard.place, item)
            continue
        works.append((len(ops), item))
        launch = item.call.call.launch
        assert isinstance(launch, HostLaunch)
        counts = None if item.counted is None else _columns(store, shard.place, item.counted)
        ops.append(CallOp(launch, item.units, counts))
    program = HostProgram(ops, store.buffers)
    calls = [work.call.call for _, work in works]
    written = {s for call in calls for s in (*call.writes, *call.updates)}
    reads = {s for call in calls for s in call.reads} - written
    tag = Tag((shard.group,), shard.number, NAME)
    call = KernelCall(NAME, program, tuple(sorted(reads)), (), tuple(sorted(written)), tag=tag)
    return WholeStep(call, program, tuple(works))


def _columns(store: GroupStore, place: int, count: Count) -> np.ndarray:
    return store.host_counts(count.table)[place, count.first : count.first + count.number]


def _rooms(store: GroupStore, place: int, wait: BoundAwait) -> Iterator[RoomOp]:
    for space, count in wait.needs:
        yield RoomOp(_columns(store, place, count), store.arena(space, place))
