"""The calls of one evaluation of the dynamics on a shard, prebuilt: which kernels a model needs, for which worlds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from simengine.emission.calls import CallFactory, Listed, SizedCall
from simengine.emission.islands import IslandSolution
from simengine.emission.pairs import FoundPairs
from simengine.emission.store import GroupStore
from simengine.kernels import catalogue
from simengine.kernels.kernel import Kernel
from simengine.kernels.pairs import PAIR_KERNELS, mixing
from simengine.model.model import Model
from simengine.model.table import PAIR_TYPES
from simengine.state.fields import COLUMNS, FIELD, FIELDS, NUM_CLASSES, ROW_CLASSES, SENSED, entry_shape

COLUMN = {name: index for index, name in enumerate(COLUMNS)}
_CLASS_COLUMNS = (*(f"rows_{bound}" for bound in ROW_CLASSES), "rows_more")
ALL_FIELDS = frozenset(f.name for f in FIELDS)
FEW_WORLDS = 2048
"""Worlds up to which a launch costs more than the room for rows and the time that its worlds waste in a larger one."""


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


def fields_needed(kernels: tuple[Kernel, ...]) -> frozenset[str]:
    """Fields that a kernel of the list reads from memory, so that the others must store them."""
    return frozenset(n for k in kernels for n in (*k.reads, *k.updates, *k.addresses))


def reachable_classes(model: Model) -> int:
    """Number of solver size classes that states of a model can reach."""
    return next((c + 1 for c, bound in enumerate(ROW_CLASSES) if model.nefc_max <= bound), NUM_CLASSES)


def kernels_of(model: Model, integrator: str, keep: frozenset[str]) -> tuple[Kernel, ...]:
    """Kernels that steps of a model (with no integrator: evaluations) launch, where `keep` must be valid afterwards."""
    return (
        *catalogue.fitting(model, catalogue.position(model.general_position)),
        *catalogue.fitting(model, catalogue.smooth(model.general_smooth, model.has_fluid, model.has_adhesion)),
        catalogue.SCAN_KERNEL,
        *_narrow(model),
        *_solution(model, integrator),
        *((catalogue.NOSLIP_KERNEL,) if model.opt_noslip_iterations else ()),
        *((catalogue.ACTIVATION_KERNEL,) if integrator and model.na else ()),
        *asked_for(model, keep),
        *((_post(model),) if "cfrc_ext" in keep or _sensed_forces(model, keep) else ()),
        *((catalogue.TENDON_POST,) if model.npath and ("cfrc_ext" in keep or _sensed_forces(model, keep)) else ()),
        *((catalogue.sense_motion(model.has_islands),) if keep & SENSED else ()),
        *((mixing(model, catalogue.SENSE_FORCES),) if _sensed_forces(model, keep) else ()),
        *_integrate(model, integrator),
    )


def _narrow(model: Model) -> tuple[Kernel, ...]:
    """Kernels that find contacts: one for each pair type, or those that find the pairs first."""
    if model.finds_pairs:
        return PAIR_KERNELS
    return tuple(catalogue.NARROW[PAIR_TYPES[code]] for code in model.pair_codes)


def _post(model: Model) -> Kernel:
    return mixing(model, catalogue.post(model.has_general_rows or model.finds_pairs))


def _solution(model: Model, integrator: str) -> tuple[Kernel, ...]:
    """Kernels of rows and solver, and of integration where it is fused."""
    if model.has_islands:
        return catalogue.island_solution(model)
    classes = reachable_classes(model)
    return (
        *((catalogue.finish(integrator, model.solver, False),) if classes > 1 else ()),
        *((catalogue.finish(integrator, model.solver, True),) if classes == NUM_CLASSES else ()),
        catalogue.advance(integrator, model.solver),
    )


def _integrate(model: Model, integrator: str) -> tuple[Kernel, ...]:
    """Kernels that integrate all worlds, where the solver's do not."""
    if model.has_islands:
        return catalogue.island_integrator(integrator)
    return catalogue.integrate(integrator, model.solver)


def asked_for(model: Model, keep: frozenset[str]) -> tuple[Kernel, ...]:
    """Kernels that a model launches only because of what `keep` asks for."""
    general = (
        catalogue.position(model.general_position),
        catalogue.smooth(model.general_smooth, model.has_fluid, model.has_adhesion),
    )
    there = {name for kernel in general for name in kernel.produced}
    sensing = catalogue.SENSE_MOTION.reads if keep & SENSED else ()
    wanted, found = {*keep, *sensing}, list[Kernel]()
    for kernel in reversed(catalogue.asked_for(model.has_islands)):
        missing = wanted.intersection(kernel.produced) - there
        if any(0 not in entry_shape(FIELD[name], model.sizes) for name in missing):
            found.append(kernel)
            wanted.update(kernel.reads)
    return tuple(reversed(found))


def _sensed_forces(model: Model, keep: frozenset[str]) -> bool:
    """Whether something must be known of accelerations and forces of bodies."""
    return bool(keep & {"cacc", "cfrc_int"}) or ("sensordata" in keep and model.senses_forces)


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
        kernels = kernels_of(model, integrator, keep)
        in_two = catalogue.position_in_two(model.general_position) if self._few(ahead) else ()
        self._factory.functions.require((*kernels, *in_two))
        stored = keep | fields_needed((*kernels, *in_two))
        scalars = {"rk_stage": rk_stage, "rk_last": 3 if integrator == "rk4" else 0}

        def all_of(kernels: tuple[Kernel, ...], ahead: bool = ahead) -> tuple[SizedCall, ...]:
            return tuple(self._factory.make(kernel, stored, scalars=scalars, ahead=ahead) for kernel in kernels)

        dense = not model.has_islands
        smooth = catalogue.smooth(model.general_smooth, model.has_fluid, model.has_adhesion)
        after = (
            catalogue.NOSLIP_KERNEL,
            _post(model),
            catalogue.TENDON_POST,
            mixing(model, catalogue.SENSE_FORCES),
        )
        motion = (
            *catalogue.fitting(model, smooth),
            *asked_for(model, keep),
            *(kernel for kernel in (catalogue.sense_motion(model.has_islands),) if kernel in kernels),
        )
        return Evaluation(
            position=all_of(in_two or catalogue.fitting(model, catalogue.position(model.general_position))),
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
                *all_of(_integrate(model, integrator)),
                *all_of((catalogue.ACTIVATION_KERNEL,) if integrator and model.na else ()),
            ),
        )

    def _few(self, ahead: bool) -> bool:
        """Whether calls for little work each had better be one: worlds are few, and the call is issued anyhow."""
        return ahead and self._factory.shard.size <= FEW_WORLDS

    def _narrow(self, stored: frozenset[str], ahead: bool) -> tuple[tuple[int | None, SizedCall], ...]:
        """Narrowphase calls by their column of counts, None for those over all worlds."""
        types = sorted(set(self._store.model.cand_type.tolist()))
        names = [PAIR_TYPES[code] for code in types]
        if self._few(ahead) and len(names) > 1 and set(names) <= set(catalogue.LIGHT):
            return ((None, self._factory.make(catalogue.NARROW_LIGHT, stored, ahead=True)),)
        return tuple(
            (
                COLUMN[name],
                self._factory.make(catalogue.NARROW[name], stored, Listed(name, "pair type", code, True), ahead=ahead),
            )
            for code, name in zip(types, names, strict=True)
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
