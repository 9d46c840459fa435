"""`ListEngine`: steps groups of worlds by emitting kernel lists and running them through an executor."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from scheduler import Buffer, Segments, Trace, make_executor
from simengine.backends.base import Backend
from simengine.emission.calls import CallFactory, EmittedCall, Shard
from simengine.emission.dense import STORED_BY_BLOCKS, dense_matrices, dense_rows
from simengine.emission.memory import require
from simengine.emission.shard import ShardEmitter, kernels_of
from simengine.emission.store import GroupStore
from simengine.kernels.functions import KernelFunctions
from simengine.model.blob import pack_models
from simengine.model.model import Model
from simengine.state.fields import COLUMNS, FIELD, FIELDS, ISLAND_CLASSES

_ALL_FIELDS = frozenset(f.name for f in FIELDS)


class ListEngine:
    """Kernel lists for the host and CUDA backends.

    Attributes:
        stores: memory of each group.
        valid: for each group, the derived fields that hold the latest evaluation.
    """

    def __init__(
        self,
        groups: Sequence[tuple[Model, int]],
        backend: Backend,
        executor: str,
        dtype: str,
        seed: int,
        shards: int | None,
        executor_options: dict[str, Any],
    ):
        self.backend = backend
        self.executor_name = backend.default_executor if executor == "auto" else executor
        backend.executor_options(self.executor_name, 1)  # refuses an executor this backend cannot run
        require(groups, backend, dtype)
        self.segments = Segments()
        self._headers, *blobs = pack_models([m for m, _ in groups], dtype)
        self._blob_arrays = tuple(backend.upload(blob) for blob in blobs)
        self.stores: list[GroupStore] = []
        self.emitters: list[list[ShardEmitter]] = []
        number = 0
        for index, (model, num_worlds) in enumerate(groups):
            count = min(num_worlds, shards or backend.shards_for(num_worlds, self.executor_name))
            bounds = [num_worlds * i // count for i in range(count + 1)]
            store = GroupStore(f"group{index}", model, num_worlds, bounds, backend, dtype)
            self.stores.append(store)
            self.emitters.append(self._make_emitters(store, index, number, dtype))
            number += count
        options = {
            **backend.executor_options(self.executor_name, number),
            "segments": self.segments,
            "seed": seed,
            **executor_options,
        }
        self.executor = make_executor(self.executor_name, **options)
        self._recorder_options = options
        self.valid: list[frozenset[str]] = [frozenset() for _ in groups]
        self.trace = Trace(self.executor_name, "off")

    def _functions(self, dtype: str, lanes: int) -> KernelFunctions:
        return KernelFunctions(lambda kernels: self.backend.load(kernels, dtype, lanes))

    def _make_emitters(self, store: GroupStore, group: int, number: int, dtype: str) -> list[ShardEmitter]:
        model = store.model
        lanes = self.backend.lanes(model.nv)
        functions = self._functions(dtype, lanes)
        functions.require(kernels_of(model, model.opt_integrator, frozenset()))
        bounds = (*ISLAND_CLASSES, model.nv) if model.has_islands else ()
        island_lanes = [self.backend.lanes(bound) for bound in bounds]
        solvers = {n: self._functions(dtype, n) for n in island_lanes}
        blobs = tuple(
            store.buffers.add(name, self.backend.pointer(array), array.nbytes)
            for name, array in zip(("model_ints", "model_reals"), self._blob_arrays, strict=True)
        )
        emitters = []
        for i in range(len(store.bounds) - 1):
            shard = Shard(group, i, number + i, store.bounds[i], store.bounds[i + 1])
            tables: tuple[bytes | Buffer, ...] = (self._headers[group], *blobs)
            factory = CallFactory(store, shard, functions, tables, self.segments, lanes)
            of_class = tuple(
                CallFactory(store, shard, solvers[n], tables, self.segments, n, c) for c, n in enumerate(island_lanes)
            )
            emitters.append(ShardEmitter(store, shard, factory, of_class))
        return emitters

    def step(self, n: int, keep: frozenset[str]) -> None:
        """Advance every world by `n` steps."""
        self._run([emitter.steps(n, keep) for shards in self.emitters for emitter in shards])
        self.valid = [keep for _ in self.stores]

    def forward(self) -> None:
        """Fill every derived field from the state."""
        self._run([emitter.forward() for shards in self.emitters for emitter in shards])
        self.valid = [_ALL_FIELDS for _ in self.stores]

    def _run(self, emitters: list[Any]) -> None:
        self.trace = self.executor.run(emitters)
        for store in self.stores:
            if store.retired:
                self.backend.synchronize()
                store.retired.clear()

    def traced_step(self, keep: frozenset[str]) -> Trace:
        """One step recorded with times, by an executor of its own."""
        executor = make_executor(self.executor_name, **{**self._recorder_options, "record": "times"})
        try:
            trace = executor.run([e.steps(1, keep) for shards in self.emitters for e in shards])
            executor.synchronize()
        finally:
            executor.close()
        self.valid = [keep for _ in self.stores]
        return trace

    def last_kernel_list(self) -> list[EmittedCall]:
        """Calls of the latest step or forward, shard after shard."""
        return [entry for shards in self.emitters for emitter in shards for entry in emitter.log]

    def get(self, group: int, name: str) -> Any:
        """The array of a world field."""
        store = self.stores[group]
        if store.model.has_islands and name in STORED_BY_BLOCKS:
            return dense_matrices(store.model, store.array(STORED_BY_BLOCKS[name]), self.backend)
        return store.array(name)

    def put(self, group: int, name: str, worlds: np.ndarray | None, values: Any) -> None:
        """Write a world field, for all worlds or those with the given numbers."""
        array = self.stores[group].array(name)
        if isinstance(values, np.ndarray):
            values = self.backend.stage(values.astype(array.dtype))
        array[... if worlds is None else worlds] = values

    def arena(self, group: int, world: int, names: Sequence[str], counter: str, address: str) -> dict[str, np.ndarray]:
        """The entries of one world in arena fields, on the host."""
        store = self.stores[group]
        shard = int(np.searchsorted(store.bounds, world, side="right")) - 1
        count = int(self.backend.to_host(store.array(counter)[world]))
        start = int(self.backend.to_host(store.array(address)[world]))
        arena = (store.contacts if FIELD[names[0]].space == "contact" else store.rows)[shard]
        fields = arena.arrays

        def entries(name: str) -> np.ndarray:
            # what none of the model's kernels writes is zero
            return self.backend.to_host(fields[name][start : start + count]) if name in fields else np.zeros(count)

        found = {name: entries(name) for name in names}
        if "efc_J" in names and store.model.has_islands:
            found["efc_J"] = dense_rows(store.model, entries("efc_J_blocks"), entries("efc_block"))
        return found

    def num_shards(self, group: int) -> int:
        """Ranges into which a group's worlds are split."""
        return len(self.emitters[group])

    def bad_worlds(self, group: int) -> int:
        """Frozen worlds at the latest count."""
        return sum(emitter.bad_worlds for emitter in self.emitters[group])

    def counts(self, group: int) -> dict[str, int]:
        """Sums of the count columns over the group's shards at the latest count."""
        totals = self.stores[group].totals_host.sum(axis=0).tolist()
        return dict(zip(COLUMNS, totals, strict=True))

    def nbytes(self) -> int:
        """Bytes of fields and arenas."""
        return sum(store.nbytes() for store in self.stores)

    def synchronize(self) -> None:
        """Wait until everything issued so far is done."""
        self.executor.synchronize()
        self.backend.synchronize()

    def close(self) -> None:
        """Give back threads and streams, once the work under way is done: it uses memory that goes back as well."""
        with suppress(Exception):  # a device that failed has said so at the call that failed
            self.backend.drain()
        self.executor.close()

    def __del__(self) -> None:
        """Wait for the work under way before its memory goes back."""
        if not sys.is_finalizing():
            with suppress(Exception):
                self.backend.drain()
