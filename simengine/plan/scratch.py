"""What a world's kernels work with: lanes, and the scratch of each kernel in shared memory or in the group's memory."""

from __future__ import annotations

from collections.abc import Mapping

from simengine.backends.base import Backend
from simengine.kernels import cuda_build
from simengine.kernels.cuda_build import kernel_lanes
from simengine.kernels.kernel import Kernel, ScratchPlan
from simengine.model.model_table import ModelTable
from simengine.state.fields import ISLAND_CLASSES, LARGE_ISLANDS, MOST_LARGE_DOFS

_LANES_OF_A_WARP = 32
"""Larger groups of lanes work in the group's memory, not in shared memory, which large worlds outgrow."""

_MOST_DOFS_OF_A_WARP = 256
"""Worlds of more dofs, if they are solved by islands, are worked on by a whole block of threads on the GPU."""


def class_bounds(model: ModelTable) -> tuple[int, ...]:
    """The most dofs of an island of each class; none where a world is solved as one problem."""
    bounds = (*ISLAND_CLASSES, model.large_island, MOST_LARGE_DOFS, model.nv)
    return tuple(min(model.nv, bound) for bound in bounds) if model.has_islands else ()


def lanes_of_world(model: ModelTable, backend: Backend) -> int:
    """Lanes of the group that works on a world."""
    large = model.has_islands and model.nv > _MOST_DOFS_OF_A_WARP
    return backend.wide_lanes if large else backend.lanes(model.nv)


def lanes_of_islands(model: ModelTable, backend: Backend) -> tuple[int, ...]:
    """Lanes of the groups that work on islands of each class; none where a world is solved as one problem."""
    dense = class_bounds(model)[:LARGE_ISLANDS]
    if not dense:
        return ()
    few = backend.lanes(model.nv)
    # rows that are solved one after another have no use for many lanes
    large = (few, few) if model.solver == "solve_pgs" else backend.island_lanes
    return (*map(backend.lanes, dense), *large)


def column_words(backend: Backend, lanes: int) -> int:
    """Words that linear algebra keeps for each group of lanes."""
    return cuda_build.column_words(lanes) if backend.name == "cuda" else 4


def scratch_plan(kernel: Kernel, sizes: Mapping[str, int], nrow: int, backend: Backend) -> ScratchPlan:
    """Where a kernel's scratch items stand; `sizes` are the model's, but for the most dofs of a unit."""
    return kernel.plan_scratch(sizes, nrow, backend.registers(sizes["nv"]))


def works_in_global_memory(kernel: Kernel, lanes: int, backend: Backend) -> bool:
    """Whether a kernel of a model that asks for `lanes` has its scratch in the group's memory, not in shared memory."""
    return kernel.unit == "world" and kernel_lanes(kernel, lanes) > _LANES_OF_A_WARP and backend.name == "cuda"


def global_words(plan: ScratchPlan) -> int:
    """Words of each world of a kernel that has its scratch in the group's memory, one world after another."""
    return plan.words + 4 if plan.words else 0
