"""Kernels of worlds that are solved island by island: single stages on inertia by blocks, and solvers of islands.

    constraint ── islands ── scan_islands ── counts ── gather ── solver, for each size class ── scatter

The stages are not fused there, since such worlds may be too large for a world's scratch.
"""

from __future__ import annotations

from dataclasses import replace

from simengine.kernels.kernel import Kernel
from simengine.model.model import Model
from simengine.physics.actuation.actuation import ACTUATION
from simengine.physics.actuation.adhesion import ADHESION
from simengine.physics.collision.collision import COLLISION, COLLISION_GENERAL
from simengine.physics.integration.rk4 import RK4
from simengine.physics.islands.blocks import ACCELERATION_BLOCKS, CRB_BLOCKS, EULER_BLOCKS, FACTOR_BLOCKS
from simengine.physics.islands.islands import CONSTRAINT_BLOCKS, GATHER, ISLANDS, SCAN_ISLANDS, SCATTER
from simengine.physics.islands.pgs_islands import PGS_DESCEND, PGS_START, PGS_WARM
from simengine.physics.solvers.solve_cg import SOLVE_CG
from simengine.physics.solvers.solve_newton_general import SOLVE_NEWTON_GENERAL
from simengine.physics.solvers.solve_newton_unilateral import SOLVE_NEWTON_UNILATERAL
from simengine.physics.stage import Form, Stage
from simengine.plan import catalogue
from simengine.plan.forms import has_form, in_form
from simengine.plan.pairs import PAIR_KERNELS
from simengine.plan.variants import taking_parameters


def in_blocks(kernel: Kernel) -> Kernel:
    """The kernel with the forms of its stages that work on inertia stored by blocks."""
    stages = tuple(in_form(stage, Form.BLOCKS) for stage in kernel.stages)
    return kernel if stages == kernel.stages else replace(kernel, name=f"{kernel.name}_blocks", stages=stages)


def _single(stage: Stage) -> Kernel:
    """The kernel of one stage alone that only these worlds have; contacts may have parameters beside them."""
    return replace(catalogue.single(stage), mixes=stage.contact_parameters)


def _over_islands(stage: Stage) -> Kernel:
    return Kernel(f"{stage.name}_islands", (stage,), unit="island", resident=6)


def for_large(kernel: Kernel) -> Kernel | None:
    """What is launched beside a kernel over islands for the large ones; None where the kernel has no such form."""
    (stage,) = kernel.stages
    if kernel.unit != "island" or not has_form(stage, Form.LARGE):
        return None
    large = in_form(stage, Form.LARGE)
    # a whole block of threads solves a large island; the rows of the dual problem come one after another
    return Kernel(f"{large.name}_islands", (large,), unit="large island", wide=stage not in (PGS_START, PGS_DESCEND))


ISLAND_SOLVERS: dict[str, tuple[Kernel, ...]] = {
    **{stage.name: (_over_islands(stage),) for stage in (SOLVE_NEWTON_UNILATERAL, SOLVE_NEWTON_GENERAL, SOLVE_CG)},
    "solve_pgs": (_over_islands(PGS_START), _single(PGS_WARM), _over_islands(PGS_DESCEND)),
}
"""What solves the islands, by solver; kernels of the unit island are launched once for each size class."""

_INTEGRATORS: dict[str, Kernel] = {
    "euler": catalogue.single(EULER_BLOCKS),
    "rk4": catalogue.single(RK4),
    **{
        name: in_blocks(Kernel(name, (catalogue.INTEGRATORS[name],)))
        for name in ("euler_general", "implicit", "implicitfast")
    },
}

_LARGE = (for_large(kernel) for kernels in ISLAND_SOLVERS.values() for kernel in kernels)
_CONSTRAINT, _ISLANDS, _SCAN, _GATHER, _SCATTER = map(
    _single, (CONSTRAINT_BLOCKS, ISLANDS, SCAN_ISLANDS, GATHER, SCATTER)
)
ISLAND_STAGES: tuple[Stage, ...] = (
    *(CRB_BLOCKS, FACTOR_BLOCKS, ACCELERATION_BLOCKS, CONSTRAINT_BLOCKS, EULER_BLOCKS),
    *(ISLANDS, SCAN_ISLANDS, GATHER, PGS_WARM, SCATTER),
)
"""Stages that only such worlds have, but for solvers of islands."""
_TAKING_PARAMETERS = tuple(
    map(taking_parameters, (catalogue.POST_GENERAL, catalogue.SENSE_FORCES, catalogue.single(ADHESION)))
)

ISLAND_KERNELS: tuple[Kernel, ...] = (
    *PAIR_KERNELS,
    *_TAKING_PARAMETERS,
    *map(in_blocks, (catalogue.ENERGY_KERNEL, catalogue.SENSE_MOTION)),
    *(kernel for kernels in ISLAND_SOLVERS.values() for kernel in kernels if kernel.unit == "island"),
    *dict.fromkeys(kernel for kernel in _LARGE if kernel),
    *map(_single, ISLAND_STAGES),
    *(kernel for kernel in _INTEGRATORS.values() if kernel.stages[0].form is Form.BLOCKS),
)
"""Kernels that only models launch which are solved island by island."""


def fitting(model: Model, kernel: Kernel) -> tuple[Kernel, ...]:
    """The kernel, or its stages one by one on inertia by blocks where the model is solved island by island."""
    if not model.has_islands:
        return (kernel,)
    counting = (COLLISION, COLLISION_GENERAL) if model.finds_pairs else ()
    stages = (in_form(stage, Form.BLOCKS) for stage in kernel.stages if stage not in counting)
    return tuple(catalogue.single(stage) for stage in stages)


def island_solution(model: Model) -> tuple[Kernel, ...]:
    """Rows and solution of worlds that are solved island by island."""
    solver = (form for k in ISLAND_SOLVERS[model.solver] for form in (k, for_large(k)) if form is not None)
    return (_CONSTRAINT, _ISLANDS, _SCAN, _GATHER, *solver, _SCATTER)


def island_integrator(integrator: str) -> tuple[Kernel, ...]:
    """The integrator of such worlds alone; none without a name."""
    return (_INTEGRATORS[integrator],) if integrator else ()


def of_large_worlds() -> tuple[Kernel, ...]:
    """Kernels over worlds that models of many dofs and islands launch, for which a world has a block of threads."""
    fused = (catalogue.POSITION_GENERAL, catalogue.SMOOTH_ADHESION, catalogue.POSITION, catalogue.SMOOTH_FLUID)
    alone = (*(stage for kernel in fused for stage in kernel.stages), ACTUATION)
    forces = (catalogue.POST, catalogue.POST_GENERAL, catalogue.TENDON_POST, catalogue.SENSE_FORCES)
    kernels = (
        *(catalogue.single(in_form(stage, Form.BLOCKS)) for stage in alone),
        *(*ISLAND_KERNELS, *catalogue.NARROW.values(), *catalogue.ASKED_FOR[:-1], *_INTEGRATORS.values()),
        *(*forces, catalogue.ACTIVATION_KERNEL),
    )
    return tuple({kernel.name: kernel for kernel in kernels if kernel.unit == "world"}.values())
