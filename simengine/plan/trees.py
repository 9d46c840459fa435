"""Variants of kernels that solve the systems of several trees side by side, where no constraint row couples them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from simengine.backends.base import LANE_CLASSES
from simengine.kernels.kernel import Kernel
from simengine.model.model_table import ModelTable
from simengine.physics.dynamics.acceleration import ACCELERATION_WIDE
from simengine.physics.integration.implicitfast_diagonal import IMPLICITFAST_DIAGONAL
from simengine.plan import catalogue
from simengine.plan.stages import EULER, SOLVE_CG, SOLVE_NEWTON_GENERAL, SOLVE_NEWTON_UNILATERAL
from simengine.plan.variants import WARPS_OF_MANY_ROWS, by_warps, with_inertia_eliminated, without_cones

_SOLVING = frozenset((SOLVE_NEWTON_GENERAL, SOLVE_NEWTON_UNILATERAL, EULER, IMPLICITFAST_DIAGONAL, ACCELERATION_WIDE))
"""Stages that know ranges of dofs (dof_ranges.cuh)."""


def has_separate_trees(model: ModelTable) -> bool:
    """Whether a lane for each dof has fewer fours of columns of a matrix where no row couples the trees."""
    trees = model.arrays["dof_treeid"]
    if model.has_islands or not 0 < model.nv <= LANE_CLASSES[-1]:
        return False
    begins = np.flatnonzero(np.diff(trees, prepend=-1))
    ends = np.append(begins[1:], model.nv)
    return bool((-(-(ends - begins // 4 * 4) // 4)).max() < -(-model.nv // 4))


@cache
def by_trees(kernel: Kernel) -> Kernel:
    """The kernel's variant that solves the systems of trees side by side, where it solves any with a row in each lane.

    A kernel whose lanes are several warps is as it was, and so is one with fewer lanes than dofs.
    """
    solves = not _SOLVING.isdisjoint(kernel.stages) and SOLVE_CG not in kernel.stages
    a_row_a_lane = kernel.own_lanes in (0, LANE_CLASSES[-1])
    if not solves or kernel.unit != "world" or not a_row_a_lane:
        return kernel
    return replace(kernel, name=f"{kernel.name}_trees", constants=(*kernel.constants, ("SEVERAL_TREES", 1)))


def with_trees_apart() -> tuple[Kernel, ...]:
    """Every variant that solves the systems of trees side by side, but for those that another variant leaves as is."""
    bounded, arena = (catalogue.finish("", SOLVE_NEWTON_GENERAL.name, arena) for arena in (False, True))
    as_two = [by_warps(bounded, dofs, WARPS_OF_MANY_ROWS, True) for dofs in LANE_CLASSES]
    general = (form for k in (bounded, arena, *as_two) for form in (k, without_cones(k)))
    pushing = (catalogue.finish("euler", SOLVE_NEWTON_UNILATERAL.name, arena) for arena in (False, True))
    moving = (catalogue.single(EULER), catalogue.DIAGONAL_KERNEL, *with_inertia_eliminated())
    kernels = (*general, *pushing, *moving)
    return tuple(dict.fromkeys(parted for kernel in kernels if (parted := by_trees(kernel)) != kernel))
