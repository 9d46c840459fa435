"""Variants of kernels: the same stages, built otherwise for the models that need it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import product

import mujoco

from simengine.backends.base import DUAL_ROWS, LANE_CLASSES, LANES_OF_A_BLOCK, NEWTON_SOLVERS, lanes_for
from simengine.kernels.kernel import Kernel
from simengine.kernels.sources import stage_sources
from simengine.model.model_table import ModelTable
from simengine.model.pairs import FACE_CORNERS
from simengine.physics.collision.collision import COLLISION_GENERAL, COLLISION_LIST, LIST_CULLED
from simengine.physics.collision.prisms.prisms import PRISM_STAGES
from simengine.physics.integration.euler import EULER_FACTOR, EULER_FACTORED
from simengine.physics.islands.solve_large import SOLVE_LARGE
from simengine.physics.stage import Form
from simengine.plan import catalogue, contact_kernels
from simengine.plan.forms import in_form
from simengine.plan.omissions import NOSLIP_OF_PYRAMIDS, for_pyramids
from simengine.plan.pairs import PAIR_KERNELS
from simengine.plan.stages import (
    ACCELERATION,
    CONSTRAINT_GENERAL,
    EULER,
    FACTOR_M,
    INTEGRATORS,
    SOLVE_CG,
    SOLVE_NEWTON_GENERAL,
    SOLVE_NEWTON_UNILATERAL,
    SOLVE_PGS,
    SOLVERS,
    STAGES,
)
from simengine.state.fields import padded

MATRIX_SIZES = tuple(range(36, 65, 4))
"""Rows of matrices in registers with two rows in a lane. Kernels are compiled for each size that a model needs."""

_MOST_ROWS_OF_128_REGISTERS = 36  # with more, four blocks of 128 threads on a multiprocessor would spill

_SOLVERS_ALONG_BRANCHES = (SOLVE_NEWTON_UNILATERAL, SOLVE_NEWTON_GENERAL)
_ALONG_BRANCHES = frozenset((*_SOLVERS_ALONG_BRANCHES, EULER, EULER_FACTOR, EULER_FACTORED))
"""Stages with matrices along branches, beside those that have a form for it."""

_ROWS_ALONG_BRANCHES = frozenset({"efc_J", "efc_weight", "efc_D", "efc_aref", "efc_type", "efc_id", "efc_frictionloss"})
"""Fields of rows that are in memory where matrices are along branches, which fill the shared memory by themselves."""

_WITH_CONES = frozenset((SOLVE_NEWTON_GENERAL, SOLVE_LARGE, SOLVE_PGS, SOLVE_CG))
"""Solvers whose sources have code for elliptic cones, which other kernels leave out."""

_BLOCKS_ALONG_BRANCHES = 4  # of 128 threads on a multiprocessor; shared memory lets no more worlds on it

_BLOCKS_WITH_ROWS = 2  # of 128 threads on a multiprocessor, each of which has up to 255 registers

_WARP = LANE_CLASSES[-1]

HALF_WARP = _WARP // 2
"""Lanes of a world that shares a warp with another one, and the most rows of it."""

_ELLIPTIC = int(mujoco.mjtCone.mjCONE_ELLIPTIC)

_THREADS_WITH_WARPS = 512  # on a multiprocessor, so that each has 128 registers

# Blocks of 128 threads on a multiprocessor where a warp does the work of two, for up to 16 dofs and for up to 32. With
# more of them, a thread's registers would spill in loops over rows.
_BLOCKS_OF_FEW_DOFS, _BLOCKS_OF_MORE_DOFS = 6, 5

WARPS_OF_MANY_ROWS, WARPS_OF_MORE_ROWS = 2, 4
"""Warps that solve a world of many rows together, where rows are in scratch and where they are in the arena."""

_BLOCKS_WITH_DUAL_ROWS = 4  # of 128 threads on a multiprocessor; with five, a thread's registers would spill


@cache
def with_contact_parameters(kernel: Kernel) -> Kernel:
    """The kernel's variant that reads the parameters of contacts beside them, where one of its stages reads any."""
    if (
        kernel.on_islands
        or kernel.own_contact_parameters
        or not any(stage.contact_parameters for stage in kernel.stages)
    ):
        return kernel
    return replace(kernel, name=f"{kernel.name}_contact_parameters", own_contact_parameters=True)


@cache
def with_face_capacity(kernel: Kernel, corners: int) -> Kernel:
    """The kernel's variant with room for faces of so many corners, where it finds what lies flat on what.

    Corners of a polygon are kept for each thread, for which the GPU sets memory aside: most models do with little.
    """
    clips = any(path.stem == "convex" for path in stage_sources(kernel)) and kernel.stages[0] not in PRISM_STAGES
    if corners == FACE_CORNERS[0] or not clips:
        return kernel
    return replace(kernel, name=f"{kernel.name}_{corners}", constants=(*kernel.constants, ("FACE_CORNERS", corners)))


