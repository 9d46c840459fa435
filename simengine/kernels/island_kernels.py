"""Kernels of worlds that are solved island by island: single stages with block-diagonal inertia, and the solvers."""

from __future__ import annotations

from simengine.kernels import catalogue
from simengine.kernels.kernel import Kernel
from simengine.kernels.pairs import MIXING, PAIR_KERNELS, mixing
from simengine.model.model import Model
from simengine.physics.actuation.actuation import ACTUATION
from simengine.physics.collision.collision import COLLISION, COLLISION_GENERAL
from simengine.physics.integration.rk4 import RK4
from simengine.physics.islands.blocks import (
    ACCELERATION_BLOCKS,
    CRB_BLOCKS,
    ENERGY_BLOCKS,
    EULER_BLOCKS,
    EULER_GENERAL_BLOCKS,
    FACTOR_BLOCKS,
    IMPLICIT_BLOCKS,
    IMPLICITFAST_BLOCKS,
    SENSOR_VEL_BLOCKS,
)
from simengine.physics.islands.islands import CONSTRAINT_BLOCKS, GATHER, ISLANDS, SCAN_ISLANDS, SCATTER
from simengine.physics.islands.pgs_islands import PGS_DESCEND, PGS_DESCEND_LARGE, PGS_START, PGS_START_LARGE, PGS_WARM
from simengine.physics.islands.solve_large import SOLVE_LARGE
from simengine.physics.solvers.solve_cg import SOLVE_CG
from simengine.physics.solvers.solve_newton_general import SOLVE_NEWTON_GENERAL
from simengine.physics.solvers.solve_newton_unilateral import SOLVE_NEWTON_UNILATERAL
from simengine.physics.stage import Stage

ENERGY_BY_BLOCKS = Kernel("energy_blocks", (ENERGY_BLOCKS,))
SENSE_MOTION_BLOCKS = Kernel("sense_motion_blocks", (*catalogue.SENSE_MOTION.stages[:-1], SENSOR_VEL_BLOCKS))

# The stages with block-diagonal inertia, by the name of the stage whose place they take.
BY_BLOCKS: dict[str, Stage] = {
    "crb": CRB_BLOCKS,
    "crb_general": CRB_BLOCKS,
    "factor_m": FACTOR_BLOCKS,
    "acceleration": ACCELERATION_BLOCKS,
    "constraint": CONSTRAINT_BLOCKS,
    "euler": EULER_BLOCKS,
}
ISLAND_STAGES: tuple[Stage, ...] = (
    *dict.fromkeys(BY_BLOCKS.values()),
    ISLANDS,
    SCAN_ISLANDS,
    GATHER,
    PGS_WARM,
    SCATTER,
)


def _over_islands(stage: Stage) -> Kernel:
    return Kernel(f"{stage.name}_islands", (stage,), unit="island", resident=6)


ISLAND_SOLVERS: dict[str, tuple[Kernel, ...]] = {
    **{stage.name: (_over_islands(stage),) for stage in (SOLVE_NEWTON_UNILATERAL, SOLVE_NEWTON_GENERAL, SOLVE_CG)},
    "solve_pgs": (_over_islands(PGS_START), catalogue.single(PGS_WARM), _over_islands(PGS_DESCEND)),
}
"""Kernels that solve the islands, by solver; those whose unit is an island are launched once per size class."""

SOLVE_LARGE_ISLANDS = Kernel("solve_large_islands", (SOLVE_LARGE,), unit="large island", wide=True)
LARGE_FORMS: dict[str, Kernel] = {
    **{
        ISLAND_SOLVERS[solver][0].name: SOLVE_LARGE_ISLANDS
        for solver in ("solve_newton_unilateral", "solve_newton_general", "solve_cg")
    },
    **{
        _over_islands(stage).name: Kernel(f"{large.name}_islands", (large,), unit="large island")
        for stage, large in ((PGS_START, PGS_START_LARGE), (PGS_DESCEND, PGS_DESCEND_LARGE))
    },
}
"""The kernel for large islands, by the name of the solver's kernel beside which it is launched."""

