"""Which kernels steps of a model launch, and which fields they store."""

from __future__ import annotations

from simengine.kernels import catalogue, island_kernels
from simengine.kernels.kernel import Kernel
from simengine.kernels.pairs import PAIR_KERNELS, mixing
from simengine.model.model_table import ModelTable
from simengine.model.table import PAIR_TYPES
from simengine.state.fields import FIELD, NUM_CLASSES, ROW_CLASSES, SENSED, entry_shape

FEW_WORLDS = 2048
"""Worlds up to which a launch costs more than the room for rows and the time that its worlds waste in a larger one."""

APART_WORLDS = 1024
"""Worlds up to which each may add up their counts itself, in less time than it takes to wait for a scan."""


def fields_needed(kernels: tuple[Kernel, ...]) -> frozenset[str]:
    """Fields that a kernel of the list reads from memory, so that the others must store them."""
    return frozenset(n for k in kernels for n in (*k.reads, *k.updates, *k.addresses))


def reachable_classes(model: ModelTable) -> int:
    """Number of solver size classes that states of a model can reach."""
    return next((c + 1 for c, bound in enumerate(ROW_CLASSES) if model.nefc_max <= bound), NUM_CLASSES)


def kernels_of(model: ModelTable, integrator: str, keep: frozenset[str]) -> tuple[Kernel, ...]:
    """Kernels that steps of a model (with no integrator: evaluations) launch, where `keep` must be valid afterwards."""
    return (
        *position_kernels(model, False),
        *smooth_kernels(model, False),
        catalogue.SCAN_KERNEL,
        *_narrow(model),
        *_solution(model, integrator),
        *((catalogue.NOSLIP_KERNEL,) if model.opt_noslip_iterations else ()),
        *((catalogue.ACTIVATION_KERNEL,) if integrator and model.na else ()),
        *asked_for(model, keep),
        *((post_kernel(model),) if "cfrc_ext" in keep or senses_forces(model, keep) else ()),
        *((catalogue.TENDON_POST,) if model.npath and ("cfrc_ext" in keep or senses_forces(model, keep)) else ()),
        *((island_kernels.sense_motion(model.has_islands),) if keep & SENSED else ()),
        *((mixing(model, catalogue.SENSE_FORCES),) if senses_forces(model, keep) else ()),
        *integrator_kernels(model, integrator),
    )


def launched_by(model: ModelTable, integrator: str, keep: frozenset[str], few: bool, worlds: int) -> tuple[Kernel, ...]:
    """Those of `kernels_of`, with the forms that take their place where worlds are few (`few_worlds`)."""
    kernels = kernels_of(model, integrator, keep)
    if not few:
        return kernels
    replaced = {*position_kernels(model, False), *smooth_kernels(model, False)}
    if narrow_in_one(model):
        replaced |= set(_narrow(model))
    if reachable_classes(model) > 1:
        replaced.add(catalogue.advance(integrator, model.solver))
    kept = (kernel for kernel in kernels if kernel not in replaced)
    narrow = (all_light(worlds),) if narrow_in_one(model) else ()
    return (*position_kernels(model, True), *smooth_kernels(model, True), *kept, *narrow)


def position_kernels(model: ModelTable, few: bool) -> tuple[Kernel, ...]:
    """Guard, kinematics and counting."""
    if few:
        return catalogue.position_in_two(model.general_position)
    return island_kernels.fitting(model, catalogue.position(model.general_position))


def smooth_kernels(model: ModelTable, few: bool) -> tuple[Kernel, ...]:
    """The motion without constraints."""
    if few and not model.general_smooth and not model.has_adhesion:
        return catalogue.smooth_in_three(model.has_fluid)
    whole = catalogue.smooth(model.general_smooth, model.has_fluid, model.has_adhesion)
    return island_kernels.fitting(model, whole)


def narrow_in_one(model: ModelTable) -> bool:
    """Whether one kernel can find all contacts: the pair types that occur are several, and all of them light."""
    names = {PAIR_TYPES[code] for code in model.pair_codes}
    return len(names) > 1 and names <= set(catalogue.LIGHT)


def all_light(worlds: int) -> Kernel:
    """The kernel that finds contacts of all light pair types."""
    return catalogue.NARROW_APART if worlds <= APART_WORLDS else catalogue.NARROW_LIGHT


def few_worlds(model: ModelTable, worlds: int, ahead: bool) -> bool:
    """Whether calls for little work each had better be one: worlds are few, and the call is issued anyhow."""
    return ahead and not model.has_islands and worlds <= FEW_WORLDS


def _narrow(model: ModelTable) -> tuple[Kernel, ...]:
    """Kernels that find contacts: one for each pair type, or those that find the pairs first."""
    if model.finds_pairs:
        return PAIR_KERNELS
    return tuple(catalogue.NARROW[PAIR_TYPES[code]] for code in model.pair_codes)


def post_kernel(model: ModelTable) -> Kernel:
    """External forces on bodies, for a model's rows and pairs."""
    return mixing(model, catalogue.post(model.has_general_rows or model.finds_pairs))


def _solution(model: ModelTable, integrator: str) -> tuple[Kernel, ...]:
    """Kernels of rows and solver, and of integration where it is fused."""
    if model.has_islands:
        return island_kernels.island_solution(model)
    classes = reachable_classes(model)
    return (
        *((catalogue.finish(integrator, model.solver, False),) if classes > 1 else ()),
        *((catalogue.finish(integrator, model.solver, True),) if classes == NUM_CLASSES else ()),
        catalogue.advance(integrator, model.solver),
    )


def integrator_kernels(model: ModelTable, integrator: str) -> tuple[Kernel, ...]:
    """Kernels that integrate all worlds, where the solver's do not."""
    if model.has_islands:
        return island_kernels.island_integrator(integrator)
    return catalogue.integrate(integrator, model.solver)


def asked_for(model: ModelTable, keep: frozenset[str]) -> tuple[Kernel, ...]:
    """Kernels that a model launches only because of what `keep` asks for."""
    general = (
        catalogue.position(model.general_position),
        catalogue.smooth(model.general_smooth, model.has_fluid, model.has_adhesion),
    )
    there = {name for kernel in general for name in kernel.produced}
    sensing = catalogue.SENSE_MOTION.reads if keep & SENSED else ()
    wanted, found = {*keep, *sensing}, list[Kernel]()
    for kernel in reversed(island_kernels.asked_for(model.has_islands)):
        missing = wanted.intersection(kernel.produced) - there
        if any(0 not in entry_shape(FIELD[name], model.sizes) for name in missing):
            found.append(kernel)
            wanted.update(kernel.reads)
    return tuple(reversed(found))


def senses_forces(model: ModelTable, keep: frozenset[str]) -> bool:
    """Whether something must be known of accelerations and forces of bodies."""
    return bool(keep & {"cacc", "cfrc_int"}) or ("sensordata" in keep and model.senses_forces)
