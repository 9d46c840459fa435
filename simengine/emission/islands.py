"""Rows and solution of worlds that are solved island by island, with a second count.

    constraint_blocks ── islands ── scan_islands ── counts ── gather ── solver, per size class ── scatter

Islands are problems of their own, those of all worlds side by side; large ones have a solver that keeps their matrices
sparse. Before and after, such worlds differ from others in
this only, that inertia is stored by blocks and that stages are not fused, since large worlds do not fit in scratch.
"""

from __future__ import annotations

from simengine.emission.calls import CallFactory, Listed, SizedCall
from simengine.emission.plan import Count, Plan, Room, Work
from simengine.kernels import island_kernels
from simengine.kernels.kernel import Kernel
from simengine.model.model_table import ModelTable
from simengine.state.fields import (
    FIELDS,
    HUGE_ISLANDS,
    ISLAND_ARENAS,
    ISLAND_COLUMNS,
    LARGE_ISLANDS,
    NUM_ISLAND_CLASSES,
)

_STORED = frozenset(f.name for f in FIELDS)
_TABLE = "island_totals_host"
_NEEDS = (
    (ISLAND_ARENAS[0], Count(_TABLE, 0, NUM_ISLAND_CLASSES)),
    *((space, Count(_TABLE, NUM_ISLAND_CLASSES + i)) for i, space in enumerate(ISLAND_ARENAS[1:])),
)


def island_solution(model: ModelTable, over_worlds: CallFactory, of_class: tuple[CallFactory, ...]) -> Plan:
    """The plan of one shard; `of_class` makes calls over the islands of each class."""
    constraint, islands, scan, gather, *solver, scatter = island_kernels.island_solution(model)
    worlds = over_worlds.shard.size

    def make(kernel: Kernel) -> Work:
        return Work(over_worlds.make(kernel, _STORED), worlds)

    def of(kernel: Kernel, c: int) -> SizedCall:
        suffix = ISLAND_COLUMNS[c].removeprefix("islands")
        return of_class[c].make(kernel, _STORED, Listed("", "island class", c, True), suffix=suffix)

    def by_class(kernel: Kernel) -> tuple[Work, ...]:
        large = island_kernels.LARGE_FORMS.get(kernel.name)
        calls = [of(kernel, c) for c in range(LARGE_ISLANDS)]
        calls += [] if large is None else [of(large, LARGE_ISLANDS), of(large, HUGE_ISLANDS)]
        # the class that takes longest is issued first
        return tuple(Work(call, worlds, Count(_TABLE, c)) for c, call in reversed(list(enumerate(calls))))

    counted = Work(over_worlds.make(scan, _STORED), len(ISLAND_COLUMNS))
    by_form = (kernel for kernel in solver if kernel.unit != "large island")
    solve = (by_class(kernel) if kernel.unit == "island" else (make(kernel),) for kernel in by_form)
    return (
        *(make(constraint), make(islands), counted, Room(counted.call, _NEEDS), make(gather)),
        *(work for works in solve for work in works),
        make(scatter),
    )
