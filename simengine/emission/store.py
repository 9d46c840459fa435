"""`GroupStore`: the memory of one group of worlds, and the arenas of its shards.

World fields are allocated when a call first needs them. Arenas grow between counting and filling. The arrays of a
smaller arena stay allocated until all work that may use them is done.
"""

from __future__ import annotations

from functools import partial
from math import prod
from threading import Lock
from typing import Any
from weakref import proxy

import numpy as np

from simengine.errors import BackendError
from simengine.plan.capacity import arena_fields, first_entries, most_entries
from simengine.plan.step_plan import StepPlan
from simengine.state.field import Field
from simengine.state.fields import (
    COLUMNS_OF,
    FIELD,
    ISLAND_ARENAS,
    NUM_TOTALS,
    PAIR_ARENAS,
    PROGRESS,
    entry_shape,
)
from simengine.state.island_fields import ISLAND_COLUMNS
from simengine.state.pair_fields import PAIR_COLUMNS
from simengine_scheduler.launch import Buffer, BufferSet, Number

HOST_FIELDS = ("totals_host", "island_totals_host", "pair_totals_host", "progress_host")
"""Fields in host-visible memory, which the host may read while kernels run."""

_CHOSEN = ("chosen worlds", "number of chosen worlds")
_SLEEP = "sleep flag"
_COUNTS = ("counts", "island_counts", "pair_counts")
_DOUBLES = 2**16  # entries up to which an arena at least doubles; larger ones would waste memory, and grow by a quarter


