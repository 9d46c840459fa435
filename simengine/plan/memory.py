"""Computes the memory that the worlds of a model take, before any is allocated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from simengine.errors import BackendError
from simengine.kernels.kernel import Kernel
from simengine.model.blob import packed_bytes
from simengine.model.model_table import ModelTable
from simengine.plan import contact_kernels
from simengine.plan.capacity import arena_fields, first_entries, most_entries
from simengine.plan.evaluation import Evaluation
from simengine.plan.scratch import global_words, scratch_plan, works_in_global_memory
from simengine.plan.step_plan import StepPlan
from simengine.state.field import Field
from simengine.state.fields import (
    COLUMNS_OF,
    FIELD,
    INTEGRATION_STATE,
    ISLAND_ARENAS,
    PAIR_ARENAS,
    ROW_SPACES,
    WORLD_ARENAS,
    entry_shape,
)


class Footprint(NamedTuple):
    """Bytes that a group takes once it has been stepped, without host-visible memory.

    All values except `worlds` are in bytes.

    Attributes:
        worlds: number of worlds.
        world: fields of one world, whose sizes are fixed.
        scratch: scratch of one world that is too large for shared memory.
        table: the model table, and the counts of the shards.
        contact: one contact. Arenas grow by at least a quarter, and small ones double.
        row: one constraint row, of a world whose rows are in memory.
        pair: one pair of geoms that the broadphase finds; zero if the model table lists the candidate pairs.
        slot: one contact that such a pair may have; zero likewise.
        first: the arenas of all shards at the start. For steps ahead of counts they have capacity for 2^17 contacts and
            as many rows, or for 16 a world if that is more, or for the largest possible number if that is less.
        full: the arenas with capacity for the largest possible number of contacts, rows and pairs. Arenas of islands
            have no such number and are counted as in `first`.
    """

    worlds: int
    world: int
    scratch: int
    table: int
    contact: int
    row: int
    pair: int
    slot: int
    first: int
    full: int

    @property
    def at_first(self) -> int:
        """Bytes of the group before any arena has grown."""
        return self.worlds * (self.world + self.scratch) + self.table + self.first

    @property
    def at_most(self) -> int:
        """Bytes of the group if each world has as many contacts and rows as the model may have."""
        return self.at_first - self.first + self.full


def require_state(groups: Sequence[tuple[ModelTable, int]], backend: str, free: int | None, dtype: str) -> None:
    """Refuse groups whose state alone takes more memory than is free, before anything of their size is made.

    Args:
        groups: model and number of worlds of each group, at least one.
        backend: name of the backend.
        free: free bytes, or None if they are not known.
        dtype: "float32" or "float64".

    Raises:
        BackendError: there is too little memory.
    """
    word = 4 if dtype == "float32" else 8
    needs = [sum(_bytes(FIELD[name], model, word) for name in INTEGRATION_STATE) for model, _ in groups]
    total = sum(need * worlds for need, (_, worlds) in zip(needs, groups, strict=True))
    if free is not None and total > free:
        model, worlds = max(groups, key=lambda group: group[1])
        raise BackendError(
            f"{worlds} worlds of model {model.name!r} take at least {total / 2**30:.2f} GiB for their state, but the "
            f"{backend} backend has {free / 2**30:.2f} GiB free; use fewer worlds"
        )


def require(plans: Sequence[StepPlan]) -> int:
    """Refuse groups that take more memory than their backend has free, even before arenas grow.

    Args:
        plans: plans of all groups, at least one.

    Returns:
        The bytes that they take then; 0 if nothing is known about the memory.

    Raises:
        BackendError: there is too little memory.
    """
    backend = plans[0].backend
    free = backend.free_memory()
    if free is None:
        return 0
    needs = [footprint(plan, frozenset()) for plan in plans]
    total = sum(need.at_first for need in needs)
    if total <= free:
        return total
    largest = int(np.argmax([need.at_first for need in needs]))
    need = needs[largest]
    of_largest = (
        f"{need.worlds} worlds of model {plans[largest].model.name!r} take {need.world + need.scratch} bytes each"
    )
    raise BackendError(
        f"{of_largest}, and all worlds with memory for their first contacts take {total / 2**30:.2f} GiB, but the "
        f"{backend.name} backend has {free / 2**30:.2f} GiB free; use fewer worlds"
    )


def footprint(plan: StepPlan, wanted: frozenset[str]) -> Footprint:
    """Compute the memory that a group takes.

    Args:
        plan: plan of the group.
        wanted: derived fields that must be valid after a step. `forward` stores every field and takes more.
    """
    model, ahead = plan.model, plan.goes_ahead
    kernels: dict[str, Kernel] = {}
    used = set(INTEGRATION_STATE)
    of_steps = 0
    if plan.step_kernel is not None:
        whole, scan = plan.step_kernel, contact_kernels.SCAN_KERNEL
        used.update(whole.reads, whole.state, whole.stored, scan.reads, scan.produced)
        of_steps = plan.word * plan.step_memory.in_global.words
    if plan.step_kernel is None or wanted:
        for size in set(plan.shard_sizes):
            for evaluation in plan.step(size, wanted, ahead):
                kernels.update((kernel.name, kernel) for kernel in evaluation.kernels)
                used.update(_touched(evaluation))
    if not ahead:
        used.discard("progress")
    fields = [FIELD[name] for name in used]

    def entry(space: str) -> int:
        return sum(_bytes(field, model, plan.word) for field in arena_fields(model, space))

    of_columns = sum(4 * len(COLUMNS_OF[field.space]) for field in fields if field.space.endswith("column"))
    of_shards = sum(4 * len(COLUMNS_OF[f.space]) for f in fields if _is_of_shard(f))
    own = [(space, entry(space)) for space in WORLD_ARENAS]
    own += [(space, entry(space)) for space in PAIR_ARENAS if model.finds_pairs]
    own += [(space, entry(space)) for space in ISLAND_ARENAS if model.has_islands]
    each = dict(own)
    first = full = 0
    shards = Counter(plan.shard_sizes)
    for space, size in own:
        for worlds, number in shards.items():
            capacity = first_entries(model, space, worlds, ahead, plan.beyond(space, worlds))
            first += number * size * capacity
            full += number * size * max(capacity, most_entries(model, space, worlds) or 0)
    return Footprint(
        worlds=plan.num_worlds,
        world=sum(_bytes(f, model, plan.word) for f in fields if f.space in ("world", "block", "queue")) + of_columns,
        scratch=of_steps + _scratch(plan, tuple(kernels.values())),
        table=packed_bytes(model, plan.dtype) + of_shards * shards.total(),
        contact=each["contact"],
        row=sum(each[space] for space in ROW_SPACES),
        pair=each.get("pair", 0),
        slot=each.get("slot", 0),
        first=first,
        full=full,
    )


def _touched(evaluation: Evaluation) -> Iterator[str]:
    """Names of the fields in memory that an evaluation's kernels read or write."""
    for kernel in evaluation.kernels:
        stored = [n for n in kernel.produced if n not in kernel.in_scratch or n in evaluation.stored]
        yield from map(kernel.stored_as, (*kernel.reads, *kernel.updates, *stored))
        yield from kernel.addresses


def _bytes(field: Field, model: ModelTable, word: int) -> int:
    """Bytes of one entry of a field."""
    return prod(entry_shape(field, model.sizes)) * (4 if field.kind == "int" else word)


def _is_of_shard(field: Field) -> bool:
    """Whether a field has one entry for each shard and is not in host-visible memory."""
    of_shard = field.space in COLUMNS_OF and not field.space.endswith("column")
    return of_shard and not field.name.endswith("_host")


def _scratch(plan: StepPlan, kernels: Sequence[Kernel]) -> int:
    """Bytes of scratch of one world in global memory. The kernels of a shard share it, so the largest need counts."""
    there = (kernel for kernel in kernels if works_in_global_memory(kernel, plan.lanes, plan.backend))
    words = (global_words(scratch_plan(kernel, plan.model.sizes, 0, plan.backend)) for kernel in there)
    return plan.word * max(words, default=0)