@cache
def without_kinds(kernel: Kernel, hfields: bool, searches: bool) -> Kernel:
    """The kernel's variant without the code for kinds of pairs, where it lists pairs of every kind.

    Args:
        kernel: a kernel.
        hfields, searches: whether the model has pairs with height fields, and pairs that need a search.
    """
    listing = {
        **dict.fromkeys((COLLISION_GENERAL, LIST_CULLED), ("HFIELDS", "SEARCHES")),
        COLLISION_LIST: ("HFIELDS",),
    }
    kinds = next((listing[stage] for stage in kernel.stages if stage in listing), ())
    there = {"HFIELDS": hfields, "SEARCHES": searches}
    missing = tuple(kind for kind in kinds if not there[kind])
    if not missing:
        return kernel
    name = "_".join((kernel.name, "no", *missing)).lower()
    return replace(kernel, name=name, constants=(*kernel.constants, *((kind, 0) for kind in missing)))


def keeps_factor(model: ModelTable) -> bool:
    """Whether some stage of a step reads the factor of the inertia, besides the acceleration without constraints."""
    return model.solver not in NEWTON_SOLVERS or bool(model.opt_noslip_iterations)


@cache
def without_factor(kernel: Kernel) -> Kernel:
    """The kernel's variant that eliminates the inertia for the acceleration, where it has its factor otherwise."""
    stages = tuple(in_form(stage, Form.WIDE) for stage in kernel.stages if stage is not FACTOR_M)
    if not stages or stages == kernel.stages:
        return kernel
    return replace(kernel, name=f"{kernel.name}_unfactored", stages=stages)


@cache
def with_matrix_rows(kernel: Kernel, rows: int) -> Kernel:
    """The kernel's variant with symmetric matrices in registers, two rows in each lane, where it has any.

    Args:
        kernel: a kernel over worlds, or over islands of more than 32 dofs.
        rows: number of dofs of the model, or the most dofs of such an island, at most 64; 0 for no variant.
    """
    if not rows or not kernel.solves_symmetric:
        return kernel
    size = padded(rows)
    blocks = min(kernel.min_blocks_per_multiprocessor, 4 if size <= _MOST_ROWS_OF_128_REGISTERS else 3)
    return replace(
        kernel,
        name=f"{kernel.name}_matrix_{size}",
        constants=(*kernel.constants, ("MATRIX_ROWS", size)),
        min_blocks_per_multiprocessor=blocks,
    )


@cache
def with_block_rows(kernel: Kernel, rows: int) -> Kernel:
    """The kernel's variant with symmetric matrices in the registers of a block, one row in each lane, where it has any.

    Args:
        kernel: a kernel over islands.
        rows: the most dofs of an island, at most as many as a block has lanes; 0 for no variant.
    """
    if not rows or not kernel.solves_symmetric:
        return kernel
    size = padded(rows)
    return replace(
        kernel,
        name=f"{kernel.name}_block_{size}",
        own_lanes=LANES_OF_A_BLOCK,
        constants=(*kernel.constants, ("BLOCK_ROWS", size)),
        min_blocks_per_multiprocessor=_BLOCKS_WITH_ROWS,
    )


@cache
def with_jacobian_in_memory(kernel: Kernel) -> Kernel:
    """The kernel's variant with the rows of the Jacobian in memory, where it has them in scratch.

    The scratch of many rows of many dofs leaves room for few worlds on a multiprocessor.
    """
    if "efc_J" not in kernel.in_scratch:
        return kernel
    return replace(kernel, name=f"{kernel.name}_J_in_memory", direct=(kernel.direct or frozenset()) | {"efc_J"})


@cache
def without_cones(kernel: Kernel) -> Kernel:
    """The kernel's variant without the code for elliptic cones, where it makes or solves rows of every type.

    Of the second derivatives of a row, it has one word instead of those that mix the rows of a cone.
    """
    if kernel.stages != (CONSTRAINT_GENERAL,) and not _WITH_CONES.intersection(kernel.stages):
        return kernel
    return replace(kernel, name=f"{kernel.name}_no_cones", constants=(*kernel.constants, ("HAS_CONES", 0)))


