"""Binds the plan of an evaluation to the memory of a shard: kernels become calls with arguments and segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simengine.emission.calls import CallFactory
from simengine.emission.sized import SizedCall
from simengine.kernels.functions import Build
from simengine.kernels.kernel import Kernel
from simengine.plan.evaluation import Evaluation
from simengine.plan.launches import Await, Count, Launch


class BoundLaunch(NamedTuple):
    """A call of an evaluation.

    Attributes:
        call: the call, for any number of units.
        units: number of worlds of the shard, or the most islands; number of columns for a scan.
        counted: the count that gives the number of units instead; None if `units` gives it.
    """

    call: SizedCall
    units: int
    counted: Count | None


class BoundAwait(NamedTuple):
    """A wait for counts. After it the host knows the counts, and the arenas have capacity for what was counted.

    Attributes:
        scan: the call that counts.
        needs: pairs of an arena's space and the count of entries that the arena must hold.
    """

    scan: SizedCall
    needs: tuple[tuple[str, Count], ...]


BoundEvaluation = tuple[BoundLaunch | BoundAwait, ...]


def bind(evaluation: Evaluation, over_worlds: CallFactory, over_islands: Sequence[CallFactory]) -> BoundEvaluation:
    """Make the calls of an evaluation, in program order.

    Args:
        evaluation: the plan of the evaluation.
        over_worlds: makes the calls over worlds of the shard.
        over_islands: make the calls over islands of the shard, one factory for each size class.

    Returns:
        Calls and waits for counts.
    """

    def factory_of(item: Launch) -> CallFactory:
        return over_worlds if item.island_class is None else over_islands[item.island_class]

    launches = [item for item in evaluation.launches if isinstance(item, Launch)]
    over_worlds.functions.require(Build(item.kernel, factory_of(item).lanes) for item in launches)
    bound: list[BoundLaunch | BoundAwait] = []
    made: dict[Kernel, SizedCall] = {}
    for item in evaluation.launches:
        if isinstance(item, Await):
            bound.append(BoundAwait(made[item.scan], item.needs))
            continue
        kernel = item.kernel
        made[kernel] = factory_of(item).make(item, evaluation.stored, evaluation.scalars)
        worlds = over_worlds.shard.size
        units = kernel.columns if kernel.unit == "column" else worlds * item.most_of_a_world
        bound.append(BoundLaunch(made[kernel], units, item.counted))
    return tuple(bound)
