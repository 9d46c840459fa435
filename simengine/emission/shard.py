"""The emission generator of one shard: a step as a list of kernel calls that depends on the contacts found.

    position ── scan ─────────── counts ──┬── narrowphase of each pair type that occurs ──┐
        └────── smooth ───────────────────┴───────────────────────────────────────────────┴── finish, per size class
                                                                                           └── advance, without rows

One evaluation of the dynamics emits `position`, `scan` and `smooth`, awaits the counts, then emits exactly the work
that exists. Where actuators pull at contacts, `smooth` follows the narrowphase. RK4 repeats it four times. Where
integration is not fused into `finish` and `advance`, a kernel of the integrator alone follows for all worlds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scheduler import AwaitCounts
from scheduler.calls import Item
from simengine.emission.calls import CallFactory, EmittedCall, Listed, Shard, SizedCall
from simengine.emission.islands import IslandSolution
from simengine.emission.pairs import FoundPairs
from simengine.emission.store import GroupStore
from simengine.kernels import catalogue
from simengine.kernels.kernel import Kernel
from simengine.model.model import Model
from simengine.model.table import PAIR_TYPES
from simengine.state.fields import COLUMNS, FIELD, FIELDS, NUM_CLASSES, ROW_CLASSES, SENSED, entry_shape

_COLUMN = {name: index for index, name in enumerate(COLUMNS)}
_CLASS_COLUMNS = (*(f"rows_{bound}" for bound in ROW_CLASSES), "rows_more")
_ALL_FIELDS = frozenset(f.name for f in FIELDS)


@dataclass(frozen=True)
class Evaluation:
    """The prebuilt calls of one evaluation of the dynamics."""

    position: tuple[SizedCall, ...]
    pairs: FoundPairs | None
    scan: SizedCall
    smooth: tuple[SizedCall, ...]
    asked_for: tuple[SizedCall, ...]
    narrow: tuple[tuple[int, SizedCall], ...]
    finish: tuple[tuple[int, SizedCall], ...]
    advance: SizedCall | None
    islands: IslandSolution | None
    noslip: SizedCall | None
    activation: SizedCall | None
    post: SizedCall | None
    tendon_post: SizedCall | None
    sense_motion: SizedCall | None
    sense_forces: SizedCall | None
    integrate: tuple[SizedCall, ...]


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
        *((catalogue.mixing(model, catalogue.SENSE_FORCES),) if _sensed_forces(model, keep) else ()),
        *_integrate(model, integrator),
    )


def _narrow(model: Model) -> tuple[Kernel, ...]:
    """Kernels that find contacts: one for each pair type, or those that find the pairs first."""
    if model.finds_pairs:
        return catalogue.PAIR_KERNELS
    return tuple(catalogue.NARROW[PAIR_TYPES[code]] for code in model.pair_codes)


def _post(model: Model) -> Kernel:
    return catalogue.mixing(model, catalogue.post(model.has_general_rows or model.finds_pairs))


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


class ShardEmitter:
    """Emits the steps of one shard.

    Attributes:
        log: calls of the latest step, in program order.
        bad_worlds: frozen worlds at the latest count.
    """

    def __init__(
        self, store: GroupStore, shard: Shard, factory: CallFactory, island_factories: tuple[CallFactory, ...] = ()
    ):
        self._store = store
        self._factory = factory
        self._island_factories = island_factories
        self.shard = shard
        self.log: list[EmittedCall] = []
        self.bad_worlds = 0
        self._totals: np.ndarray = store.totals_host[shard.place]
        self._evaluations: dict[tuple[str, int, frozenset[str]], Evaluation] = {}

    def steps(self, n: int, keep: frozenset[str]) -> Iterator[Item]:
        """Emit `n` steps; after the last one the fields of `keep` are valid in memory.

        What is sensed belongs to the first evaluation of the last step, all else to its last evaluation.
        """
        integrator = self._store.model.opt_integrator
        stages = 4 if integrator == "rk4" else 1
        nothing: frozenset[str] = frozenset()
        sensed, derived = keep & SENSED, keep - SENSED
        for step in range(n):
            self.log = []
            for rk_stage in range(stages):
                wanted = nothing
                if step == n - 1 and rk_stage == 0:
                    wanted |= sensed
                if step == n - 1 and rk_stage == stages - 1:
                    wanted |= derived
                yield from self._evaluate(self._evaluation(integrator, rk_stage, wanted))

    def forward(self) -> Iterator[Item]:
        """Emit one evaluation that stores every field and integrates nothing."""
        self.log = []
        yield from self._evaluate(self._evaluation("", 0, _ALL_FIELDS))

    def _emit(self, sized: SizedCall, units: int) -> Item:
        call = sized.sized(units)
        self.log.append(EmittedCall(call, units))
        return call

    def _counted(self, scan: SizedCall) -> Item:
        self.log.append(EmittedCall(scan.call, len(COLUMNS)))
        return scan.call

    def _evaluate(self, calls: Evaluation) -> Iterator[Item]:
        worlds = self.shard.size
        for call in calls.position:
            yield self._emit(call, worlds)
        if calls.pairs is None:
            yield self._counted(calls.scan)
        else:
            yield from calls.pairs.count_pairs(worlds, self.log)
        motion = (*calls.smooth, *calls.asked_for, *((calls.sense_motion,) if calls.sense_motion is not None else ()))
        on_contacts = self._store.model.has_adhesion
        for call in () if on_contacts else motion:
            yield self._emit(call, worlds)
        if calls.pairs is not None:
            yield from calls.pairs.find_contacts(worlds, self._store, self.shard.place, self.log)
            yield self._counted(calls.scan)
        yield AwaitCounts(calls.scan.call)
        totals = self._totals.tolist()
        self.bad_worlds = totals[_COLUMN["bad"]]
        self._store.contacts[self.shard.place].reserve(totals[0])
        self._store.rows[self.shard.place].reserve(totals[1])
        if calls.pairs is not None and totals[0]:
            yield from calls.pairs.place_contacts(self._store, self.shard.place, self.log)
        for column, call in calls.narrow:
            if totals[column]:
                yield self._emit(call, totals[column])
        for call in motion if on_contacts else ():
            yield self._emit(call, worlds)
        for column, call in calls.finish:
            if totals[column]:
                yield self._emit(call, totals[column])
        without_rows = totals[_COLUMN["rows_0"]]
        if without_rows and calls.advance is not None:
            yield self._emit(calls.advance, without_rows)
        if calls.islands is not None:
            yield from calls.islands.emit(worlds, self._store, self.shard.place, self.log)
        for after in (
            calls.noslip,
            calls.post,
            calls.tendon_post,
            calls.sense_forces,
            *calls.integrate,
            calls.activation,
        ):
            if after is not None:
                yield self._emit(after, worlds)

    def _evaluation(self, integrator: str, rk_stage: int, keep: frozenset[str]) -> Evaluation:
        key = (integrator, rk_stage, keep)
        if key not in self._evaluations:
            self._evaluations[key] = self._build(integrator, rk_stage, keep)
        return self._evaluations[key]

    def _build(self, integrator: str, rk_stage: int, keep: frozenset[str]) -> Evaluation:
        make = self._factory.make
        model = self._store.model
        kernels = kernels_of(model, integrator, keep)
        self._factory.functions.require(kernels)
        stored = keep | fields_needed(kernels)
        scalars = {"rk_stage": rk_stage, "rk_last": 3 if integrator == "rk4" else 0}

        def after(kernel: Kernel) -> SizedCall | None:
            return make(kernel, stored) if kernel in kernels else None

        def all_of(kernels: tuple[Kernel, ...]) -> tuple[SizedCall, ...]:
            return tuple(make(kernel, stored, scalars=scalars) for kernel in kernels)

        dense = not model.has_islands
        classes = reachable_classes(model) if dense else 0
        free = Listed("rows_0", "size class", 0, True)
        types = () if model.finds_pairs else model.pair_codes
        narrow = tuple(
            (_COLUMN[name], make(catalogue.NARROW[name], stored, Listed(name, "pair type", code, True)))
            for code, name in enumerate(PAIR_TYPES)
            if code in types
        )
        return Evaluation(
            position=all_of(catalogue.fitting(model, catalogue.position(model.general_position))),
            pairs=FoundPairs.build(self._factory, stored) if model.finds_pairs else None,
            scan=make(catalogue.SCAN_KERNEL, stored),
            smooth=all_of(
                catalogue.fitting(model, catalogue.smooth(model.general_smooth, model.has_fluid, model.has_adhesion))
            ),
            asked_for=all_of(asked_for(model, keep)),
            narrow=narrow,
            # the class that takes longest is issued first
            finish=tuple(self._finish(integrator, c, stored, scalars) for c in reversed(range(1, classes))),
            advance=make(catalogue.advance(integrator, model.solver), stored, free, 0, scalars) if dense else None,
            islands=None if dense else IslandSolution.build(model, self._factory, self._island_factories),
            noslip=after(catalogue.NOSLIP_KERNEL),
            activation=make(catalogue.ACTIVATION_KERNEL, stored, scalars=scalars) if integrator and model.na else None,
            post=after(_post(model)),
            tendon_post=after(catalogue.TENDON_POST),
            sense_motion=after(catalogue.sense_motion(model.has_islands)),
            sense_forces=after(catalogue.mixing(model, catalogue.SENSE_FORCES)),
            integrate=all_of(_integrate(model, integrator)),
        )

    def _finish(
        self, integrator: str, size_class: int, stored: frozenset[str], scalars: dict[str, int]
    ) -> tuple[int, SizedCall]:
        arena = size_class == NUM_CLASSES - 1
        nrow = 0 if arena else ROW_CLASSES[size_class]
        column = _CLASS_COLUMNS[size_class]
        suffix = "" if arena else f"_{nrow}"
        kernel = catalogue.finish(integrator, self._store.model.solver, arena)
        listed = Listed(column, "size class", size_class, True)
        return _COLUMN[column], self._factory.make(kernel, stored, listed, nrow, scalars, suffix)
