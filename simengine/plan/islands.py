"""Kernels of worlds that are solved island by island: stages on inertia stored by blocks, and solvers of islands.

    constraint ── islands ── scan_islands ── counts ── gather ── solver, for each size class ── scatter

Stages of many worlds are not fused, since the scratch of a fused kernel leaves a multiprocessor room for few of them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from simengine.backends.base import LANES_OF_A_BLOCK
from simengine.kernels.kernel import Kernel
from simengine.model.model_table import ModelTable
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
from simengine.plan import catalogue, contact_kernels, smooth_kernels
from simengine.plan.forms import in_form
from simengine.plan.large_islands import for_large
from simengine.plan.pairs import PAIR_KERNELS
from simengine.plan.stages import INTEGRATORS
from simengine.plan.variants import MATRIX_SIZES, with_block_rows, with_contact_parameters, with_matrix_rows
from simengine.state.fields import FIELD, entry_shape
from simengine.state.island_fields import (
    HUGE_ISLANDS,
    ISLAND_CLASSES,
    LARGE_ISLANDS,
    MOST_LARGE_DOFS,
    NUM_ISLAND_CLASSES,
)


@cache
def in_blocks(kernel: Kernel) -> Kernel:
    """The kernel with its stages in the forms that work on inertia stored by blocks."""
    stages = tuple(in_form(stage, Form.BLOCKS) for stage in kernel.stages)
    return kernel if stages == kernel.stages else replace(kernel, name=f"{kernel.name}_blocks", stages=stages)


@cache
def in_blocks_of_few(kernel: Kernel) -> Kernel:
    """The same for few worlds, which leave a thread more registers than many do."""
    blocks = in_blocks(kernel)
    least = min(blocks.min_blocks_per_multiprocessor, _BLOCKS_OF_FEW)
    return blocks if blocks is kernel else replace(blocks, min_blocks_per_multiprocessor=least)


_BLOCKS_OF_FEW = 4
"""How many blocks of four worlds each of 132 multiprocessors has of up to 2,048 worlds, which are few."""

_SPREAD = frozenset((COLLISION, CONSTRAINT_BLOCKS, GATHER))
"""Stages of worlds that are solved by islands that take less time by blocks, where worlds are few."""

_THREADS_BY_BLOCK = 512  # on a multiprocessor, so that each has 128 registers

_BLOCKS = {CONSTRAINT_BLOCKS: 6, GATHER: 8}
"""How many blocks of 128 threads a multiprocessor should hold of stages that would take more registers otherwise."""


_IN_SCRATCH: dict[Stage, frozenset[str]] = {
    ISLANDS: frozenset(name for name in ISLANDS.writes if FIELD[name].space == "block"),
    GATHER: frozenset({"island_index"}),
}
"""Fields of a world that these stages write and read again and again, which lanes do in shared memory."""

_READ_OFTEN = {GATHER: frozenset({"block_island", "block_island_dof", "block_index", "island_size", "island_first"})}
"""Fields of which lanes have copies there."""


def _single(stage: Stage) -> Kernel:
    """The kernel of a stage that only these worlds have. It can read the parameters that each contact stores."""
    in_scratch = _IN_SCRATCH.get(stage)
    return replace(
        catalogue.single(stage),
        direct=None if in_scratch is None else frozenset(stage.writes) - in_scratch,
        preload=_READ_OFTEN.get(stage, frozenset()),
        own_contact_parameters=stage.contact_parameters,
        min_blocks_per_multiprocessor=_BLOCKS.get(stage, 1),
    )


def _over_islands(stage: Stage) -> Kernel:
    return Kernel(
        f"{stage.name}_islands", (stage,), unit="island", min_blocks_per_multiprocessor=6, min_blocks_of_eight_lanes=8
    )


@cache
def by_block(kernel: Kernel) -> Kernel:
    """The kernel's variant in which a block of a GPU works on a world, where several warps have work at once."""
    if not _SPREAD.issuperset(kernel.stages):
        return kernel
    blocks = _THREADS_BY_BLOCK // LANES_OF_A_BLOCK
    return replace(
        kernel, name=f"{kernel.name}_by_block", own_lanes=LANES_OF_A_BLOCK, min_blocks_per_multiprocessor=blocks
    )


