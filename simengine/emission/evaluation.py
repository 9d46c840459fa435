"""The calls of one evaluation of the dynamics on a shard, prebuilt: which kernels a model needs, for which worlds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from simengine.emission.calls import CallFactory, Listed, SizedCall
from simengine.emission.islands import IslandSolution
from simengine.emission.pairs import FoundPairs
from simengine.emission.selection import (
    asked_for,
    few_worlds,
    fields_needed,
    integrator_kernels,
    launched_by,
    narrow_in_one,
    position_kernels,
    post_kernel,
    reachable_classes,
)
from simengine.emission.store import GroupStore
from simengine.kernels import catalogue
from simengine.kernels.kernel import Kernel
from simengine.kernels.pairs import mixing
from simengine.model.table import PAIR_TYPES
from simengine.state.fields import COLUMNS, FIELDS, NUM_CLASSES, ROW_CLASSES

COLUMN = {name: index for index, name in enumerate(COLUMNS)}
_CLASS_COLUMNS = (*(f"rows_{bound}" for bound in ROW_CLASSES), "rows_more")
ALL_FIELDS = frozenset(f.name for f in FIELDS)


@dataclass(frozen=True)
class Evaluation:
    """The prebuilt calls of one evaluation of the dynamics.

    Attributes:
        motion: what needs no contacts, unless `on_contacts`.
        narrow, finish: calls with their columns of counts; None for all worlds.
        after: of all worlds.
    """

    position: tuple[SizedCall, ...]
    pairs: FoundPairs | None
    scan: SizedCall
    motion: tuple[SizedCall, ...]
    on_contacts: bool
    narrow: tuple[tuple[int | None, SizedCall], ...]
    finish: tuple[tuple[int, SizedCall], ...]
    islands: IslandSolution | None
    after: tuple[SizedCall, ...]

    def in_order(self) -> Iterator[tuple[SizedCall, bool]]:
        """All calls of a dense model in program order, and whether they are scans."""
        found = [call for _, call in self.narrow], [call for _, call in self.finish]
        first, second = ((), self.motion) if self.on_contacts else (self.motion, ())
        yield from ((call, False) for call in self.position)
        yield self.scan, True
        for calls in (first, found[0], second, found[1], self.after):
            yield from ((call, False) for call in calls)


class EvaluationBuilder:
    """Builds the evaluations of a shard.

    Args:
        store: memory of the shard's group.
        factory: makes calls over worlds.
        island_factories: make those over islands, by their class.
    """

    def __init__(self, store: GroupStore, factory: CallFactory, island_factories: tuple[CallFactory, ...]):
        self._store = store
        self._factory = factory
        self._island_factories = island_factories

    def build(self, integrator: str, rk_stage: int, keep: frozenset[str], ahead: bool) -> Evaluation:
        """The calls of an evaluation.

        Args:
            integrator: name of the integrator, or empty to integrate nothing.
            rk_stage: which evaluation of a Runge-Kutta step.
            keep: derived fields that must be valid in memory afterwards.
            ahead: the calls are issued before the counts are known.
        """
        make = partial(self._factory.make, ahead=ahead)
        model = self._store.model
        few = self._few(ahead)
        kernels = launched_by(model, integrator, keep, few)
        self._factory.functions.require(kernels)
        stored = keep | fields_needed(kernels)
        scalars = {"rk_stage": rk_stage, "rk_last": 3 if integrator == "rk4" else 0}

        def all_of(kernels: tuple[Kernel, ...], ahead: bool = ahead) -> tuple[SizedCall, ...]:
            return tuple(self._factory.make(kernel, stored, scalars=scalars, ahead=ahead) for kernel in kernels)

        dense = not model.has_islands
        smooth = catalogue.smooth(model.general_smooth, model.has_fluid, model.has_adhesion)
        after = (
            catalogue.NOSLIP_KERNEL,
            post_kernel(model),
            catalogue.TENDON_POST,
            mixing(model, catalogue.SENSE_FORCES),
        )
        motion = (
            *catalogue.fitting(model, smooth),
            *asked_for(model, keep),
            *(kernel for kernel in (catalogue.sense_motion(model.has_islands),) if kernel in kernels),
        )
        return Evaluation(
            position=all_of(position_kernels(model, few)),
            pairs=FoundPairs.build(self._factory, stored) if model.finds_pairs else None,
            scan=make(catalogue.SCAN_KERNEL, stored),
            # what knows nothing of contacts repeats what it did where others do nothing, and waits for no count
            motion=all_of(motion, ahead and model.has_adhesion),
            on_contacts=model.has_adhesion,
            narrow=self._narrow(stored, ahead),
            finish=self._finish_all(integrator, stored, scalars, ahead) if dense else (),
            islands=None if dense else IslandSolution.build(model, self._factory, self._island_factories),
            after=(
                *all_of(tuple(kernel for kernel in after if kernel in kernels)),
                *all_of(integrator_kernels(model, integrator)),
                *all_of((catalogue.ACTIVATION_KERNEL,) if integrator and model.na else ()),
            ),
        )

    def _few(self, ahead: bool) -> bool:
        return few_worlds(self._store.model, self._factory.shard.size, ahead)

    def _narrow(self, stored: frozenset[str], ahead: bool) -> tuple[tuple[int | None, SizedCall], ...]:
        """Narrowphase calls by their column of counts, None for those over all worlds."""
        model = self._store.model
        if self._few(ahead) and narrow_in_one(model):
            return ((None, self._factory.make(catalogue.NARROW_LIGHT, stored, ahead=True)),)
        codes = () if model.finds_pairs else model.pair_codes
        return tuple(
            (
                COLUMN[name],
                self._factory.make(catalogue.NARROW[name], stored, Listed(name, "pair type", code, True), ahead=ahead),
            )
            for code, name in ((code, PAIR_TYPES[code]) for code in codes)
        )

    def _finish_all(
        self, integrator: str, stored: frozenset[str], scalars: dict[str, int], ahead: bool
    ) -> tuple[tuple[int, SizedCall], ...]:
        """Solver calls by their column of counts, of the classes of worlds; that which takes longest comes first."""
        classes = reachable_classes(self._store.model)
        bounded = range(1, min(classes, NUM_CLASSES - 1))
        unbounded = (NUM_CLASSES - 1,) if classes == NUM_CLASSES else ()
        finish = partial(self._finish, integrator, stored, scalars, ahead)
        if self._few(ahead) and bounded:
            # room for the rows of the largest class suits all
            together = finish(bounded[-1], NUM_CLASSES, "rows_bounded", "_bounded")
            return (*(finish(c, c, _CLASS_COLUMNS[c], "") for c in unbounded), together)
        with_rows = (
            finish(c, c, _CLASS_COLUMNS[c], f"_{ROW_CLASSES[c]}" if c in bounded else "")
            for c in reversed((*bounded, *unbounded))
        )
        kernel = catalogue.advance(integrator, self._store.model.solver)
        free = Listed("rows_0", "size class", 0, True)
        without = self._factory.make(kernel, stored, free, 0, scalars, ahead=ahead)
        return (*with_rows, (COLUMN["rows_0"], without))

    def _finish(
        self,
        integrator: str,
        stored: frozenset[str],
        scalars: dict[str, int],
        ahead: bool,
        size_class: int,
        member: int,
        column: str,
        suffix: str,
    ) -> tuple[int, SizedCall]:
        arena = size_class == NUM_CLASSES - 1
        nrow = 0 if arena else ROW_CLASSES[size_class]
        kernel = catalogue.finish(integrator, self._store.model.solver, arena)
        listed = Listed(column, "size class", member, True)
        return COLUMN[column], self._factory.make(kernel, stored, listed, nrow, scalars, suffix, ahead)
