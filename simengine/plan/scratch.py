"""The lanes that work on a world or an island, and the scratch of each kernel in shared or global memory."""

from __future__ import annotations

from collections.abc import Mapping

from simengine.backends.base import Backend
from simengine.kernels import cuda_build
from simengine.kernels.cuda_build import kernel_lanes
from simengine.kernels.kernel import Kernel
from simengine.kernels.placing import ScratchPlan
from simengine.model.model_table import ModelTable
from simengine.state.island_fields import ISLAND_CLASSES, LARGE_ISLANDS, MOST_LARGE_DOFS

WITHOUT_COLUMNS = ("COLUMN_WORDS", 0)
"""Constant of kernels that solve nothing, whose scratch has no words for linear algebra."""

_LANES_OF_A_WARP = 32
"""Kernels with more lanes have their scratch in global memory, since the worlds they serve outgrow shared memory."""

_MOST_DOFS_OF_A_WARP = 256
"""If a model has more dofs and is solved by islands, a whole block works on each world on a GPU."""


def class_bounds(model: ModelTable) -> tuple[int, ...]:
    """The largest number of dofs of an island of each size class; empty if worlds are not solved by islands."""
    bounds = (*ISLAND_CLASSES, model.large_island, MOST_LARGE_DOFS, model.nv)
    return tuple(min(model.nv, bound) for bound in bounds) if model.has_islands else ()


def works_in_blocks(model: ModelTable) -> bool:
    """Whether a whole block works on each world on a GPU."""
    return model.has_islands and model.nv > _MOST_DOFS_OF_A_WARP


def lanes_of_world(model: ModelTable, backend: Backend) -> int:
    """The number of lanes that work on a world."""
    return backend.wide_lanes if works_in_blocks(model) else backend.lanes(model.nv)


def lanes_of_islands(model: ModelTable, backend: Backend) -> tuple[int, ...]:
    """The number of lanes that work on an island of each size class; empty if worlds are not solved by islands."""
    dense = class_bounds(model)[:LARGE_ISLANDS]
    if not dense:
        return ()
    few = backend.lanes(model.nv)
    # PGS visits the rows one after another and cannot use many lanes.
    large = (few, few) if model.solver == "solve_pgs" else backend.island_lanes
    return (*map(backend.lanes, dense), *large)


def column_words(backend: Backend, lanes: int, solver_warps: int = 0) -> int:
    """Words of scratch that linear algebra needs for the lanes of one unit, of which `solver_warps` may solve."""
    return cuda_build.column_words(lanes, solver_warps) if backend.name == "cuda" else 4


def columns_of(kernel: Kernel, lanes: int, backend: Backend) -> int:
    """The same for a kernel, which may have none because it solves nothing."""
    none = WITHOUT_COLUMNS in kernel.constants
    return 0 if none else column_words(backend, lanes, kernel.solver_warps)


def scratch_plan(kernel: Kernel, sizes: Mapping[str, int], nrow: int, backend: Backend) -> ScratchPlan:
    """The offsets of a kernel's scratch items.

    Args:
        kernel: the kernel.
        sizes: sizes of the model, with "nv" the largest number of dofs of a unit.
        nrow: largest number of constraint rows of a unit in scratch.
        backend: says whether matrices are factored in registers.
    """
    return kernel.plan_scratch(sizes, nrow, backend.registers(sizes["nv"]))


def works_in_global_memory(kernel: Kernel, lanes: int, backend: Backend) -> bool:
    """Whether a kernel has its scratch in global memory, not in shared memory, if a world of the model has `lanes`."""
    large = kernel_lanes(kernel, lanes) > _LANES_OF_A_WARP and not kernel.in_blocks
    return kernel.unit == "world" and large and backend.name == "cuda"


def global_words(plan: ScratchPlan) -> int:
    """Words of one world's scratch in global memory, where the worlds follow one another."""
    return plan.words + 4 if plan.words else 0
