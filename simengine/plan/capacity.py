"""Capacity of arenas: which fields they have, for how many entries at first, and how many they can ever need."""

from __future__ import annotations

from simengine.model.model_table import ModelTable
from simengine.plan import catalogue
from simengine.plan.islands import island_solution
from simengine.plan.pairs import PAIR_KERNELS
from simengine.state.fields import FIELDS, PAIR_SPARE, PAIRS_A_SLICE, Field

_FIRST_CAPACITY = 64  # entries of an arena when it is made
_AHEAD_CAPACITY = 2**17  # and at most where steps are issued ahead of their counts, but at least so many a world:
_AHEAD_A_WORLD = 16


def arena_fields(model: ModelTable, space: str) -> tuple[Field, ...]:
    """The fields of an arena that kernels of a model use; solvers have large working fields of their own."""
    kernels = catalogue.step_kernels(model.opt_integrator, model.solver)
    if model.has_islands:
        kept = [kernel for kernel in kernels if catalogue.CONSTRAINT not in kernel.stages]
        kernels = (*kept, *island_solution(model))
    if model.finds_pairs:
        kernels = (*kernels, *PAIR_KERNELS)
    kernels = (*kernels, catalogue.NOSLIP_KERNEL) if model.opt_noslip_iterations else kernels
    used = {kernel.stored_as(name) for kernel in kernels for stage in kernel.stages for name in stage.fields}
    used |= {name for kernel in kernels for name in kernel.island_scratch}
    return tuple(f for f in FIELDS if f.space == space and f.name in used)


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
    """The capacity of an arena of so many worlds at first: where it costs little, for all there can be.

    Steps that are issued ahead of their counts are slow where an arena is too small.
    """
    if not ahead or space not in ("contact", "row") or model.has_islands:
        return _FIRST_CAPACITY
    most = most_entries(model, space, worlds)
    assert most is not None
    return max(_FIRST_CAPACITY, min(most, max(worlds * _AHEAD_A_WORLD, _AHEAD_CAPACITY // worlds * worlds)))
