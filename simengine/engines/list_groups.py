"""`ListGroups`: memory, emitters and parameters of the groups of a `ListEngine`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mujoco

from simengine.backends.base import Backend
from simengine.emission.calls import CallFactory, Shard
from simengine.emission.params import GroupParameters
from simengine.emission.shard import ShardEmitter
from simengine.emission.store import GroupStore
from simengine.kernels.functions import Build, KernelFunctions
from simengine.model.blob import pack_models, with_integers
from simengine.model.model_table import ModelTable
from simengine.plan.issue import Issuing
from simengine.plan.step_plan import StepPlan, has_step_kernel, plan_step
from simengine.state.fields import INTEGRATION_STATE
from simengine_scheduler import Segments
from simengine_scheduler.launch import Buffer

_TABLES = ("model_ints", "model_reals")
_DISABLED = mujoco.mjtDisableBit


class ListGroups:
    """Groups of worlds by number. The number of a group stays the same when others are made or removed.

    Args:
        backend: has the memory and the kernels.
        segments: the table of the calls' segments.
        dtype: precision.
        shards: number of shards of each group; None lets the backend choose.

    Attributes:
        stores: memory of each group.
        emitters: emitters of each group's shards.
        parameters: for each group whose worlds have parameters of their own, these parameters.
    """

    def __init__(self, backend: Backend, segments: Segments, dtype: str, shards: int | None) -> None:
        self.stores: dict[int, GroupStore] = {}
        self.emitters: dict[int, list[ShardEmitter]] = {}
        self.parameters: dict[int, GroupParameters] = {}
        self._backend = backend
        self._segments = segments
        self._dtype = dtype
        self._shards = shards
        self._following_group = 0
        self._following_shard = 0
        self._free_shards: list[int] = []
        self._lengths: dict[int, int] = {}  # about how long the step of each group takes, in no unit
        self._functions = {own: KernelFunctions(partial(_load, backend, dtype, own)) for own in (False, True)}

    def make(self, plans: Sequence[StepPlan]) -> list[int]:
        """Make groups and return their numbers. Their kernels are compiled together."""
        # kernels that only fill fields in `keep` are built when such a field is first asked for
        self._functions[False].require(build for plan in plans for build in plan.builds())
        with self._backend.filling():
            return [self._make(plan) for plan in plans]

    def _make(self, plan: StepPlan) -> int:
        group = self._following_group
        store = GroupStore(f"group{group}", plan)
        for name in INTEGRATION_STATE:
            store.array(name)
        count = len(store.bounds) - 1
        # Numbers of removed shards are used again. The table of segments would otherwise grow with every new group.
        free = len(self._free_shards)
        numbers = [*self._free_shards[:count], *range(self._following_shard, self._following_shard + count - free)]
        emitters = self._make_emitters(store, group, numbers)
        self.stores[group], self.emitters[group] = store, emitters
        # evaluations follow each other, and so do most dofs in one
        self._lengths[group] = emitters[0].evaluations * store.model.nv
        self._following_group += 1
        self._following_shard += max(0, count - free)
        del self._free_shards[:count]
        return group

    def remove(self, group: int) -> None:
        """Release the memory of a group."""
        self._free_shards += [emitter.shard.number for emitter in self.emitters[group]]
        del self.stores[group], self.emitters[group], self._lengths[group]
        self.parameters.pop(group, None)

    def longest_first(self, groups: Sequence[int]) -> Sequence[int]:
        """Put groups first in program order whose steps take longest, since the others end while these go on."""
        return sorted(groups, key=self._lengths.__getitem__, reverse=True) if len(groups) > 1 else groups

    def plan(
        self, more: Sequence[tuple[ModelTable, int]], issuing: Issuing, without: int | None = None
    ) -> list[StepPlan]:
        """Plan the steps of more groups beside those that are there, without group `without`."""
        there = [(store.model, store.num_worlds) for group, store in self.stores.items() if group != without]
        batch = [*there, *more]
        neighbours = [num_worlds for model, num_worlds in batch if has_step_kernel(model)]
        work = sum(_work(*group) for group in batch)
        backend, dtype, shards = self._backend, self._dtype, self._shards
        return [
            plan_step(model, number, backend, dtype, issuing, shards, neighbours, _work(model, number) / work)
            for model, number in more
        ]

    def _make_emitters(self, store: GroupStore, group: int, numbers: Sequence[int]) -> list[ShardEmitter]:
        plan, model = store.plan, store.model
        parameters = self.parameters.get(group)
        own_tables = parameters is not None and parameters.table is not None
        functions = self._functions[own_tables]
        functions.require(plan.builds())
        (header,), *blobs = pack_models([model], self._dtype)
        if parameters is None or parameters.table is None:
            uploaded = tuple(store.upload(name, blob) for name, blob in zip(_TABLES, blobs, strict=True))
        else:
            header = with_integers(header, **_of_parameters(model, parameters))
            uploaded = tuple(store.buffers[name] for name in _TABLES)
        tables: tuple[bytes | Buffer, ...] = (header, *uploaded)
        emitters = []
        for i, number in enumerate(numbers):
            shard = Shard(group, i, number, store.bounds[i], store.bounds[i + 1])
            factory = CallFactory(store, shard, functions, tables, self._segments, plan.lanes)
            of_class = tuple(
                CallFactory(store, shard, functions, tables, self._segments, n, c)
                for c, n in enumerate(plan.island_lanes)
            )
            emitters.append(ShardEmitter(store, shard, factory, of_class))
        return emitters

    def change_parameters(self, group: int, change: Callable[[GroupParameters], None]) -> None:
        """Change parameters of a group's worlds, and let its kernels read them."""
        parameters = self.parameters_of(group)
        first, damped = parameters.table is None, parameters.damped
        change(parameters)
        if first or parameters.damped != damped:
            self.use_table(group, parameters)

    def use_table(self, group: int, parameters: GroupParameters) -> None:
        """Let the kernels of a group read the table of its parameters."""
        store, table = self.stores[group], parameters.table
        store.buffers["model_reals"].rebind(self._backend.pointer(table), table.nbytes)
        numbers = [emitter.shard.number for emitter in self.emitters[group]]
        self.emitters[group] = self._make_emitters(store, group, numbers)

    def parameters_of(self, group: int) -> GroupParameters:
        """Parameters of a group's worlds, which are the model's until they are set."""
        if group not in self.parameters:
            store = self.stores[group]
            self.parameters[group] = GroupParameters(store.model, store.num_worlds, self._backend, self._dtype)
        return self.parameters[group]


def _load(backend: Backend, dtype: str, own_tables: bool, builds: Sequence[Build]) -> list[Any]:
    return backend.load(builds, dtype, own_tables)


def _work(model: ModelTable, num_worlds: int) -> int:
    """The work of a step of a group, in no unit: it is good for comparisons of groups only."""
    return num_worlds * (model.nv + 1) ** 2


def _of_parameters(model: ModelTable, parameters: GroupParameters) -> dict[str, int]:
    """Return the entries of a model's header that change when worlds have parameters of their own.

    Once the damping of worlds has been set, Euler's method integrates it implicitly, even if the model has none.
    """
    allowed = not model.mj.opt.disableflags & int(_DISABLED.mjDSBL_EULERDAMP | _DISABLED.mjDSBL_DAMPER)
    damped = model.options["opt_eulerdamp"] or (parameters.damped and allowed)
    return {"real_stride": int(parameters.table.shape[1]), "opt_eulerdamp": int(damped)}
