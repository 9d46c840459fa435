"""The emission of worlds that are solved island by island: single stages, and a second count.

    ... constraint_blocks ── islands ── scan_islands ── counts ── gather ── solve_islands, per size class ── scatter

Everything before differs from other worlds in this only, that inertia is stored by blocks and that stages are not
fused, since large worlds do not fit in scratch. Islands are then problems of their own, of all worlds side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from scheduler import AwaitCounts
from scheduler.calls import Item
from simengine.emission.calls import CallFactory, EmittedCall, Listed, SizedCall
from simengine.emission.store import GroupStore
from simengine.kernels import catalogue
from simengine.kernels.kernel import Kernel
from simengine.model.table import PAIR_TYPES
from simengine.state.fields import COLUMNS, FIELDS, ISLAND_COLUMNS, NUM_ISLAND_CLASSES

_STORED = frozenset(f.name for f in FIELDS)
_COLUMN = {name: index for index, name in enumerate(COLUMNS)}


@dataclass(frozen=True)
class IslandEvaluation:
    """The prebuilt calls of one evaluation: up to the first count, up to the second, and after it."""

    position: tuple[SizedCall, ...]
    scan: SizedCall
    smooth: tuple[SizedCall, ...]
    narrow: tuple[tuple[int, SizedCall], ...]
    rows: tuple[SizedCall, ...]
    scan_islands: SizedCall
    gather: SizedCall
    solve: tuple[SizedCall, ...]
    finish: tuple[SizedCall, ...]

    @staticmethod
    def build(
        store: GroupStore,
        make: CallFactory,
        of_class: tuple[CallFactory, ...],
        integrator: str,
        keep: frozenset[str],
        scalars: Mapping[str, int],
    ) -> IslandEvaluation:
        """The calls of one shard.

        Args:
            store: the group's memory.
            make: makes calls over worlds.
            of_class: make calls over the islands of each class.
            integrator: name, or empty for none.
            keep: fields that must be valid afterwards.
            scalars: values of the kernels' scalars.
        """
        model = store.model

        def over_worlds(*kernels: Kernel) -> tuple[SizedCall, ...]:
            return tuple(make.make(kernel, _STORED, scalars=scalars) for kernel in kernels)

        ends = [catalogue.single(catalogue.SCATTER)]
        ends += [catalogue.POST] if "cfrc_ext" in keep else []
        ends += [catalogue.integrator_by_blocks(integrator)] if integrator else []
        types = set(model.cand_type.tolist())
        make.functions.require(catalogue.island_kernels(model))
        return IslandEvaluation(
            position=over_worlds(*catalogue.by_blocks(catalogue.position(model.general_position))),
            scan=make.make(catalogue.SCAN_KERNEL, _STORED),
            smooth=over_worlds(*catalogue.by_blocks(catalogue.smooth(model.has_fluid))),
            narrow=tuple(
                (_COLUMN[name], make.make(catalogue.NARROW[name], _STORED, Listed(name, "pair type", code, True)))
                for code, name in enumerate(PAIR_TYPES)
                if code in types
            ),
            rows=over_worlds(catalogue.single(catalogue.CONSTRAINT_BLOCKS), catalogue.single(catalogue.ISLANDS)),
            scan_islands=make.make(catalogue.single(catalogue.SCAN_ISLANDS), _STORED),
            gather=over_worlds(catalogue.single(catalogue.GATHER))[0],
            solve=tuple(
                factory.make(catalogue.SOLVE_ISLANDS, _STORED, Listed("", "island class", c, True), suffix=f"_{name}")
                for c, (factory, name) in enumerate(zip(of_class, ISLAND_COLUMNS, strict=False))
            ),
            finish=over_worlds(*ends),
        )

    def emit(
        self, worlds: int, store: GroupStore, place: int, totals: np.ndarray, log: list[EmittedCall]
    ) -> Iterator[Item]:
        """Emit the evaluation of the `worlds` of shard `place`, whose count of contacts and rows arrives in `totals`."""

        def of(call: SizedCall, units: int) -> Item:
            log.append(EmittedCall(call.sized(units), units))
            return log[-1].call

        yield from (of(call, worlds) for call in self.position)
        log.append(EmittedCall(self.scan.call, len(COLUMNS)))
        yield self.scan.call
        yield from (of(call, worlds) for call in self.smooth)
        yield AwaitCounts(self.scan.call)
        store.contacts[place].reserve(int(totals[0]))
        store.rows[place].reserve(int(totals[1]))
        yield from (of(call, int(totals[column])) for column, call in self.narrow if totals[column])
        yield from (of(call, worlds) for call in self.rows)
        if totals[1]:
            log.append(EmittedCall(self.scan_islands.call, len(ISLAND_COLUMNS)))
            yield self.scan_islands.call
            yield AwaitCounts(self.scan_islands.call)
            counted = store.island_totals_host[place].tolist()
            needs = (sum(counted[:NUM_ISLAND_CLASSES]), *counted[NUM_ISLAND_CLASSES:])
            for arenas, need in zip(store.islands.values(), needs, strict=True):
                arenas[place].reserve(need)
            yield of(self.gather, worlds)
            # the class that takes longest is issued first
            for call, islands in reversed(list(zip(self.solve, counted, strict=False))):
                if islands:
                    yield of(call, islands)
        yield from (of(call, worlds) for call in self.finish)
