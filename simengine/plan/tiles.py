"""Tiled kernels, in which the host computes the motion of several worlds at once, and the counts that remain.

The motion without constraints takes the same branches in every world of a model, so that one vector instruction serves
several worlds. Contacts and rows do not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from simengine.kernels.kernel import Kernel
from simengine.model.model_table import ModelTable
from simengine.physics.dynamics.acceleration import ACCELERATION
from simengine.physics.dynamics.crb import CRB
from simengine.physics.dynamics.crb_general import CRB_GENERAL
from simengine.physics.dynamics.factor_m import FACTOR_M
from simengine.physics.dynamics.rne import RNE
from simengine.physics.integration.euler import EULER
from simengine.physics.islands.blocks import ACCELERATION_BLOCKS, CRB_BLOCKS, EULER_BLOCKS, FACTOR_BLOCKS
from simengine.physics.kinematics.com_pos import COM_POS
from simengine.physics.kinematics.com_vel import COM_VEL
from simengine.physics.kinematics.kinematics import KINEMATICS
from simengine.physics.kinematics.sites import SITES
from simengine.physics.solvers.solve_newton_unilateral import SOLVE_NEWTON_UNILATERAL
from simengine.physics.stage import Stage
from simengine.plan.catalogue import (
    FUSED_INTEGRATORS,
    POSITION,
    POSITION_GENERAL,
    SMOOTH,
    SMOOTH_ADHESION,
    SMOOTH_FLUID,
    SMOOTH_GENERAL,
    finish,
)
from simengine.plan.islands import fitting

_FRAMES = (KINEMATICS, SITES, COM_POS)


_INERTIAL = (CRB_GENERAL, COM_VEL, RNE)
"""Stages of models with general actuators or adhesion that take the same branches in every world."""


def _tiled(name: str, sites: bool, more: tuple[Stage, ...]) -> Kernel:
    frames = tuple(stage for stage in _FRAMES if sites or stage is not SITES)
    stages = (*frames, *more)
    return Kernel(f"{name}_sites" if sites else name, stages, direct=frozenset(), tiled_from=0)


_INERTIAL_BLOCKS = (CRB_BLOCKS, COM_VEL, RNE)
"""The same for models that are solved island by island."""


_IN_BLOCKS = {CRB: CRB_BLOCKS, FACTOR_M: FACTOR_BLOCKS, ACCELERATION: ACCELERATION_BLOCKS}


INERTIA_BLOCKS, INERTIA_BLOCKS_SITES = (
    _tiled("frames_inertia_blocks", sites, _INERTIAL_BLOCKS) for sites in (False, True)
)
MOTION_BLOCKS, MOTION_BLOCKS_SITES = (
    _tiled("motion_blocks", sites, tuple(_IN_BLOCKS.get(stage, stage) for stage in SMOOTH.stages))
    for sites in (False, True)
)
INERTIA, INERTIA_SITES = (_tiled("frames_inertia", sites, _INERTIAL) for sites in (False, True))
MOTION, MOTION_SITES = (_tiled("motion", sites, SMOOTH.stages) for sites in (False, True))
MOTION_FLUID, MOTION_FLUID_SITES = (_tiled("motion_fluid", sites, SMOOTH_FLUID.stages) for sites in (False, True))


def _counting(name: str, position: Kernel) -> Kernel:
    stages = tuple(stage for stage in position.stages if stage not in _FRAMES)
    return Kernel(name, stages, direct=position.direct)


COUNTING, COUNTING_GENERAL = _counting("counting", POSITION), _counting("counting_general", POSITION_GENERAL)

MOTION_KERNELS: tuple[Kernel, ...] = (
    *(INERTIA_BLOCKS, INERTIA_BLOCKS_SITES, INERTIA, INERTIA_SITES, MOTION_BLOCKS, MOTION_BLOCKS_SITES),
    *(MOTION, MOTION_SITES, MOTION_FLUID, MOTION_FLUID_SITES),
)
"""They take the stages of `position` and `smooth` that do not count contacts."""

COUNTING_KERNELS: tuple[Kernel, ...] = (COUNTING, COUNTING_GENERAL)
"""What is left of `position` beside them."""


ACCELERATION_KERNEL = Kernel("acceleration_tiles", (FACTOR_M, ACCELERATION), direct=frozenset(), tiled_from=0)
"""The acceleration without constraints, from the forces and the inertia of a tile."""


@cache
def _without(smooth: Kernel, left_out: tuple[Stage, ...], name: str) -> Kernel:
    """A kernel of smooth forces without some stages.

    Moments of actuators, most of which are zero, stay in scratch unless somebody reads them later.
    """
    stages = tuple(stage for stage in smooth.stages if stage not in left_out)
    return replace(smooth, name=f"{smooth.name}_{name}", stages=stages, direct=frozenset())


def _rest(smooth: Kernel, accelerates: bool) -> Kernel:
    if accelerates:
        return _without(smooth, (CRB, *_INERTIAL), "rest")
    return _without(smooth, (CRB, *_INERTIAL, *ACCELERATION_KERNEL.stages), "forces")


def beside_inertia(model: ModelTable, smooth: Kernel) -> tuple[Kernel, ...]:
    """What is left of a kernel of smooth forces beside the tiled kernel of the inertia."""
    if model.has_islands or model.nv > _MOST_FACTORED_DOFS:
        return (_rest(smooth, True),)
    return (_rest(smooth, False), ACCELERATION_KERNEL)


REST_KERNELS: tuple[Kernel, ...] = tuple(
    _rest(smooth, accelerates) for smooth in (SMOOTH_GENERAL, SMOOTH_ADHESION) for accelerates in (True, False)
)
"""They are left beside the tiled kernels of the inertia."""


def solves_in_tiles(model: ModelTable) -> bool:
    """Whether a tiled kernel solves the worlds of a model, where there is one for its solver."""
    return not model.has_islands and model.nv <= MOST_SOLVED_DOFS


@cache
def in_tiles(kernel: Kernel) -> Kernel:
    """The tiled form of a kernel that launches solve, where there is one: Newton's method for rows in scratch.

    Constraint rows are made world by world.
    """
    solves = SOLVE_NEWTON_UNILATERAL in kernel.stages[1:2] and kernel.direct is not None
    if not solves or "efc_J" not in kernel.in_scratch:
        return kernel
    return replace(kernel, name=f"{kernel.name}_tiles", tiled_from=1)


INTEGRATOR_KERNELS: tuple[Kernel, ...] = tuple(
    Kernel(f"{stage.name}_tiles", (stage,), direct=frozenset(), tiled_from=0) for stage in (EULER, EULER_BLOCKS)
)
"""Integrators that are not fused with a solver."""


def integrates_in_tiles(model: ModelTable) -> bool:
    """Whether a tiled kernel integrates the worlds of a model, where there is one for its integrator."""
    return _has_small_blocks(model) if model.has_islands else model.nv <= _MOST_INTEGRATED_DOFS


@cache
def integrator_in_tiles(kernel: Kernel) -> Kernel:
    """The tiled form of the kernel of an integrator alone, where there is one."""
    return next((tiled for tiled in INTEGRATOR_KERNELS if tiled.stages == kernel.stages), kernel)


TILED_KERNELS: tuple[Kernel, ...] = (
    *MOTION_KERNELS,
    ACCELERATION_KERNEL,
    *INTEGRATOR_KERNELS,
    *(in_tiles(finish(integrator, SOLVE_NEWTON_UNILATERAL.name, False)) for integrator in ("", *FUSED_INTEGRATORS)),
)
"""All tiled kernels."""

LEAST_WORLDS = 4
"""Worlds of a shard from which on tiles take less time than the worlds one after another."""

_MOST_FACTORED_DOFS = 64
"""Larger matrices are factored world by world."""

_MOST_INTEGRATED_DOFS = 96
"""The dense inertia of a tile of larger worlds would not stay in the second-level cache of a core."""

_MOST_DOFS = 256
"""The frames and the inertia of a tile of larger worlds would not stay in the second-level cache of a core."""

_MOST_BLOCK_DOFS = 640
"""The same where worlds are solved by islands, whose inertia has few words; here the third level is fast enough."""

_MOST_BLOCK_WORDS = 4096
"""Words of the inertia by blocks, above which it and its factor of a tile would fill the second-level cache."""

MOST_SOLVED_DOFS = 20
"""Models with more dofs are solved world by world: rows of the Hessian nearly fill vectors, and rows of contacts have
few entries, which differ between worlds."""


def has_tiles(model: ModelTable) -> bool:
    """Whether there is a tiled kernel for a model."""
    dense = moves_in_tiles(model) and not model.has_islands
    if dense:
        return model.nv <= _MOST_FACTORED_DOFS
    return model.nv <= (_MOST_BLOCK_DOFS if model.has_islands else _MOST_DOFS)


def moves_in_tiles(model: ModelTable) -> bool:
    """Whether a tiled kernel computes all of the motion without constraints, not only its frames and its inertia."""
    if model.general_smooth or model.has_adhesion:
        return False
    return not model.has_islands or (_has_small_blocks(model) and not model.has_fluid)


def _has_small_blocks(model: ModelTable) -> bool:
    """Whether the blocks of the inertia of a tile, and their factors, stay in the second-level cache of a core."""
    return model.sizes["nwidest"] <= _MOST_FACTORED_DOFS and model.sizes["nM"] <= _MOST_BLOCK_WORDS


def tiled_position(model: ModelTable, sites: bool) -> tuple[Kernel, ...]:
    """The tiled kernel of a model that has one, and the kernels of its counts.

    Args:
        model: model of the worlds.
        sites: whether somebody reads the frames of sites.
    """
    sites = sites and model.general_position
    counting = COUNTING_GENERAL if model.general_position else COUNTING
    if model.has_islands:
        plain, with_sites = (
            (MOTION_BLOCKS, MOTION_BLOCKS_SITES) if moves_in_tiles(model) else (INERTIA_BLOCKS, INERTIA_BLOCKS_SITES)
        )
        return (with_sites if sites else plain, *fitting(model, counting))
    if not moves_in_tiles(model):
        tiled = INERTIA_SITES if sites else INERTIA
    elif model.has_fluid:
        tiled = MOTION_FLUID_SITES if sites else MOTION_FLUID
    else:
        tiled = MOTION_SITES if sites else MOTION
    return tiled, counting