@cache
def by_warps(kernel: Kernel, dofs: int, warps: int, in_one: bool = False) -> Kernel:
    """The kernel's variant in which several warps solve a world together.

    Args:
        kernel: a kernel over worlds with Newton's method for rows of every type.
        dofs: dofs of the model, at most 32.
        warps: warps of a world.
        in_one: whether a single warp does the work of two, in their order, which gives the same bits.
    """
    most = lanes_for(dofs)
    lanes, blocks = _WARP * warps, _THREADS_WITH_WARPS // (_WARP * warps)
    if in_one:
        lanes, blocks = _WARP, _BLOCKS_OF_MORE_DOFS if most == _WARP else _BLOCKS_OF_FEW_DOFS
    return replace(
        kernel,
        name=f"{kernel.name}_{warps}_warps_{'in_one_' * in_one}{most}",
        own_lanes=lanes,
        min_blocks_per_multiprocessor=blocks,
        constants=(*kernel.constants, ("SOLVER_WARPS", warps), ("SOLVER_DOFS", most)),
    )


@cache
def along_branches(kernel: Kernel) -> Kernel:
    """The kernel's variant with symmetric matrices that have entries along the branches of trees, where it has any.

    The inertia is in memory, and no kernel keeps its factor. What is read of the rows in their order is in memory, too.

    Args:
        kernel: a kernel over worlds.
    """
    if kernel.along_branches:
        return kernel
    stages = tuple(in_form(stage, Form.BRANCHES) for stage in kernel.stages if stage is not FACTOR_M)
    if not stages or (stages == kernel.stages and not _ALONG_BRANCHES.intersection(stages)):
        return kernel
    return replace(
        kernel,
        name=f"{kernel.name}_branches",
        stages=stages,
        direct=None if kernel.direct is None else kernel.direct | {"qM"} | _ROWS_ALONG_BRANCHES,
        constants=(*kernel.constants, ("BRANCH_ROWS", 1)),
        min_blocks_per_multiprocessor=min(kernel.min_blocks_per_multiprocessor, _BLOCKS_ALONG_BRANCHES),
    )


@cache
def in_half_warps(kernel: Kernel) -> Kernel:
    """The kernel's variant in which half a warp solves a world, so that two worlds of few rows share a warp.

    Args:
        kernel: a kernel over worlds that may have rows in registers, as in `with_dual_rows`.
    """
    constants = (*kernel.constants, ("DOFS_BEYOND_LANES", 1))
    return replace(kernel, name=f"{kernel.name}_in_sixteen", own_lanes=HALF_WARP, constants=constants)


@cache
def with_dual_rows(kernel: Kernel, rows: int) -> Kernel:
    """The kernel's variant in which PGS has the rows of an island in registers, where PGS has its rows in scratch.

    The scratch then holds the products of all pairs of rows, and what only makes these is in memory.

    Args:
        kernel: a kernel over worlds, none of which has an elliptic cone.
        rows: the most rows of an island that are in registers; 0 for no variant. Half a warp has one in each lane.
    """
    if not rows or "efc_before" not in kernel.in_scratch:
        return kernel
    rows = kernel.own_lanes or rows
    return replace(
        kernel,
        name=f"{kernel.name}_rows_{rows}",
        direct=(kernel.direct or frozenset()) | {"efc_Y", "efc_weight"},
        constants=(*kernel.constants, ("PGS_ROWS", rows)),
        min_blocks_per_multiprocessor=min(kernel.min_blocks_per_multiprocessor, _BLOCKS_WITH_DUAL_ROWS),
    )


def variant_for(
    model: ModelTable,
    kernel: Kernel,
    matrix_rows: int = 0,
    dual_rows: int = 0,
    branches: bool = False,
    prisms: bool = False,
    eliminates: bool = False,
) -> Kernel:
    """The kernel, or its variant where the model needs one; all that a step launches has been through here.

    Args:
        model: model of the worlds.
        kernel: the kernel.
        matrix_rows: as in `with_matrix_rows`.
        dual_rows: as in `with_dual_rows`.
        branches: whether matrices are `along_branches`.
        prisms: whether kernels of their own count contacts with height fields.
        eliminates: whether the inertia is eliminated in registers, without its factor.
    """
    chosen = with_contact_parameters(kernel) if model.finds_pairs else kernel
    chosen = without_kinds(chosen, model.nhfield > 0 and not prisms, model.nsearch > 0)
    chosen = chosen if model.opt_cone == _ELLIPTIC else for_pyramids(chosen)
    chosen = with_dual_rows(with_face_capacity(chosen, model.face_corners), dual_rows)
    chosen = without_factor(chosen) if eliminates else chosen
    return along_branches(chosen) if branches else with_matrix_rows(chosen, matrix_rows)


def with_largest_faces() -> tuple[Kernel, ...]:
    """Every variant with room for the largest faces."""
    general = catalogue.POSITION_GENERAL
    searches = (*map(catalogue.single, general.stages), *contact_kernels.SEARCHES)
    kernels = (general, *searches, *contact_kernels.NARROW.values(), *PAIR_KERNELS)
    return tuple(variant for k in kernels if (variant := with_face_capacity(k, FACE_CORNERS[-1])) != k)