ISLAND_SOLVERS: dict[str, tuple[Kernel, ...]] = {
    **{stage.name: (_over_islands(stage),) for stage in (SOLVE_NEWTON_UNILATERAL, SOLVE_NEWTON_GENERAL, SOLVE_CG)},
    "solve_pgs": (_over_islands(PGS_START), _single(PGS_WARM), _over_islands(PGS_DESCEND)),
}
"""The kernels of each solver of islands. A kernel over islands is launched once for each size class."""

_INTEGRATORS: dict[str, Kernel] = {
    "euler": catalogue.single(EULER_BLOCKS),
    "rk4": catalogue.single(RK4),
    **{name: in_blocks(Kernel(name, (INTEGRATORS[name],))) for name in ("euler_general", "implicit", "implicitfast")},
}

_LARGE = (for_large(kernel) for kernels in ISLAND_SOLVERS.values() for kernel in kernels)
_CONSTRAINT, _ISLANDS, _SCAN, _GATHER, _SCATTER = map(
    _single, (CONSTRAINT_BLOCKS, ISLANDS, SCAN_ISLANDS, GATHER, SCATTER)
)
ISLAND_STAGES: tuple[Stage, ...] = (
    *(CRB_BLOCKS, FACTOR_BLOCKS, ACCELERATION_BLOCKS, CONSTRAINT_BLOCKS, EULER_BLOCKS),
    *(ISLANDS, SCAN_ISLANDS, GATHER, PGS_WARM, SCATTER),
)
"""Stages over worlds that only such models launch. Solvers of islands are not among them."""
_GATHER_PUSHING = replace(_GATHER, name="only_gather_pushing", constants=(("ROW_KINDS", 0),))
"""The same where all rows only push, so that solvers of dense islands do not ask for their types."""
_TAKING_PARAMETERS = tuple(
    map(with_contact_parameters, (catalogue.POST_GENERAL, catalogue.SENSE_FORCES, catalogue.single(ADHESION)))
)

ISLAND_KERNELS: tuple[Kernel, ...] = (
    *PAIR_KERNELS,
    *_TAKING_PARAMETERS,
    *map(in_blocks, (catalogue.ENERGY_KERNEL, catalogue.SENSE_MOTION)),
    *(kernel for kernels in ISLAND_SOLVERS.values() for kernel in kernels if kernel.unit == "island"),
    *dict.fromkeys(kernel for kernel in _LARGE if kernel),
    *map(_single, ISLAND_STAGES),
    _GATHER_PUSHING,
    *(kernel for kernel in _INTEGRATORS.values() if kernel.stages[0].form is Form.BLOCKS),
)
"""Kernels that are launched only for models that are solved island by island."""


MOST_FUSED_DOFS = 64
"""Most dofs of a world whose stages a GPU runs in one kernel although it is solved island by island."""


def fitting(model: ModelTable, kernel: Kernel, fused: bool = False) -> tuple[Kernel, ...]:
    """The kernel itself, or a kernel for each of its stages if the model is solved island by island.

    These stages work on inertia stored by blocks. Contact counts are left out if a broadphase finds the pairs, and
    stages that have nothing to write, as those of tendons of a model without any.

    Args:
        model: model of the worlds.
        kernel: a kernel over worlds.
        fused: whether the stages may stay in one kernel.
    """
    if not model.has_islands:
        return (kernel,)
    if fused and not model.finds_pairs:
        return (in_blocks(kernel),)
    counting = (COLLISION, COLLISION_GENERAL) if model.finds_pairs else ()
    stages = (in_form(stage, Form.BLOCKS) for stage in kernel.stages if stage not in counting)
    return tuple(catalogue.single(stage) for stage in stages if _has_work(model, stage))


def _has_work(model: ModelTable, stage: Stage) -> bool:
    """Whether some field that a stage changes has an entry."""
    shapes = (entry_shape(FIELD[name], model.sizes) for name in (*stage.writes, *stage.updates))
    return any(0 not in shape for shape in shapes)


def island_dofs(model: ModelTable) -> list[int]:
    """The numbers of dofs that an island can have, which are sums of dofs of some blocks; empty without islands."""
    if not model.has_islands:
        return []
    sums = 1  # bit n is set if some blocks have n dofs together
    for dofs in np.diff(model.block_dofadr).tolist():
        sums |= sums << dofs
    return [n for n in range(1, model.nv + 1) if sums >> n & 1]


