"""Rows and solution of worlds that are solved island by island, with a second count.

    constraint_blocks ── islands ── scan_islands ── counts ── gather ── solver, per size class ── scatter

Islands are problems of their own, those of all worlds side by side; large ones have a solver that keeps their matrices
sparse. Before and after, such worlds differ from others in
this only, that inertia is stored by blocks and that stages are not fused, since large worlds do not fit in scratch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scheduler import AwaitCounts
from scheduler.calls import Item
from simengine.emission.calls import CallFactory, EmittedCall, Listed, SizedCall
from simengine.emission.store import GroupStore
from simengine.kernels import catalogue
from simengine.kernels.kernel import Kernel
from simengine.model.model import Model
from simengine.state.fields import FIELDS, HUGE_ISLANDS, ISLAND_COLUMNS, LARGE_ISLANDS, NUM_ISLAND_CLASSES

_STORED = frozenset(f.name for f in FIELDS)


@dataclass(frozen=True)
class IslandSolution:
    """The prebuilt calls of one shard, in their order; the solver's over islands by their class, or over worlds."""

    rows: tuple[SizedCall, ...]
    scan: SizedCall
    gather: SizedCall
    solve: tuple[tuple[SizedCall, ...], ...]
    scatter: SizedCall

    @staticmethod
    def build(model: Model, over_worlds: CallFactory, of_class: tuple[CallFactory, ...]) -> IslandSolution:
        """The calls; `of_class` makes those over the islands of each class."""
        constraint, islands, scan, gather, *solver, scatter = catalogue.island_solution(model)

        def make(kernel: Kernel) -> SizedCall:
            return over_worlds.make(kernel, _STORED)

        def of(kernel: Kernel, c: int) -> SizedCall:
            suffix = ISLAND_COLUMNS[c].removeprefix("islands")
            return of_class[c].make(kernel, _STORED, Listed("", "island class", c, True), suffix=suffix)

        def by_class(kernel: Kernel) -> tuple[SizedCall, ...]:
            large = catalogue.LARGE_FORMS.get(kernel.name)
            dense = tuple(of(kernel, c) for c in range(LARGE_ISLANDS))
            return dense if large is None else (*dense, of(large, LARGE_ISLANDS), of(large, HUGE_ISLANDS))

        by_form = (kernel for kernel in solver if kernel.unit != "large island")
        solve = tuple(by_class(kernel) if kernel.unit == "island" else (make(kernel),) for kernel in by_form)
        return IslandSolution((make(constraint), make(islands)), make(scan), make(gather), solve, make(scatter))

    def emit(self, worlds: int, store: GroupStore, place: int, log: list[EmittedCall]) -> Iterator[Item]:
        """Emit the solution of the `worlds` of shard `place`, whose arenas of contacts and rows are made."""

        def of(call: SizedCall, units: int) -> Item:
            log.append(EmittedCall(call.sized(units), units))
            return log[-1].call

        yield from (of(call, worlds) for call in self.rows)
        log.append(EmittedCall(self.scan.call, len(ISLAND_COLUMNS)))
        yield self.scan.call
        yield AwaitCounts(self.scan.call)
        counts = store.island_totals_host[place].tolist()
        needs = (sum(counts[:NUM_ISLAND_CLASSES]), *counts[NUM_ISLAND_CLASSES:])
        for arenas, need in zip(store.islands.values(), needs, strict=True):
            arenas[place].reserve(need)
        yield of(self.gather, worlds)
        for calls in self.solve:
            units = [worlds] if len(calls) == 1 else counts
            # the class that takes longest is issued first
            for call, number in reversed(list(zip(calls, units, strict=False))):
                if number:
                    yield of(call, number)
        yield of(self.scatter, worlds)
