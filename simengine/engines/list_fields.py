"""Reads and writes world fields and arena fields of a group's memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simengine.arrays import Array
from simengine.backends.base import Backend
from simengine.emission.dense import STORED_BY_BLOCKS, dense_matrices, dense_rows
from simengine.emission.store import GroupStore
from simengine.state.fields import FIELD, ROW_SPACES

_REPEATED_ON_HOST = 2**20  # bytes; CuPy copies an array of the same shape without a kernel, which it would compile


def get_field(store: GroupStore, name: str, backend: Backend) -> Array:
    """The array of a world field."""
    if store.model.has_islands and name in STORED_BY_BLOCKS:
        return dense_matrices(store.model, store.array(STORED_BY_BLOCKS[name]), backend)
    return store.array(name)


def put_field(
    store: GroupStore, name: str, worlds: np.ndarray | None, values: Array | np.ndarray | float, backend: Backend
) -> None:
    """Write a world field of all worlds, or of those with the given indices."""
    array = store.array(name)
    if isinstance(values, np.ndarray):
        values = values.astype(array.dtype, copy=False)
        if worlds is None and backend.name == "cuda" and array.nbytes <= _REPEATED_ON_HOST:
            values = np.ascontiguousarray(np.broadcast_to(values, array.shape))
        values = backend.stage(values)
    array[... if worlds is None else worlds] = values


def arena_fields(
    store: GroupStore, world: int, names: Sequence[str], counter: str, address: str, backend: Backend
) -> dict[str, np.ndarray]:
    """The entries of one world in arena fields, on the host.

    Args:
        store: memory of the group.
        world: index of the world.
        names: arena fields to return.
        counter: the field with each world's number of entries.
        address: the field with the index of each world's first entry, which is the same in both arenas of rows.
        backend: has the memory.
    """
    shard = int(np.searchsorted(store.bounds, world, side="right")) - 1
    count = int(backend.to_host(store.array(counter)[world]))
    start = int(backend.to_host(store.array(address)[world]))
    spaces = ("contact",) if FIELD[names[0]].space == "contact" else ROW_SPACES
    fields = {name: array for space in spaces for name, array in store.arena(space, shard).arrays.items()}

    def entries(name: str) -> np.ndarray:
        # a field that none of the model's kernels writes has no array, and is zero
        return backend.to_host(fields[name][start : start + count]) if name in fields else np.zeros(count)

    found = {name: entries(name) for name in names}
    if "efc_J" in names and store.model.has_islands:
        found["efc_J"] = dense_rows(store.model, entries("efc_J_blocks"), entries("efc_block"))
    return found
