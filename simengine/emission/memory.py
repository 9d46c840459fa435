"""How much memory worlds of a model take, known before any is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simengine.backends.base import Backend
from simengine.emission.evaluation import fields_needed, kernels_of
from simengine.emission.store import arena_fields
from simengine.errors import BackendError
from simengine.model.model import Model
from simengine.state.fields import COLUMNS_OF, FIELD, INTEGRATION_STATE, Field, entry_shape

_WORD = {"float32": 4, "float64": 8}


class Footprint(NamedTuple):
    """Bytes that a model takes.

    Attributes:
        world: of each world, whatever happens in it.
        contact: of each contact; arenas grow to the most that a shard has had, and by doubling. Where steps go ahead of
            their counts, a shard's start with room for 2^17 or 16 a world, or for all there can be if that is less.
        row: of each constraint row, likewise; matrices of islands come on top.
        pair: of each pair of geoms that the broadphase finds, likewise, and `slot` of each contact that such pairs may
            have; zero where candidates are listed.
    """

    world: int
    contact: int
    row: int
    pair: int = 0
    slot: int = 0

    def most(self, model: Model, worlds: int) -> int:
        """Bytes of `worlds` worlds of which each has as many contacts and rows as the model can have."""
        pairs = self.pair * model.npair_max + self.slot * model.ncon_max
        return worlds * (self.world + self.contact * model.ncon_max + self.row * model.nefc_max + pairs)


def require(groups: Sequence[tuple[Model, int]], backend: Backend, dtype: str) -> None:
    """Refuse groups whose worlds take more than the backend has, contacts and rows aside.

    Raises:
        BackendError: with the figures.
    """
    free = backend.free_memory()
    needs = [worlds * footprint(model, dtype, frozenset()).world for model, worlds in groups]
    if free is None or sum(needs) <= free:
        return
    largest = int(np.argmax(needs))
    model, worlds = groups[largest]
    of_largest = f"{worlds} worlds of model {model.name!r} take {needs[largest] // worlds} bytes each"
    raise BackendError(
        f"{of_largest}, all worlds together {sum(needs) / 2**30:.2f} GiB before any contact, and the {backend.name} "
        f"backend has {free / 2**30:.2f} GiB free; use fewer worlds"
    )


def footprint(model: Model, dtype: str, keep: frozenset[str]) -> Footprint:
    """What a model takes with these fields kept by `step`; `forward`, which stores every field, takes more."""
    kernels = kernels_of(model, model.opt_integrator, keep)
    stored = keep | fields_needed(kernels)
    used = set(INTEGRATION_STATE)
    for kernel in kernels:
        kept = [n for n in kernel.produced if n not in kernel.in_scratch or n in stored]
        used.update(map(kernel.stored_as, (*kernel.reads, *kernel.updates, *kept)), kernel.addresses)

    def size(field: Field) -> int:
        number = int(np.prod(entry_shape(field, model.sizes)))
        return number * (4 if field.kind == "int" else _WORD[dtype])

    world = sum(size(FIELD[name]) for name in used if FIELD[name].space in ("world", "block"))
    columns = [FIELD[name] for name in used if FIELD[name].space.endswith("column")]
    world += sum(4 * len(COLUMNS_OF[field.space]) for field in columns)
    contact, row = (sum(map(size, arena_fields(model, space))) for space in ("contact", "row"))
    if not model.finds_pairs:
        return Footprint(world, contact, row)
    pair, slot = (sum(map(size, arena_fields(model, space))) for space in ("pair", "slot"))
    return Footprint(world, contact, row, pair, slot)