ISLAND_INTEGRATORS: dict[str, Kernel] = {
    "euler": catalogue.single(EULER_BLOCKS),
    "rk4": catalogue.single(RK4),
    **{
        stage.name: Kernel(f"{stage.name}_blocks", (stage,))
        for stage in (EULER_GENERAL_BLOCKS, IMPLICIT_BLOCKS, IMPLICITFAST_BLOCKS)
    },
}
ISLAND_KERNELS: tuple[Kernel, ...] = (
    *PAIR_KERNELS,
    *MIXING.values(),
    ENERGY_BY_BLOCKS,
    SENSE_MOTION_BLOCKS,
    *(kernel for kernels in ISLAND_SOLVERS.values() for kernel in kernels if kernel.unit == "island"),
    *dict.fromkeys(LARGE_FORMS.values()),
    *map(catalogue.single, ISLAND_STAGES),
    *(kernel for kernel in ISLAND_INTEGRATORS.values() if kernel.name.endswith("_blocks")),
)
"""Kernels that only models solved island by island launch."""


def fitting(model: Model, kernel: Kernel) -> tuple[Kernel, ...]:
    """The kernel or, because large worlds do not fit in scratch, its stages alone with block-diagonal inertia."""
    if not model.has_islands:
        return (kernel,)
    stages = (stage for stage in kernel.stages if not (model.finds_pairs and stage in (COLLISION, COLLISION_GENERAL)))
    return tuple(mixing(model, catalogue.single(BY_BLOCKS.get(stage.name, stage))) for stage in stages)


def island_solution(model: Model) -> tuple[Kernel, ...]:
    """Rows and solution of worlds that are solved island by island."""
    before, after = (CONSTRAINT_BLOCKS, ISLANDS, SCAN_ISLANDS, GATHER), (SCATTER,)
    solver = (form for k in ISLAND_SOLVERS[model.solver] for form in (k, LARGE_FORMS.get(k.name)) if form is not None)
    return (*map(catalogue.single, before), *solver, *map(catalogue.single, after))


def island_integrator(integrator: str) -> tuple[Kernel, ...]:
    """The integrator of worlds that are solved island by island; none if the name is empty."""
    return (ISLAND_INTEGRATORS[integrator],) if integrator else ()


def of_large_worlds() -> tuple[Kernel, ...]:
    """Kernels whose unit is a world and which models with many dofs and islands launch with one block per world."""
    fused = (catalogue.POSITION_GENERAL, catalogue.SMOOTH_ADHESION, catalogue.POSITION, catalogue.SMOOTH_FLUID)
    alone = (*(stage for kernel in fused for stage in kernel.stages), ACTUATION)
    forces = (catalogue.POST, catalogue.POST_GENERAL, catalogue.TENDON_POST, catalogue.SENSE_FORCES)
    kernels = (
        *(catalogue.single(BY_BLOCKS.get(stage.name, stage)) for stage in alone),
        *(*ISLAND_KERNELS, *catalogue.NARROW.values(), *catalogue.ASKED_FOR[:-1], *ISLAND_INTEGRATORS.values()),
        *(*forces, catalogue.ACTIVATION_KERNEL),
    )
    return tuple({kernel.name: kernel for kernel in kernels if kernel.unit == "world"}.values())


def asked_for(by_blocks: bool) -> tuple[Kernel, ...]:
    """catalogue.ASKED_FOR, with block-diagonal or dense inertia."""
    return (*catalogue.ASKED_FOR[:-1], ENERGY_BY_BLOCKS) if by_blocks else catalogue.ASKED_FOR


def sense_motion(by_blocks: bool) -> Kernel:
    """Sensors of positions and velocities, with block-diagonal or dense inertia."""
    return SENSE_MOTION_BLOCKS if by_blocks else catalogue.SENSE_MOTION
