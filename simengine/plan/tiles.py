"""Tiled kernels, in which the host computes the motion of several worlds at once, and the counts that remain.

The motion without constraints takes the same branches in every world of a model, so that one vector instruction serves
several worlds. Contacts and rows do not.
"""

from __future__ import annotations

from dataclasses import replace

from simengine.kernels.kernel import Kernel
from simengine.model.model_table import ModelTable
from simengine.physics.kinematics.com_pos import COM_POS
from simengine.physics.kinematics.kinematics import KINEMATICS
from simengine.physics.kinematics.sites import SITES
from simengine.physics.solvers.solve_newton_unilateral import SOLVE_NEWTON_UNILATERAL
from simengine.plan.catalogue import FUSED_INTEGRATORS, POSITION, POSITION_GENERAL, SMOOTH, SMOOTH_FLUID, finish

_FRAMES = (KINEMATICS, SITES, COM_POS)


def _tiled(name: str, sites: bool, smooth: Kernel | None) -> Kernel:
    frames = tuple(stage for stage in _FRAMES if sites or stage is not SITES)
    stages = (*frames, *(smooth.stages if smooth else ()))
    return Kernel(f"{name}_sites" if sites else name, stages, direct=frozenset(), tiled_from=0)


FRAMES, FRAMES_SITES = (_tiled("frames", sites, None) for sites in (False, True))
MOTION, MOTION_SITES = (_tiled("motion", sites, SMOOTH) for sites in (False, True))
MOTION_FLUID, MOTION_FLUID_SITES = (_tiled("motion_fluid", sites, SMOOTH_FLUID) for sites in (False, True))


def _counting(name: str, position: Kernel) -> Kernel:
    stages = tuple(stage for stage in position.stages if stage not in _FRAMES)
    return Kernel(name, stages, direct=position.direct)


COUNTING, COUNTING_GENERAL = _counting("counting", POSITION), _counting("counting_general", POSITION_GENERAL)

MOTION_KERNELS: tuple[Kernel, ...] = (FRAMES, FRAMES_SITES, MOTION, MOTION_SITES, MOTION_FLUID, MOTION_FLUID_SITES)
"""They take the stages of `position` and `smooth` that do not count contacts."""

COUNTING_KERNELS: tuple[Kernel, ...] = (COUNTING, COUNTING_GENERAL)
"""What is left of `position` beside them."""


def in_tiles(kernel: Kernel) -> Kernel:
    """The tiled form of a kernel that launches solve, where there is one: Newton's method for rows in scratch.

    Constraint rows are made world by world.
    """
    solves = SOLVE_NEWTON_UNILATERAL in kernel.stages[1:2] and kernel.direct is not None
    if not solves or "efc_J" not in kernel.in_scratch:
        return kernel
    return replace(kernel, name=f"{kernel.name}_tiles", tiled_from=1)


TILED_KERNELS: tuple[Kernel, ...] = (
    *MOTION_KERNELS,
    *(in_tiles(finish(integrator, SOLVE_NEWTON_UNILATERAL.name, False)) for integrator in ("", *FUSED_INTEGRATORS)),
)
"""All tiled kernels."""

LEAST_WORLDS = 4
"""Worlds of a shard from which on tiles take less time than the worlds one after another."""

_MOST_DOFS = 64
"""Larger matrices are sparse, and their factors take other branches in other worlds."""


def has_tiles(model: ModelTable) -> bool:
    """Whether there is a tiled kernel for a model."""
    return not model.has_islands and model.nv <= _MOST_DOFS


def moves_in_tiles(model: ModelTable) -> bool:
    """Whether a tiled kernel computes all of the motion without constraints, not only its frames."""
    return not (model.general_smooth or model.has_adhesion)


def tiled_position(model: ModelTable, sites: bool) -> tuple[Kernel, Kernel]:
    """The tiled kernel of a model that has one, and the kernel of its counts.

    Args:
        model: model of the worlds.
        sites: whether somebody reads the frames of sites.
    """
    sites = sites and model.general_position
    if not moves_in_tiles(model):
        tiled = FRAMES_SITES if sites else FRAMES
    elif model.has_fluid:
        tiled = MOTION_FLUID_SITES if sites else MOTION_FLUID
    else:
        tiled = MOTION_SITES if sites else MOTION
    return tiled, COUNTING_GENERAL if model.general_position else COUNTING