def without_some_kinds() -> tuple[Kernel, ...]:
    """Every variant without the code for some kinds of pairs."""
    alone = (catalogue.single(catalogue.COLLISION_GENERAL), contact_kernels.COUNTING_BY_WARP)
    culled = (contact_kernels.LISTING_BY_CLUSTERS, contact_kernels.CLUSTERS_BY_BLOCK)
    listing = (catalogue.POSITION_GENERAL, *alone, contact_kernels.SEARCHES[0], *culled, contact_kernels.LIST_NEAR)
    variants = (without_kinds(k, *kinds) for k in listing for kinds in product((False, True), repeat=2))
    return tuple(dict.fromkeys(variant for variant in variants if variant not in listing))


def with_rows_in_registers(dtype: str) -> Kernel:
    """The variant in which PGS has rows in registers."""
    return with_dual_rows(catalogue.finish("", SOLVE_PGS.name, False), DUAL_ROWS[dtype])


def with_rows_in_half_warps(dtype: str) -> Kernel:
    """The variant in which half a warp has rows in registers."""
    return with_dual_rows(in_half_warps(catalogue.finish("", SOLVE_PGS.name, False)), DUAL_ROWS[dtype])


def with_wide_matrices(sizes: tuple[int, ...] = MATRIX_SIZES) -> tuple[Kernel, ...]:
    """Every variant with two rows of a matrix in each lane, for matrices of these sizes."""
    solved = (
        kernel
        for integrator, solver in product(("", *INTEGRATORS), SOLVERS)
        for kernel in catalogue.step_kernels(integrator, solver)
    )
    several = (*solved, *map(catalogue.single, STAGES))
    launched = (form for k in several for form in (k, with_jacobian_in_memory(k), without_factor(k)))
    kernels = {k.name: k for k in launched if k.solves_symmetric}
    return tuple(with_matrix_rows(kernel, size) for size in sizes for kernel in kernels.values())


def with_inertia_eliminated() -> tuple[Kernel, ...]:
    """Every variant for up to 32 dofs in which lanes eliminate the inertia, a row in each of them."""
    launched = (*catalogue.step_kernels(""), catalogue.single(ACCELERATION))
    return tuple(dict.fromkeys(lean for kernel in launched if (lean := without_factor(kernel)) != kernel))


def with_warps() -> tuple[Kernel, ...]:
    """Every variant in which several warps solve a world."""
    bounded, arena = (catalogue.finish("", SOLVE_NEWTON_GENERAL.name, arena) for arena in (False, True))
    many = [by_warps(bounded, dofs, WARPS_OF_MANY_ROWS, one) for one in (False, True) for dofs in LANE_CLASSES]
    return (*many, *(by_warps(arena, dofs, WARPS_OF_MORE_ROWS) for dofs in LANE_CLASSES))


def without_code_for_cones() -> tuple[Kernel, ...]:
    """Every variant without the code for elliptic cones, but for the sizes of matrices in registers."""
    bounded, arena = (catalogue.finish("", SOLVE_NEWTON_GENERAL.name, arena) for arena in (False, True))
    lean = tuple(map(without_cones, (bounded, arena, with_jacobian_in_memory(bounded))))
    shaped = (form for k in lean for form in (k, along_branches(k), with_matrix_rows(k, MATRIX_SIZES[0])))
    others = (catalogue.finish("", s.name, arena) for s in (SOLVE_CG, SOLVE_PGS) for arena in (False, True))
    by_rows = (with_rows_in_registers("float32"), with_rows_in_half_warps("float32"))
    return (*dict.fromkeys(shaped), *map(without_cones, (*with_warps(), *others, *by_rows)))


def without_code_for_cones_of_islands(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Those of some kernels over islands that have a variant without the code for elliptic cones, in that variant."""
    return tuple(lean for kernel in kernels if kernel.on_islands and (lean := without_cones(kernel)) != kernel)


def with_branches() -> tuple[Kernel, ...]:
    """Every variant with matrices along branches."""
    solvers = (SOLVE_NEWTON_UNILATERAL.name, SOLVE_NEWTON_GENERAL.name)
    launched = (k for i, s in product(("", *INTEGRATORS), solvers) for k in catalogue.step_kernels(i, s))
    after = (catalogue.NOSLIP_KERNEL, NOSLIP_OF_PYRAMIDS, catalogue.single(ACCELERATION))
    beside = (catalogue.EULER_FACTOR_KERNEL, catalogue.EULER_FACTORED_KERNEL)
    kernels = {k.name: k for k in (*launched, *after, *beside)}
    return tuple(variant for k in kernels.values() if (variant := along_branches(k)) != k)
