"""`ListEngine`: steps groups of worlds by emitting kernel lists and running them through an executor."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import mujoco
import numpy as np

from scheduler import Buffer, Executor, Segments, Trace, make_executor
from simengine.backends.base import Backend
from simengine.emission.calls import CallFactory, EmittedCall, Shard
from simengine.emission.dense import STORED_BY_BLOCKS, dense_matrices, dense_rows
from simengine.emission.evaluation import kernels_of
from simengine.emission.memory import require
from simengine.emission.params import GroupParameters
from simengine.emission.shard import ShardEmitter
from simengine.emission.store import GroupStore
from simengine.kernels.functions import KernelFunctions
from simengine.model.blob import pack_models, with_integers
from simengine.model.model import Model
from simengine.state.fields import COLUMNS, FIELD, FIELDS, ISLAND_CLASSES

_ALL_FIELDS = frozenset(f.name for f in FIELDS)
_TABLES = ("model_ints", "model_reals")
_DISABLED = mujoco.mjtDisableBit


class ListEngine:
    """Kernel lists for the host and CUDA backends.

    Groups are known by numbers that they keep when others come and go.

    Attributes:
        stores: memory of each group.
        emitters: emitters of each group's shards.
        emission: "counted" or "ahead", see `simengine.emission.shard`.
        valid: for each group, the derived fields that hold the latest evaluation.
        paused: groups that `step` leaves out.
        parameters: of groups whose worlds differ in some.
    """

    def __init__(
        self,
        groups: Sequence[tuple[Model, int]],
        backend: Backend,
        executor: str,
        dtype: str,
        seed: int,
        shards: int | None,
        emission: str,
        executor_options: dict[str, Any],
    ):
        self.backend = backend
        self.executor_name = backend.default_executor if executor == "auto" else executor
        self.emission = backend.emission(self.executor_name) if emission == "auto" else emission
        backend.executor_options(self.executor_name, 1)  # refuses an executor this backend cannot run
        self.segments = Segments()
        self._dtype = dtype
        self._shards = shards
        self._chosen_options = {"segments": self.segments, "seed": seed, **executor_options}
        self.stores: dict[int, GroupStore] = {}
        self.emitters: dict[int, list[ShardEmitter]] = {}
        self.valid: dict[int, frozenset[str]] = {}
        self.paused: set[int] = set()
        self.parameters: dict[int, GroupParameters] = {}
        self._following_group = 0
        self._following_shard = 0
        self._free_shards: list[int] = []
        require(groups, backend, dtype)
        for model, num_worlds in groups:
            self._make_group(model, num_worlds)
        self._make_executor()
        self.trace = Trace(self.executor_name, "off")

    def add(self, model: Model, num_worlds: int) -> int:
        """Take in a group; returns its number. Raises BackendError where it does not fit; nothing is changed then."""
        self.backend.drain()
        require([(model, num_worlds)], self.backend, self._dtype)
        group = self._make_group(model, num_worlds)
        self.executor.close()
        self._make_executor()
        return group

    def remove(self, group: int) -> None:
        """Give back a group's memory, once the work under way is done."""
        self.synchronize()
        self._free_shards += [emitter.shard.number for emitter in self.emitters[group]]
        for table in (self.stores, self.emitters, self.valid):
            del table[group]
        self.paused.discard(group)
        self.parameters.pop(group, None)

    def _make_group(self, model: Model, num_worlds: int) -> int:
        group = self._following_group
        count = min(num_worlds, self._shards or self.backend.shards_for(num_worlds, self.executor_name))
        bounds = [num_worlds * i // count for i in range(count + 1)]
        store = GroupStore(f"group{group}", model, num_worlds, bounds, self.backend, self._dtype)
        # numbers of shards that went are used again, so that the table of segments does not grow with every change
        free = len(self._free_shards)
        numbers = [*self._free_shards[:count], *range(self._following_shard, self._following_shard + count - free)]
        emitters = self._make_emitters(store, group, numbers)
        self.stores[group], self.emitters[group], self.valid[group] = store, emitters, frozenset()
        self._following_group += 1
        self._following_shard += max(0, count - free)
        del self._free_shards[:count]
        return group

    def _make_executor(self) -> None:
        shards = sum(len(emitters) for emitters in self.emitters.values())
        self._options = {**self.backend.executor_options(self.executor_name, shards), **self._chosen_options}
        self.executor = make_executor(self.executor_name, **self._options)

    def _functions(self, lanes: int) -> KernelFunctions:
        return KernelFunctions(lambda kernels: self.backend.load(kernels, self._dtype, lanes))

    def _make_emitters(self, store: GroupStore, group: int, numbers: Sequence[int]) -> list[ShardEmitter]:
        model = store.model
        lanes = self.backend.lanes(model.nv)
        functions = self._functions(lanes)
        functions.require(kernels_of(model, model.opt_integrator, frozenset()))
        bounds = (*ISLAND_CLASSES, model.nv) if model.has_islands else ()
        island_lanes = [self.backend.lanes(bound) for bound in bounds]
        solvers = {n: self._functions(n) for n in island_lanes}
        (header,), *blobs = pack_models([model], self._dtype)
        parameters = self.parameters.get(group)
        if parameters is None or parameters.table is None:
            uploaded = tuple(store.upload(name, blob) for name, blob in zip(_TABLES, blobs, strict=True))
        else:
            header = with_integers(header, **_of_parameters(model, parameters))
            uploaded = tuple(store.buffers[name] for name in _TABLES)
        tables: tuple[bytes | Buffer, ...] = (header, *uploaded)
        emitters = []
        for i, number in enumerate(numbers):
            shard = Shard(group, i, number, store.bounds[i], store.bounds[i + 1])
            factory = CallFactory(store, shard, functions, tables, self.segments, lanes)
            of_class = tuple(
                CallFactory(store, shard, solvers[n], tables, self.segments, n, c) for c, n in enumerate(island_lanes)
            )
            emitters.append(ShardEmitter(store, shard, factory, of_class))
        return emitters

    def step(self, n: int, keep: frozenset[str], controls: Mapping[int, Any]) -> None:
        """Advance every world by `n` steps, but for those of paused groups.

        Args:
            n: number of steps.
            keep: derived fields that must be valid afterwards.
            controls: of groups that have others in each step, (n, num_worlds, nu).
        """
        staged = {g: self.backend.stage(c) if isinstance(c, np.ndarray) else c for g, c in controls.items()}
        self.trace = self._advance(self.executor, n, keep, staged)
        self._retire()
        self.valid.update(dict.fromkeys(self._active(), keep))

    def _advance(self, executor: Executor, n: int, keep: frozenset[str], controls: Mapping[int, Any]) -> Trace:
        """Run `n` steps; returns the trace of the last run of the executor."""
        emitters = [emitter for group in self._active() for emitter in self.emitters[group]]
        early = [emitter for emitter in emitters if self.emission == "ahead" and emitter.can_go_ahead]
        if not early and not controls:
            return executor.run([emitter.steps(n, keep) for emitter in emitters])
        late = emitters if not early else [emitter for emitter in emitters if not emitter.can_go_ahead]
        for step in range(n):
            self._control(controls, step)
            kept = keep if step == n - 1 else frozenset[str]()
            lists = [emitter.ahead(kept) for emitter in early]
            trace = executor.run([*lists, *(emitter.steps(1, kept) for emitter in late)])
        return self._catch_up(executor, early, n, keep, controls) or trace

    def _catch_up(
        self, executor: Executor, early: list[ShardEmitter], n: int, keep: frozenset[str], controls: Mapping[int, Any]
    ) -> Trace | None:
        """Let shards that were stepped ahead of their counts take the steps for which their arenas had no room."""
        if not early:
            return None
        executor.synchronize()
        done = [(emitter, emitter.arrive()) for emitter in early]
        behind = [(emitter, count) for emitter, count in done if count < n * emitter.stages]
        trace = None
        for step in range(min((count // emitter.stages for emitter, count in behind), default=n), n):
            self._control(controls, step)
            kept = keep if step == n - 1 else frozenset[str]()
            places = [(emitter, count - step * emitter.stages) for emitter, count in behind]
            trace = executor.run([e.steps(1, kept, max(0, count)) for e, count in places if count < e.stages])
        return trace

    def _control(self, controls: Mapping[int, Any], step: int) -> None:
        """Set the controls of a step."""
        for group, values in controls.items():
            self.stores[group].array("ctrl")[...] = values[step]

    def forward(self) -> None:
        """Fill every derived field from the state."""
        self._run([emitter.forward() for shards in self.emitters.values() for emitter in shards])
        self.valid.update(dict.fromkeys(self.valid, _ALL_FIELDS))

    def _active(self) -> list[int]:
        return [group for group in self.stores if group not in self.paused]

    def _run(self, emitters: list[Any]) -> None:
        self.trace = self.executor.run(emitters)
        self._retire()

    def _retire(self) -> None:
        """Give back arrays that arenas have moved from."""
        for store in self.stores.values():
            if store.retired:
                self.backend.synchronize()
                store.retired.clear()

    def traced_step(self, keep: frozenset[str]) -> Trace:
        """One step recorded with times, by an executor of its own."""
        active = self._active()
        executor = make_executor(self.executor_name, **{**self._options, "record": "times"})
        try:
            trace = self._advance(executor, 1, keep, {})
            executor.synchronize()
        finally:
            executor.close()
        self.valid.update(dict.fromkeys(active, keep))
        return trace

    def last_kernel_list(self) -> list[EmittedCall]:
        """Calls of the latest step or forward, shard after shard."""
        return [entry for group in self._active() for emitter in self.emitters[group] for entry in emitter.log]

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

    def params(self, group: int, name: str) -> Any:
        """A parameter of every world of a group, (num_worlds, ...) float64."""
        return self._parameters_of(group).values(name)

    def set_params(self, group: int, worlds: np.ndarray | None, fields: dict[str, Any]) -> None:
        """Set parameters of worlds of a group; after a group's first time nothing is allocated or built."""
        parameters = self._parameters_of(group)
        first, damped = parameters.table is None, parameters.damped
        parameters.set(worlds, fields)
        if first or parameters.damped != damped:
            store, table = self.stores[group], parameters.table
            store.buffers["model_reals"].rebind(self.backend.pointer(table), table.nbytes)
            numbers = [emitter.shard.number for emitter in self.emitters[group]]
            self.emitters[group] = self._make_emitters(store, group, numbers)

    def _parameters_of(self, group: int) -> GroupParameters:
        if group not in self.parameters:
            store = self.stores[group]
            self.parameters[group] = GroupParameters(store.model, store.num_worlds, self.backend, self._dtype)
        return self.parameters[group]

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
        return sum(store.nbytes() for store in self.stores.values())

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


def _of_parameters(model: Model, parameters: GroupParameters) -> dict[str, int]:
    """What a header says of worlds with parameters of their own: damping may come where the model has none."""
    allowed = not model.mj.opt.disableflags & int(_DISABLED.mjDSBL_EULERDAMP | _DISABLED.mjDSBL_DAMPER)
    damped = model.options["opt_eulerdamp"] or (parameters.damped and allowed)
    return {"real_stride": int(parameters.table.shape[1]), "opt_eulerdamp": int(damped)}
