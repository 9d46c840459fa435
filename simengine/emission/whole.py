"""`whole_step`: a step of a shard as one compiled call on a CPU, which reads the counts without Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from simengine.backends.host_program import CallOp, CapacityOp, HostProgram, RepeatedProgram
from simengine.emission.binding import BoundAwait, BoundEvaluation, BoundLaunch
from simengine.emission.calls import EmittedCall, Shard
from simengine.emission.store import GroupStore
from simengine.plan.launches import Count
from simengine_scheduler import HostLaunch, KernelCall
from simengine_scheduler.core import Tag

NAME = "step"


class WholeStep(NamedTuple):
    """The call of a whole step, and the record of its latest run.

    Attributes:
        call: runs all evaluations of the step.
        program: the launch of `call`.
        works: the calls of the program, each with its index in the program.
        repeated: the launch of `several`.
        several: runs the step as often as `repeated` was told.
    """

    call: KernelCall
    program: HostProgram
    works: tuple[tuple[int, BoundLaunch], ...]
    repeated: RepeatedProgram
    several: KernelCall

    def log(self) -> list[EmittedCall]:
        """The calls that the latest run made, in program order."""
        over = self.program.over.tolist()
        return [EmittedCall(work.call.sized(over[at]), over[at]) for at, work in self.works if over[at]]


def whole_step(store: GroupStore, shard: Shard, plans: Sequence[BoundEvaluation]) -> WholeStep:
    """Make one call of all evaluations of a step.

    Args:
        store: memory of the group.
        shard: the worlds of the call.
        plans: the evaluations of the step, in order.
    """
    ops: list[CallOp | CapacityOp] = []
    works: list[tuple[int, BoundLaunch]] = []
    for item in (item for plan in plans for item in plan):
        if isinstance(item, BoundAwait):
            ops += _capacity_checks(store, shard.index_in_group, item)
            continue
        works.append((len(ops), item))
        launch = item.call.call.launch
        assert isinstance(launch, HostLaunch)
        counts = None if item.counted is None else _columns(store, shard.index_in_group, item.counted)
        ops.append(CallOp(launch, item.units, counts))
    program = HostProgram(ops, store.buffers, store)
    calls = [work.call.call for _, work in works]
    written = {s for call in calls for s in (*call.writes, *call.updates)}
    reads = {s for call in calls for s in call.reads} - written
    tag = Tag((shard.group,), shard.number, NAME)
    repeated = RepeatedProgram(program)
    call, several = (
        KernelCall(NAME, launch, tuple(sorted(reads)), (), tuple(sorted(written)), tag=tag)
        for launch in (program, repeated)
    )
    return WholeStep(call, program, tuple(works), repeated, several)


def _columns(store: GroupStore, place: int, count: Count) -> np.ndarray:
    return store.host_counts(count.table)[place, count.first : count.first + count.number]


def _capacity_checks(store: GroupStore, place: int, wait: BoundAwait) -> Iterator[CapacityOp]:
    for space, count in wait.needs:
        yield CapacityOp(_columns(store, place, count), store.arena(space, place))
