"""Capacity of arenas: which fields they have, how many entries they start with, and how many they may need at most."""

from __future__ import annotations

from functools import lru_cache

from simengine.kernels.kernel import Kernel
from simengine.model.model_table import ModelTable
from simengine.plan import catalogue
from simengine.plan.islands import island_solution, most_dense_dofs
from simengine.plan.pairs import PAIR_KERNELS
from simengine.plan.stages import CONSTRAINT
from simengine.state.field import Field
from simengine.state.fields import FIELDS, ISLAND_ARENAS, PAIR_ARENAS, ROW_SPACES, padded
from simengine.state.pair_fields import PAIR_SPARE, PAIRS_A_SLICE

_FIRST_CAPACITY = 64  # entries that an arena starts with, at least
# Where steps are issued ahead of counts, an arena starts with all entries that its worlds may need, up to the larger of
# these two limits.
_AHEAD_CAPACITY = 2**17  # entries of the arena
_AHEAD_A_WORLD = 16  # contacts for each world
_AHEAD_ROWS = 32  # rows for each world, beside those that it always or often has
_FEW_ROWS = 2  # the same, where only worlds of many rows have any in the arena
_MANY_ROWS = 64


def arena_fields(model: ModelTable, space: str) -> tuple[Field, ...]:
    """The fields of an arena that kernels of a model use. Other solvers' large working fields are left out."""
    kernels = catalogue.step_kernels(model.opt_integrator, model.solver)
    if model.has_islands:
        kept = [kernel for kernel in kernels if CONSTRAINT not in kernel.stages]
        kernels = (*kept, *island_solution(model))
    if model.finds_pairs:
        kernels = (*kernels, *PAIR_KERNELS)
    kernels = (*kernels, catalogue.NOSLIP_KERNEL) if model.opt_noslip_iterations else kernels
    return _fields_in(space, kernels)


@lru_cache(maxsize=1024)
def _fields_in(space: str, kernels: tuple[Kernel, ...]) -> tuple[Field, ...]:
    """The fields of a space that kernels use."""
    used = {kernel.stored_as(name) for kernel in kernels for stage in kernel.stages for name in stage.fields}
    used |= {name for kernel in kernels for name in kernel.island_scratch}
    return tuple(f for f in FIELDS if f.space == space and f.name in used)


def most_entries(model: ModelTable, space: str, worlds: int) -> int | None:
    """The largest number of entries that an arena of `worlds` worlds may need; None if unknown, as for islands."""
    most = {
        "contact": model.ncon_max,
        **dict.fromkeys(ROW_SPACES, model.nefc_max),
        "pair": model.npair_max + PAIR_SPARE,
        "slot": model.ncon_max,
        "slice": -(-model.npair_max // PAIRS_A_SLICE),
    }
    return worlds * most[space] if space in most else None


def first_entries(model: ModelTable, space: str, worlds: int, ahead: bool, beyond: int = 0) -> int:
    """The number of entries that an arena of `worlds` worlds starts with.

    Arenas for steps ahead of counts start large, since such steps have to be repeated by counts if an arena is too
    small.

    Args:
        model: model of the worlds.
        space: space of the arena.
        worlds: number of worlds.
        ahead: whether steps are issued ahead of counts.
        beyond: number of constraint rows up to which worlds have no entries in the arena.
    """
    if not ahead or space in PAIR_ARENAS or beyond >= model.nefc_max:
        return _FIRST_CAPACITY
    if space in ISLAND_ARENAS:
        rows = first_entries(model, "row", worlds, ahead) // worlds
        return max(_FIRST_CAPACITY, worlds * _first_of_islands(model, rows)[space])
    most = most_entries(model, space, worlds)
    assert most is not None
    each = _AHEAD_A_WORLD
    if space in ROW_SPACES:
        each = _FEW_ROWS if beyond >= _MANY_ROWS else _AHEAD_ROWS + _usual_rows(model)
    return max(_FIRST_CAPACITY, min(most, max(worlds * each, _AHEAD_CAPACITY // worlds * worlds)))


def _first_of_islands(model: ModelTable, rows: int) -> dict[str, int]:
    """Entries that each arena of islands has for a world with so many rows.

    There is room for islands of three blocks, and for rows of islands of any size, four between two blocks, as those of
    a contact.
    """
    dense, between = most_dense_dofs(model, model.nv), model.sizes["nwidest"] ** 2
    return {
        "island": model.sizes["nblock"],
        "island_M": -(-min(model.nv * dense, 3 * model.nM) // 4) + model.sizes["nblock"],
        "island_J": rows * max(padded(dense), model.sizes["nJ"]) // 4,
        "island_H": -(-(3 * model.nM + between * rows // 4) // 4),
    }


def _usual_rows(model: ModelTable) -> int:
    """Rows that every state has, of equalities and friction losses, and half of those that limits may add."""
    return int(model.eq_rows.sum()) + model.nfriction + model.nlimit // 2