class Arena:
    """The fields of one shard in one space, such as contacts or rows. All have the same capacity.

    The store outlives it.

    Attributes:
        capacity: number of entries.
        capacity_argument: the capacity, as an argument of kernels.
        room: (1,) int32, the capacity again, where compiled code reads it.
        arrays: the array of each field, (capacity, ...).
        buffers: the buffer of each field.
    """

    def __init__(self, store: GroupStore, space: str, shard: int):
        self._store: GroupStore = proxy(store)  # a cycle would keep the memory until Python looks for cycles
        self._space = space
        self._shard = shard
        self._fields = arena_fields(store.model, space)
        self.capacity = 0
        self.capacity_argument = Number(0)
        self.room = np.zeros(1, np.int32)
        self.arrays: dict[str, Any] = {}
        self.buffers: dict[str, Buffer] = {}
        worlds = store.bounds[shard + 1] - store.bounds[shard]
        self._most = most_entries(store.model, space, worlds)
        plan = store.plan
        first = partial(first_entries, store.model, space, worlds, plan.goes_ahead)
        beyond = plan.beyond(space, worlds)
        # an arena that starts small, for few worlds of many rows, doubles up to half of what it would start with
        self._doubles = max(_DOUBLES, first() // 2 if beyond else 0)
        self._grow(first(beyond))

    def reserve(self, need: int) -> None:
        """Raise the capacity to at least `need` entries. The contents are lost if the arena grows."""
        if need > self.capacity:
            ample = self.capacity + (self.capacity if self.capacity <= self._doubles else self.capacity // 4)
            with self._store.growing:
                self._grow(max(need, ample if self._most is None else min(ample, self._most)))

    def _grow(self, capacity: int) -> None:
        """Replace the arrays of all fields, or none of them if there is too little memory."""
        store, arrays = self._store, {}
        with store.backend.filling():
            for field in self._fields:
                shape = (capacity, *entry_shape(field, store.model.sizes))
                arrays[field.name] = store.allocate(shape, field, f"the {self._space} arena of {capacity} entries")
        for name, array in arrays.items():
            pointer, nbytes = store.backend.pointer(array), array.nbytes
            if name in self.buffers:
                store.retired.append(self.arrays[name])
                self.buffers[name].rebind(pointer, nbytes)
            else:
                self.buffers[name] = store.buffers.add(f"{store.name}.{name}.{self._shard}", pointer, nbytes)
        self.arrays = arrays
        self.capacity = self.capacity_argument.value = self.room[0] = capacity


class GroupStore:
    """The memory of one group.

    Attributes:
        name: name of the group, for messages.
        plan: the plan of the group's steps.
        bounds: first world of each shard, and the number of worlds at the end.
        retired: arrays that calls already issued may still use.
        growing: lock that is held while an arena grows, since threads that run whole steps grow arenas themselves.
    """

    def __init__(self, name: str, plan: StepPlan):
        self.name = name
        self.plan = plan
        self.model = model = plan.model
        self.num_worlds = plan.num_worlds
        self.bounds = plan.bounds
        self.backend = backend = plan.backend
        self.dtype = plan.dtype
        self.buffers = BufferSet()
        self.retired: list[Any] = []
        self.growing = Lock()
        self._tables: dict[str, Any] = {}
        self._arrays: dict[str, Any] = {}
        self._buffers: dict[str, Buffer] = {}
        self._scratch: dict[int, Any] = {}
        self._entry_bytes: dict[str, int] = {}
        self._controls_ahead: Any = None
        self._chosen: Any = None
        self._asleep: memoryview | None = None
        shards = range(len(self.bounds) - 1)
        self.totals_host = backend.host_visible(NUM_TOTALS * len(shards)).reshape(-1, NUM_TOTALS)
        self.progress_host = backend.host_visible(len(PROGRESS) * len(shards)).reshape(-1, len(PROGRESS))
        self.contacts = [Arena(self, "contact", shard) for shard in shards]
        self.rows = [Arena(self, "row", shard) for shard in shards]
        self.jacobians = [Arena(self, "jacobian", shard) for shard in shards]
        self.island_totals_host = np.zeros((0, len(ISLAND_COLUMNS)), np.int32)
        self.islands: dict[str, list[Arena]] = {}
        if model.has_islands:
            self.island_totals_host = backend.host_visible(len(ISLAND_COLUMNS) * len(shards)).reshape(len(shards), -1)
            self.islands = {space: [Arena(self, space, shard) for shard in shards] for space in ISLAND_ARENAS}
        self.pair_totals_host = np.zeros((0, len(PAIR_COLUMNS)), np.int32)
        self.pairs: dict[str, list[Arena]] = {}
        if model.finds_pairs:
            self.pair_totals_host = backend.host_visible(len(PAIR_COLUMNS) * len(shards)).reshape(len(shards), -1)
            self.pairs = {space: [Arena(self, space, shard) for shard in shards] for space in PAIR_ARENAS}

    def allocate(self, shape: tuple[int, ...], field: Field, what: str) -> Any:
        """Allocate a zeroed array of a field's type.

        Args:
            shape: shape of the array.
            field: the field that it stores.
            what: what the array is for, as the error says it.

        Raises:
            BackendError: there is too little memory.
        """
        dtype = "int32" if field.kind == "int" else self.dtype
        try:
            return self.backend.zeros(shape, dtype)
        except (MemoryError, RuntimeError) as error:
            raise BackendError(
                f"model {self.model.name!r} with {self.num_worlds} worlds needs more memory for {field.name} "
                f"({what}, shape {shape}) than the {self.backend.name} backend has: {error}; use fewer worlds"
            ) from error

    def controls_ahead(self, rounds: int) -> tuple[Any, Buffer]:
        """The controls of `rounds` steps that are issued together, (rounds, num_worlds, nu), and their buffer."""
        held = self._controls_ahead
        if held is None or len(held) < rounds:
            shape = (rounds, *self._shape(FIELD["ctrl"]))
            array = self._controls_ahead = self.allocate(shape, FIELD["ctrl"], "controls of steps issued together")
            if held is None:
                self._buffers["ctrl_ahead"] = self.buffers.add("ctrl_ahead", self.backend.pointer(array), array.nbytes)
            else:
                self.retired.append(held)
                self._buffers["ctrl_ahead"].rebind(self.backend.pointer(array), array.nbytes)
        return self._controls_ahead, self._buffers["ctrl_ahead"]

    def chosen_worlds(self) -> tuple[Any, Any]:
        """Lists of worlds for calls over some worlds only, (num_worlds,), and their lengths by shard, both int32.

        The list of a shard starts at the index of its first world.
        """
        if self._chosen is None:
            shapes = (self.num_worlds,), (len(self.bounds) - 1,)
            self._chosen = tuple(self.backend.zeros(shape, "int32") for shape in shapes)
            for name, array in zip(_CHOSEN, self._chosen, strict=True):
                self._buffers[name] = self.buffers.add(name, self.backend.pointer(array), array.nbytes)
        worlds, number = self._chosen
        return worlds, number

    def chosen_buffers(self) -> tuple[Buffer, Buffer]:
        """The buffers of `chosen_worlds`."""
        self.chosen_worlds()
        worlds, number = (self._buffers[name] for name in _CHOSEN)
        return worlds, number

    def sleep_flag(self) -> Buffer:
        """A buffer that tells kernels of whole steps whether to leave the worlds as they are.

        It is null until `let_sleep` is called, so that kernels of groups that never pause read nothing.
        """
        if _SLEEP not in self._buffers:
            self._buffers[_SLEEP] = self.buffers.add(_SLEEP, 0, 0)
        return self._buffers[_SLEEP]

    def let_sleep(self, asleep: bool) -> None:
        """Say whether kernels of whole steps leave the worlds as they are. None of them may run meanwhile."""
        if self._asleep is None:
            flag = self.backend.host_visible(1)
            self._asleep = flag.data
            self.sleep_flag().rebind(self.backend.pointer(flag), flag.nbytes)
        self._asleep[0] = asleep

    def counters(self) -> list[Any]:
        """The arrays of counts per world that have been allocated. A scan adds up all of their entries."""
        return [self._arrays[name] for name in _COUNTS if name in self._arrays]

    def array(self, name: str) -> Any:
        """The array of a world, column or shard field, allocated at first use; (num_worlds, ...) for world fields."""
        if name not in self._arrays:
            if name in HOST_FIELDS:
                self._arrays[name] = getattr(self, name)
            else:
                self._arrays[name] = self.allocate(self._shape(FIELD[name]), FIELD[name], "field")
        return self._arrays[name]

    def upload(self, name: str, values: np.ndarray) -> Buffer:
        """Make a buffer of the model table with these values."""
        array = self._tables[name] = self.backend.upload(values)
        return self.buffers.add(name, self.backend.pointer(array), array.nbytes)

    def scratch(self, shard: int, words: int) -> Buffer:
        """A buffer in global memory with at least `words` words of scratch for each world of a shard."""
        worlds = self.bounds[shard + 1] - self.bounds[shard]
        held = self._scratch.get(shard)
        if held is None or len(held) < worlds * words:
            array = self._scratch[shard] = self.backend.zeros((worlds * words,), self.dtype)
            pointer, name = self.backend.pointer(array), f"scratch.{shard}"
            if held is None:
                self._buffers[name] = self.buffers.add(f"{self.name}.{name}", pointer, array.nbytes)
            else:
                self.retired.append(held)
                self._buffers[name].rebind(pointer, array.nbytes)
        return self._buffers[f"scratch.{shard}"]

    def arena(self, space: str, shard: int) -> Arena:
        """The arena of a shard in a space: contacts, rows, Jacobians, or the spaces of islands and pairs."""
        own = {"contact": self.contacts, "row": self.rows, "jacobian": self.jacobians}
        arenas = own.get(space) or self.islands.get(space) or self.pairs[space]
        return arenas[shard]

    def host_counts(self, table: str) -> np.ndarray:
        """The counts that kernels write for the host, (shards, columns) int32."""
        counts: np.ndarray = getattr(self, table)
        return counts

    def entry_bytes(self, name: str) -> int:
        """Bytes of one entry of a field, which may not be allocated."""
        if name not in self._entry_bytes:
            field = FIELD[name]
            word = 4 if field.kind == "int" else self.plan.word
            self._entry_bytes[name] = word * prod(entry_shape(field, self.model.sizes))
        return self._entry_bytes[name]

    def has(self, name: str) -> bool:
        """Whether a field has been allocated."""
        return name in self._arrays

    def _shape(self, field: Field) -> tuple[int, ...]:
        if field.space in COLUMNS_OF:
            number = len(COLUMNS_OF[field.space])
            return (number * self.num_worlds,) if field.space.endswith("column") else (len(self.bounds) - 1, number)
        return (self.num_worlds, *entry_shape(field, self.model.sizes))

    def buffer(self, name: str) -> Buffer:
        """The buffer of a world, column or shard field."""
        if name not in self._buffers:
            array = self.array(name)
            self._buffers[name] = self.buffers.add(name, self.backend.pointer(array), array.nbytes)
        return self._buffers[name]

    def nbytes(self) -> int:
        """Bytes of the model table, the fields, the arenas and the scratch, without host-visible memory."""
        others = [arena for arenas in (*self.islands.values(), *self.pairs.values()) for arena in arenas]
        arenas = [a for arena in (*self.contacts, *self.rows, *self.jacobians, *others) for a in arena.arrays.values()]
        fields = (array for name, array in self._arrays.items() if name not in HOST_FIELDS)
        ahead = () if self._controls_ahead is None else (self._controls_ahead,)
        held = (*self._tables.values(), *fields, *arenas, *self._scratch.values(), *ahead)
        return sum(int(array.nbytes) for array in held)
