"""Binding the plan of an evaluation to the memory of a shard: kernels become calls with arguments and segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simengine.emission.calls import CallFactory, SizedCall
from simengine.kernels.kernel import Kernel
from simengine.plan.evaluation import Await, Count, Evaluation
from simengine.state.fields import COLUMNS_OF, FIELD


class BoundLaunch(NamedTuple):
    """A call.

    Attributes:
        units: how many worlds it is over, or columns for a scan.
        counted: what it is over instead, where that is counted.
    """

    call: SizedCall
    units: int
    counted: Count | None


class BoundAwait(NamedTuple):
    """Behind it the host knows counts, and arenas have the capacity for what was counted.

    Attributes:
        scan: the call that counts.
        needs: spaces of arenas, and how many entries each must have.
    """

    scan: SizedCall
    needs: tuple[tuple[str, Count], ...]


BoundEvaluation = tuple[BoundLaunch | BoundAwait, ...]


def bind(evaluation: Evaluation, over_worlds: CallFactory, over_islands: Sequence[CallFactory]) -> BoundEvaluation:
    """The calls of an evaluation, in program order.

    Args:
        evaluation: the plan.
        over_worlds: makes calls over worlds of the shard.
        over_islands: make calls over its islands, one for each size class.
    """
    over_worlds.functions.require(kernel for kernel in evaluation.kernels if not kernel.on_islands)
    bound: list[BoundLaunch | BoundAwait] = []
    made: dict[Kernel, SizedCall] = {}
    for item in evaluation.launches:
        if isinstance(item, Await):
            bound.append(BoundAwait(made[item.scan], item.needs))
            continue
        kernel = item.kernel
        factory = over_worlds if item.island_class is None else over_islands[item.island_class]
        made[kernel] = factory.make(item, evaluation.stored, evaluation.scalars)
        units = columns_of(kernel) if kernel.unit == "column" else over_worlds.shard.size
        bound.append(BoundLaunch(made[kernel], units, item.counted))
    return tuple(bound)


def columns_of(kernel: Kernel) -> int:
    """How many columns a scan is over."""
    return len(COLUMNS_OF[FIELD[kernel.reads[0]].space])
