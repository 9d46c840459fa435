"""How much room a group's worlds get: which fields its arenas have, how many entries, and what its kernels work in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from simengine.backends.base import Backend
from simengine.kernels import catalogue, cuda_build, island_kernels
from simengine.kernels.cuda_build import kernel_lanes
from simengine.kernels.kernel import Kernel, ScratchPlan
from simengine.kernels.pairs import PAIR_KERNELS
from simengine.model.model_table import ModelTable
from simengine.state.fields import FIELDS, ISLAND_CLASSES, MOST_LARGE_DOFS, PAIR_SPARE, PAIRS_A_SLICE, Field

_FIRST_CAPACITY = 64  # entries of an arena when it is made
_AHEAD_CAPACITY = 2**17  # and at most where steps are issued ahead of their counts, but at least so many a world:
_AHEAD_A_WORLD = 16

_LANES_OF_A_WARP = 32
"""Larger groups work in memory of the store, not in shared memory, which large worlds outgrow."""

_MOST_DOFS_OF_A_WARP = 256
"""Worlds of more dofs, if they are solved by islands, are worked on by a whole block of threads on the GPU."""


class Placement(NamedTuple):
    """Where the worlds of a group are to be; with the model this says what they take.

    Attributes:
        bounds: first world of each shard, and the number of worlds at the end.
        ahead: whether steps are issued ahead of their counts.
        whole: how many worlds may be stepped by kernels of whole steps at once, and of how many groups, if steps are to
            be so where they can be (`simengine.emission.step_calls`); otherwise None.
    """

    backend: Backend
    dtype: str
    bounds: Sequence[int]
    ahead: bool
    whole: tuple[int, int] | None = None

    @property
    def num_worlds(self) -> int:
        """Worlds of the group."""
        return self.bounds[-1]

    @property
    def word(self) -> int:
        """Bytes of a real number."""
        return 4 if self.dtype == "float32" else 8

    def shard_sizes(self) -> list[int]:
        """Worlds of each shard."""
        return [end - begin for begin, end in zip(self.bounds, self.bounds[1:], strict=False)]


def arena_fields(model: ModelTable, space: str) -> tuple[Field, ...]:
    """The fields of an arena that kernels of a model use; solvers have large working fields of their own."""
    kernels = catalogue.step_kernels(model.opt_integrator, model.solver)
    if model.has_islands:
        kept = [kernel for kernel in kernels if catalogue.CONSTRAINT not in kernel.stages]
        kernels = (*kept, *island_kernels.island_solution(model))
    if model.finds_pairs:
        kernels = (*kernels, *PAIR_KERNELS)
    kernels = (*kernels, catalogue.NOSLIP_KERNEL) if model.opt_noslip_iterations else kernels
    used = {kernel.stored_as(name) for kernel in kernels for stage in kernel.stages for name in stage.fields}
    used |= {name for kernel in kernels for name in kernel.island_scratch}
    return tuple(f for f in FIELDS if f.space == space and f.name in used)


def class_bounds(model: ModelTable) -> tuple[int, ...]:
    """The most dofs of an island of each class; none where a world is solved as one problem."""
    dense = model.large_island
    bounds = (*ISLAND_CLASSES, dense, MOST_LARGE_DOFS, model.nv)
    return tuple(min(model.nv, bound) for bound in bounds) if model.has_islands else ()


def most_entries(model: ModelTable, space: str, worlds: int) -> int | None:
    """The most entries that an arena of so many worlds can need; None for those of islands, which is not known."""
    most = {
        "contact": model.ncon_max,
        "row": model.nefc_max,
        "pair": model.npair_max + PAIR_SPARE,
        "slot": model.ncon_max,
        "slice": -(-model.npair_max // PAIRS_A_SLICE),
    }
    return worlds * most[space] if space in most else None


def first_entries(model: ModelTable, space: str, worlds: int, ahead: bool) -> int:
    """Entries for which an arena of so many worlds has room at first: where it costs little, for all there can be.

    Steps that are issued ahead of their counts are slow where they find no room.
    """
    if not ahead or space not in ("contact", "row") or model.has_islands:
        return _FIRST_CAPACITY
    most = most_entries(model, space, worlds)
    assert most is not None
    return max(_FIRST_CAPACITY, min(most, max(worlds * _AHEAD_A_WORLD, _AHEAD_CAPACITY // worlds * worlds)))


def lanes_of(model: ModelTable, backend: Backend) -> int:
    """Lanes of the group that works on a world."""
    large = model.has_islands and model.nv > _MOST_DOFS_OF_A_WARP
    return backend.wide_lanes if large else backend.lanes(model.nv)


def column_words(backend: Backend, lanes: int) -> int:
    """Words that linear algebra keeps for each group of lanes."""
    return cuda_build.column_words(lanes) if backend.name == "cuda" else 4


def plan(kernel: Kernel, sizes: Mapping[str, int], nrow: int, backend: Backend) -> ScratchPlan:
    """Where a kernel's scratch items stand; `sizes` are the model's, but for the most dofs of a unit."""
    return kernel.plan_scratch(sizes, nrow, backend.registers(sizes["nv"]))


def works_in_memory(kernel: Kernel, lanes: int, backend: Backend) -> bool:
    """Whether a kernel of a model that asks for `lanes` works in memory of the store instead of shared memory."""
    return kernel.unit == "world" and kernel_lanes(kernel, lanes) > _LANES_OF_A_WARP and backend.name == "cuda"


def memory_words(plan: ScratchPlan) -> int:
    """Words of each world of a kernel that works in memory of the store, one world after another."""
    return plan.words + 4 if plan.words else 0
