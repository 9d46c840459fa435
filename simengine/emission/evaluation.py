"""The calls of one evaluation of the dynamics on a shard, prebuilt: which kernels a model needs, for which worlds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from simengine.emission.calls import CallFactory, Listed, SizedCall
from simengine.emission.islands import island_solution
from simengine.emission.pairs import FoundPairs, found_pairs
from simengine.emission.plan import Count, Plan, Room, Work
from simengine.emission.selection import (
    all_light,
    asked_for,
    few_worlds,
    fields_needed,
    integrator_kernels,
    launched_by,
    narrow_in_one,
    position_kernels,
    post_kernel,
    reachable_classes,
    smooth_kernels,
)
from simengine.emission.store import GroupStore
from simengine.kernels import catalogue, island_kernels
from simengine.kernels.kernel import Kernel
from simengine.kernels.pairs import mixing
from simengine.model.model_table import ModelTable
from simengine.model.table import PAIR_TYPES
from simengine.state.fields import COLUMNS, FIELDS, NUM_CLASSES, ROW_CLASSES, SENSED

COLUMN = {name: index for index, name in enumerate(COLUMNS)}
_NEEDS = (("contact", Count("totals_host", COLUMN["ncon"])), ("row", Count("totals_host", COLUMN["nefc"])))
_CLASS_COLUMNS = (*(f"rows_{bound}" for bound in ROW_CLASSES), "rows_more")
ALL_FIELDS = frozenset(f.name for f in FIELDS)

Maker = Callable[..., SizedCall]
"""Makes the call of a kernel; takes what `CallFactory.make` does, with the fields to be stored known."""


def _count(column: str) -> Count:
    return Count("totals_host", COLUMN[column])


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

    def build(self, integrator: str, rk_stage: int, keep: frozenset[str], ahead: bool) -> Plan:
        """The plan of an evaluation.

        Args:
            integrator: name of the integrator, or empty to integrate nothing.
            rk_stage: which evaluation of a Runge-Kutta step.
            keep: derived fields that must be valid in memory afterwards.
            ahead: the calls are issued before the counts are known.
        """
        model, worlds = self._store.model, self._factory.shard.size
        few = few_worlds(model, worlds, ahead)
        kernels = launched_by(model, integrator, keep, few, worlds)
        self._factory.functions.require(kernels)
        stored = keep | fields_needed(kernels)
        scalars = {"rk_stage": rk_stage, "rk_last": 3 if integrator == "rk4" else 0}
        make = partial(self._factory.make, stored=stored, ahead=ahead)

        def all_of(kernels: tuple[Kernel, ...], ahead: bool = ahead) -> Plan:
            made = (make(kernel, scalars=scalars, ahead=ahead) for kernel in kernels)
            return tuple(Work(call, worlds) for call in made)

        pairs = found_pairs(self._factory, stored) if model.finds_pairs else FoundPairs((), (), ())
        scan = make(catalogue.SCAN_KERNEL)
        # what knows nothing of contacts repeats what it did where others do nothing, and waits for no count
        motion = all_of(_motion(model, keep, few), ahead and model.has_adhesion)
        return (
            *all_of(position_kernels(model, few)),
            *pairs.search,
            *(() if model.finds_pairs else (Work(scan, len(COLUMNS)),)),
            *(() if model.has_adhesion else motion),
            *pairs.find,
            *((Work(scan, len(COLUMNS)),) if model.finds_pairs else ()),
            Room(scan, _NEEDS),
            *pairs.place,
            *self._narrow(make, few),
            *(motion if model.has_adhesion else ()),
            *self._solution(make, integrator, scalars, few),
            *all_of(_after(model, kernels)),
            *all_of(integrator_kernels(model, integrator)),
            *all_of((catalogue.ACTIVATION_KERNEL,) if integrator and model.na else ()),
        )

    def _narrow(self, make: Maker, few: bool) -> Plan:
        """Narrowphase calls."""
        model, worlds = self._store.model, self._factory.shard.size
        if few and narrow_in_one(model):
            return (Work(make(all_light(worlds)), worlds),)
        names = () if model.finds_pairs else ((code, PAIR_TYPES[code]) for code in model.pair_codes)
        return tuple(
            Work(make(catalogue.NARROW[name], listed=Listed(name, "pair type", code, True)), worlds, _count(name))
            for code, name in names
        )

    def _solution(self, make: Maker, integrator: str, scalars: dict[str, int], few: bool) -> Plan:
        """Solver calls, by the classes of worlds or of islands; that which takes longest comes first."""
        model = self._store.model
        if model.has_islands:
            return island_solution(model, self._factory, self._island_factories)
        classes = reachable_classes(model)
        bounded = range(1, min(classes, NUM_CLASSES - 1))
        unbounded = (NUM_CLASSES - 1,) if classes == NUM_CLASSES else ()

        def of(kernel: Kernel, column: str, member: int, size_class: int, suffix: str) -> Work:
            nrow = 0 if size_class == NUM_CLASSES - 1 else ROW_CLASSES[size_class]
            listed = Listed(column, "size class", member, True)
            call = make(kernel, listed=listed, nrow=nrow, scalars=scalars, suffix=suffix)
            return Work(call, self._factory.shard.size, _count(column))

        def finish(size_class: int, column: str, member: int, suffix: str) -> Work:
            kernel = catalogue.finish(integrator, model.solver, size_class == NUM_CLASSES - 1)
            return of(kernel, column, member, size_class, suffix)

        more = tuple(finish(c, _CLASS_COLUMNS[c], c, "") for c in unbounded)
        if few and bounded:
            # room for the rows of the largest class suits all
            return (*more, finish(bounded[-1], "rows_bounded", NUM_CLASSES, "_bounded"))
        free = of(catalogue.advance(integrator, model.solver), "rows_0", 0, 0, "")
        return (*more, *(finish(c, _CLASS_COLUMNS[c], c, f"_{ROW_CLASSES[c]}") for c in reversed(bounded)), free)


def _motion(model: ModelTable, keep: frozenset[str], few: bool) -> tuple[Kernel, ...]:
    """Kernels of the motion without constraints, and of what is asked for of it."""
    sense = (island_kernels.sense_motion(model.has_islands),) if keep & SENSED else ()
    return (*smooth_kernels(model, few), *asked_for(model, keep), *sense)


def _after(model: ModelTable, kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """Those of the kernels that come between the solution and the integration."""
    after = (catalogue.NOSLIP_KERNEL, post_kernel(model), catalogue.TENDON_POST, mixing(model, catalogue.SENSE_FORCES))
    return tuple(kernel for kernel in after if kernel in kernels)
