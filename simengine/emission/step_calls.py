"""`StepCalls`: whole steps of a shard as one kernel call on a GPU; see `simengine.kernels.step_kernel`."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any

from simengine.emission.calls import CallFactory
from simengine.emission.store import GroupStore
from simengine.kernels.step_codegen import scalars
from simengine.kernels.step_kernel import StepKernel
from simengine.plan.contact_kernels import SCAN_KERNEL
from simengine.plan.launches import Launch
from simengine.plan.stored_rows import NOTHING_STORED
from simengine.state.fields import FIELD, entry_shape
from simengine_scheduler import KernelCall
from simengine_scheduler.core import Cost, Tag
from simengine_scheduler.launch import Buffer


class StepCalls:
    """Makes the calls for whole steps of one shard.

    Args:
        store: memory of the group.
        factory: makes the other calls of the shard.
        kernel: the kernel that makes whole steps of the model.
    """

    def __init__(self, store: GroupStore, factory: CallFactory, kernel: StepKernel):
        self._store = store
        self._factory = factory
        self._kernel = kernel
        self._memory = store.plan.step_memory
        self._shape = store.plan.step_shape

    @cached_property
    def count(self) -> KernelCall:
        """Adds up the counts of the latest step, which steps themselves do not do."""
        return self._factory.make(Launch(SCAN_KERNEL), frozenset(), NOTHING_STORED).call

    def make(self, steps: int, controlled: bool) -> KernelCall:
        """Make the call for several steps.

        Args:
            steps: number of steps.
            controlled: whether each step reads its own controls, from `GroupStore.controls_ahead`.
        """
        factory, kernel, shard = self._factory, self._kernel, self._factory.shard
        global_memory = self._global_memory()
        _ = self.count  # whose fields are allocated with those of steps
        launch = self._store.backend.launch_steps(
            factory.function(kernel),
            shard.size,
            self._shape,
            self._memory.scratch,
            self._arguments(steps, controlled, global_memory),
            self._store.buffers,
        )
        held = () if global_memory is None else (factory.segments.intern("scratch", shard.number, None),)
        return KernelCall(
            name=kernel.name,
            launch=launch,
            reads=factory.ids(kernel.reads, None),
            writes=factory.ids(kernel.stored, None),
            updates=(*factory.ids((*kernel.state, "totals_host"), None), *held),
            cost=self._cost(steps),
            tag=Tag((shard.group,), shard.number, kernel.name),
        )

    def _global_memory(self) -> Buffer | None:
        words = self._memory.in_global.words
        return self._store.scratch(self._factory.shard.index_in_group, words) if words else None

    def _arguments(self, steps: int, controlled: bool, global_memory: Buffer | None) -> list[Any]:
        store, kernel, memory, shard = self._store, self._kernel, self._memory, self._factory.shard
        apart = store.num_worlds * store.model.nu if controlled else 0
        fields = {name: self._factory.argument(name) for name in (*kernel.reads, *kernel.stored, *kernel.state)}
        if controlled:
            fields["ctrl"] = store.controls_ahead(steps)[1]
        values = {"shard_size": shard.size, "evaluations": store.plan.evaluations}
        return [
            *(*self._factory.tables, shard.begin, shard.size, steps, apart),
            *(self._shape.worlds_in_warp, memory.in_global.words, memory.shared_rows),
            *(*fields.values(), global_memory, store.sleep_flag(), self._factory.argument("totals_host")),
            *(values[name] for name in scalars(kernel)),
            *(memory.in_shared.offsets[item.name] for item in kernel.scratch_items),
            *(*(memory.in_global.offsets[name] for name in kernel.global_fields), memory.in_shared.words),
        ]

    def _cost(self, steps: int) -> Cost:
        """A hint: operations and bytes of the steps."""
        kernel, model = self._kernel, self._store.model
        worlds, stages, word = self._factory.shard.size, self._store.plan.evaluations, self._store.plan.word
        touched = (*kernel.reads, *kernel.stored, *kernel.state)
        nbytes = sum(word * prod(entry_shape(FIELD[name], model.sizes)) for name in touched)
        flops = sum(stage.flops for stage in kernel.stages) * model.nv * stages * steps
        return Cost(flops * worlds, nbytes * worlds, self._memory.scratch)
