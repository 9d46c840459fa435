"""Whole steps of a shard's worlds as one call of the GPU; see `simengine.kernels.step_kernel`."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from simengine.backends.base import LANE_CLASSES, Backend, StepShape
from simengine.emission.calls import CallFactory
from simengine.emission.room import Placement, column_words, lanes_of
from simengine.emission.store import GroupStore
from simengine.kernels import catalogue
from simengine.kernels.kernel import ScratchPlan
from simengine.kernels.step_codegen import scalars
from simengine.kernels.step_kernel import TEAMS, StepKernel, step_kernel
from simengine.model.model import Model
from simengine.model.table import PAIRS
from simengine.state.fields import FIELD, ROW_CLASSES, entry_shape
from simengine_scheduler import KernelCall
from simengine_scheduler.core import Cost, Tag
from simengine_scheduler.launch import Buffer


class StepRoom(NamedTuple):
    """What worlds take in a kernel of whole steps.

    Attributes:
        near: where fields stand in shared memory.
        far: where the others stand in memory of the store.
        near_rows: most rows of a world that are near.
        scratch: bytes of shared memory a world.
    """

    near: ScratchPlan
    far: ScratchPlan
    near_rows: int
    scratch: int


_MOST_FAR = 2**28
"""Bytes of far memory that the worlds of a group may take."""


def has_step_kernel(model: Model) -> bool:
    """Whether there are kernels of whole steps for a model: it has nothing that only general kernels know."""
    special = model.general_smooth or model.has_adhesion or model.has_islands or model.neq or model.nfriction
    more = model.finds_pairs or model.na or model.opt_noslip_iterations or model.nv > LANE_CLASSES[-1]
    known = all(PAIRS[code].plain or not PAIRS[code].heavy for code in model.pair_codes)
    return known and not special and not more and catalogue.is_fused(model.opt_integrator, model.solver)


def step_kernel_of(model: Model, placement: Placement) -> StepKernel | None:
    """The kernel by which a group makes whole steps: for simple models on the GPU with few worlds that fit."""
    if not placement.whole or not has_step_kernel(model):
        return None
    plain = any(PAIRS[code].plain for code in model.pair_codes)
    kernel = step_kernel(model.opt_integrator, model.has_fluid, plain)
    room = step_room(kernel, model, placement.backend, placement.dtype)
    fits = placement.word * room.far.words * placement.num_worlds <= _MOST_FAR
    return kernel if fits and _shape(model, placement, room) else None


def _shape(model: Model, placement: Placement, room: StepRoom) -> StepShape | None:
    backend = placement.backend
    assert placement.whole is not None
    return backend.step_shape(*placement.whole, lanes_of(model, backend), room.scratch)


def step_room(kernel: StepKernel, model: Model, backend: Backend, dtype: str) -> StepRoom:
    """What worlds of a model take."""
    most = model.nefc_max
    near_rows = min(most, ROW_CLASSES[-1])
    near = kernel.plan_scratch(model.sizes, near_rows, backend.registers(model.nv))
    far = kernel.plan_far(model.sizes, model.ncon_max, most if most > near_rows else 0)
    word = 4 if dtype == "float32" else 8
    return StepRoom(near, far, near_rows, word * (near.words + TEAMS * column_words(backend, lanes_of(model, backend))))


class StepCalls:
    """Makes the calls of whole steps of one shard."""

    def __init__(self, store: GroupStore, factory: CallFactory, kernel: StepKernel):
        self._store = store
        self._factory = factory
        self._kernel = kernel
        self._room = step_room(kernel, store.model, store.backend, store.dtype)
        shape = _shape(store.model, store.placement, self._room)
        assert shape is not None
        self._shape = shape
        factory.functions.require((kernel,))

    def make(self, steps: int, controlled: bool) -> tuple[KernelCall, ...]:
        """So many steps, and the sums of the last counts; `controlled` ones have the controls that are put ahead."""
        factory, kernel, shard = self._factory, self._kernel, self._factory.shard
        far = self._far_memory()
        launch = self._store.backend.launch_steps(
            factory.functions[kernel],
            shard.size,
            self._shape,
            self._room.scratch,
            self._arguments(steps, controlled, far),
            self._store.buffers,
        )
        held = () if far is None else (factory.segments.intern("scratch", shard.number, None),)
        call = KernelCall(
            name=kernel.name,
            launch=launch,
            reads=factory.ids(kernel.reads, None),
            writes=factory.ids(kernel.stored, None),
            updates=(*factory.ids(kernel.state, None), *held),
            cost=self._cost(steps),
            tag=Tag((shard.group,), shard.number, kernel.name),
        )
        return call, factory.make(catalogue.SCAN_KERNEL, frozenset()).call

    def _far_memory(self) -> Buffer | None:
        words = self._room.far.words
        return self._store.scratch(self._factory.shard.place, words) if words else None

    def _arguments(self, steps: int, controlled: bool, far: Buffer | None) -> list[Any]:
        store, kernel, room, shard = self._store, self._kernel, self._room, self._factory.shard
        apart = store.num_worlds * store.model.nu if controlled else 0
        fields = {name: self._factory.argument(name) for name in (*kernel.reads, *kernel.stored, *kernel.state)}
        if controlled:
            fields["ctrl"] = store.controls_ahead(steps)[1]
        stages = 4 if store.model.opt_integrator == "rk4" else 1
        values = {"shard_size": shard.size, "evaluations": stages}
        return [
            *(*self._factory.tables, shard.begin, shard.size, steps, apart),
            *(self._shape.worlds_in_warp, room.far.words, room.near_rows),
            *(*fields.values(), far, *(values[name] for name in scalars(kernel))),
            *(room.near.offsets[item.name] for item in kernel.scratch_items),
            *(*(room.far.offsets[name] for name in kernel.far), room.near.words),
        ]

    def _cost(self, steps: int) -> Cost:
        """A hint, as for the kernels of a list."""
        kernel, model = self._kernel, self._store.model
        worlds, stages = self._factory.shard.size, 4 if model.opt_integrator == "rk4" else 1
        word = 4 if self._store.dtype == "float32" else 8
        touched = (*kernel.reads, *kernel.stored, *kernel.state)
        nbytes = sum(word * prod(entry_shape(FIELD[name], model.sizes)) for name in touched)
        flops = sum(stage.flops for stage in kernel.stages) * model.nv * stages * steps
        return Cost(flops * worlds, nbytes * worlds, self._room.scratch)