def most_dense_dofs(model: ModelTable, bound: int) -> int:
    """The most dofs of an island that is solved as a dense problem and has at most `bound`; 0 if there is none."""
    most = min(bound, model.large_island)
    return max((n for n in island_dofs(model) if n <= most), default=0)


def most_islands(model: ModelTable) -> tuple[int, ...]:
    """At least as many islands of each size class as a state can have, by `island_class` of blocks.cuh.

    All islands of a class may have as few dofs as one of them can have.
    """

    def class_of(dofs: int) -> int:
        if dofs > model.large_island:
            return LARGE_ISLANDS if dofs <= MOST_LARGE_DOFS else HUGE_ISLANDS
        return next((c for c, bound in enumerate(ISLAND_CLASSES) if dofs <= bound), LARGE_ISLANDS - 1)

    fewest: dict[int, int] = {}
    for dofs in island_dofs(model):
        fewest.setdefault(class_of(dofs), dofs)
    return tuple(model.nv // fewest[c] if c in fewest else 0 for c in range(NUM_ISLAND_CLASSES))


def island_solution(model: ModelTable) -> tuple[Kernel, ...]:
    """The kernels from constraint rows to the solution of a model that is solved island by island, in order."""
    solver = (form for k in ISLAND_SOLVERS[model.solver] for form in (k, for_large(k)) if form is not None)
    gather = _GATHER_PUSHING if model.solver == SOLVE_NEWTON_UNILATERAL.name else _GATHER
    return (_CONSTRAINT, _ISLANDS, _SCAN, gather, *solver, _SCATTER)


def island_integrator(integrator: str) -> tuple[Kernel, ...]:
    """The kernel of an integrator for such models; none if the name is empty."""
    return (_INTEGRATORS[integrator],) if integrator else ()


@cache
def scattering(kernel: Kernel) -> Kernel:
    """The kernel of an integrator that copies the solutions of islands back before it integrates."""
    return replace(
        kernel,
        name=f"scatter_{kernel.stages[0].name}",
        stages=(SCATTER, *kernel.stages),
        direct=frozenset(kernel.produced) | {"efc_force", "solver_niter"},
    )


def of_few_worlds() -> tuple[Kernel, ...]:
    """Kernels of several stages that only few worlds launch."""
    motion = (smooth_kernels.INERTIA, smooth_kernels.INERTIA_GENERAL)
    return (*map(in_blocks_of_few, motion), *(scattering(_INTEGRATORS[name]) for name in _INTEGRATORS if name != "rk4"))


def with_matrices_in_registers(sizes: tuple[int, ...]) -> tuple[Kernel, ...]:
    """Every kernel over islands with matrices of up to these sizes in registers, in a warp or in a block of lanes."""
    (kernel,) = ISLAND_SOLVERS[SOLVE_NEWTON_UNILATERAL.name]
    forms = ((with_matrix_rows if size <= MATRIX_SIZES[-1] else with_block_rows, size) for size in sizes)
    return tuple(form(kernel, size) for form, size in forms)


def with_spread_worlds() -> tuple[Kernel, ...]:
    """Every kernel in which a block works on a world, where worlds are few."""
    return tuple(by_block(_single(stage)) for stage in (COLLISION, CONSTRAINT_BLOCKS, GATHER))


def of_large_worlds() -> tuple[Kernel, ...]:
    """Kernels over worlds that models with islands and very many dofs launch: a block works on each world."""
    fused = (catalogue.POSITION_GENERAL, catalogue.SMOOTH_ADHESION, catalogue.POSITION, catalogue.SMOOTH_FLUID)
    alone = (*(stage for kernel in fused for stage in kernel.stages), ACTUATION)
    forces = (catalogue.POST, catalogue.POST_GENERAL, catalogue.TENDON_POST, catalogue.SENSE_FORCES)
    kernels = (
        *(catalogue.single(in_form(stage, Form.BLOCKS)) for stage in alone),
        *(*ISLAND_KERNELS, *contact_kernels.NARROW.values(), *catalogue.ON_DEMAND[:-1], *_INTEGRATORS.values()),
        *(*forces, catalogue.ACTIVATION_KERNEL),
    )
    return tuple({kernel.name: kernel for kernel in kernels if kernel.unit == "world"}.values())
