"""`CallFactory`: makes kernel calls for one shard, each with the kernel's arguments, segments and launch shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

from simengine.backends.base import Extent
from simengine.emission.sized import SizedCall
from simengine.emission.store import GroupStore
from simengine.kernels.cuda_build import kernel_lanes
from simengine.kernels.functions import Build, KernelFunctions
from simengine.kernels.kernel import Kernel
from simengine.kernels.placing import ScratchPlan
from simengine.plan.contact_kernels import parts_of
from simengine.plan.evaluation import SIZE_CLASSES
from simengine.plan.launches import Launch, Listed
from simengine.plan.scratch import class_bounds, columns_of, global_words, works_in_global_memory
from simengine.plan.selection import SPREAD_WORLDS
from simengine.state.fields import (
    COLUMNS,
    COLUMNS_OF,
    FIELD,
    ISLAND_ARENAS,
    NUM_COLUMNS,
    NUM_TOTALS,
    PAIR_ARENAS,
    ROW_SPACES,
)
from simengine.state.pair_fields import PAIR_COLUMNS
from simengine_scheduler import KernelCall, Segments
from simengine_scheduler.core import Cost, Tag
from simengine_scheduler.launch import Buffer

_PROGRESS = ("progress", "progress_host")
# What kernels over lists of worlds make for others over the same lists.
_ROWS = (name for name, field in FIELD.items() if field.space in ROW_SPACES)
_MADE_BY_LISTS = frozenset({"contact_efc_address", *_ROWS})
_QUEUES = tuple(name for name, field in FIELD.items() if field.space == "queue")


class EmittedCall(NamedTuple):
    """One entry of a kernel list: the call, and the number of units (worlds, islands, columns) that it covers."""

    call: KernelCall
    units: int

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return self.call.name


class Shard(NamedTuple):
    """A range of worlds of a group.

    Attributes:
        group: number of the group.
        index_in_group: index of the shard within its group.
        number: index of the shard within the simulation.
        begin, end: first world, and the world after the last one.
    """

    group: int
    index_in_group: int
    number: int
    begin: int
    end: int

    @property
    def size(self) -> int:
        """Number of worlds."""
        return self.end - self.begin


class CallFactory:
    """Makes the calls of one shard. A call is made once; a count changes only its grid.

    Args:
        store: memory of the group.
        shard: the worlds that the calls work on.
        functions: compiled kernels.
        tables: header and blobs of the model table.
        segments: gives the ids of pieces of memory.
        lanes: lanes of each unit.
        island_class: size class of the islands; None if the calls work on worlds.

    All arguments except `store` and `island_class` are attributes.
    """

    def __init__(
        self,
        store: GroupStore,
        shard: Shard,
        functions: KernelFunctions,
        tables: tuple[bytes | Buffer, ...],
        segments: Segments,
        lanes: int,
        island_class: int | None = None,
    ):
        self._island_class = island_class
        self._store = store
        self.shard = shard
        self.functions = functions
        self.tables = tables
        self.segments = segments
        self.lanes = lanes
        self._chosen: tuple[Buffer, Buffer] | None = None
        self._arguments: dict[str, Any] = {}  # by the name of the field

    def function(self, kernel: Kernel) -> Any:
        """The compiled function of a kernel."""
        return self.functions[Build(kernel, self.lanes)]

    def choosing(self, worlds: Buffer, number: Buffer) -> CallFactory:
        """A factory of calls over some worlds of the shard.

        Args:
            worlds: (num_worlds,) int32, from the shard's first world on the chosen worlds of the shard.
            number: (number of shards,) int32, how many worlds of each shard are chosen.
        """
        factory = copy(self)
        factory._chosen = worlds, number
        return factory

    def make(self, planned: Launch, stored: frozenset[str], scalars: Mapping[str, int]) -> SizedCall:
        """Make the call of a planned launch on this shard.

        Args:
            planned: the kernel, and the units that it covers.
            stored: produced fields that must reach memory. The others stay in scratch.
            scalars: values of scalar arguments.
        """
        store, shard = self._store, self.shard
        kernel, listed, ahead = planned.kernel, planned.listed, planned.ahead
        places = store.plan.scratch_plan(kernel, self._most_dofs(), planned.nrow)
        parts = parts_of(kernel, scalars["parts"]) if kernel.in_parts else 1
        scalars = {**scalars, "parts": parts}
        kept = [n for n in kernel.produced if n not in kernel.in_scratch or n in stored]
        if kernel.unit == "column":
            args = [*self._fields(kernel, {*kept, *(_PROGRESS if ahead else ())}), *self._of_shard(kernel, scalars)]
        else:
            prefix = self._slices() if kernel.unit == "slice" else self._prefix(listed)
            head = [*prefix, self.argument("progress") if ahead and not kernel.own_addresses else None]
            args = [*head, *self._fields(kernel, set(kept)), *self._tail(kernel, places, scalars)]
        word = 4 if store.dtype == "float32" else 8
        lanes = kernel_lanes(kernel, self.lanes)
        scratch = word * (places.words + columns_of(kernel, lanes, store.backend))
        works_in = None
        if works_in_global_memory(kernel, self.lanes, store.backend):
            # The kernels of a shard that work in global memory share one buffer, so hazards put them in order.
            works_in = store.scratch(shard.index_in_group, global_words(places)) if places.words else None
            args, scratch = [*args, works_in], 0
        scan = kernel.unit == "column"
        units = kernel.columns if scan else shard.size * parts
        extent = Extent(units, lanes, scratch, scan, kernel.goes_on)
        launch = store.backend.launch(self.function(kernel), extent, args, store.buffers)
        reads = (*self._reads(kernel, listed, ahead), *self.ids(planned.behind, None))
        writes = self.ids((*map(kernel.stored_as, kept), *kernel.island_scratch), listed)
        updates = self._updated(kernel, listed, ahead)
        call = KernelCall(
            name=planned.name,
            launch=launch,
            reads=reads,
            writes=writes,
            updates=(*updates, *self._scratch_ids(works_in)),
            cost=self._cost(kernel, kept, scratch),
            tag=Tag((shard.group,), shard.number, kernel.name),
            tiled=self._tiled(kernel, (*reads, *writes, *updates), listed),
        )
        # a world may have several islands and slices
        most = shard.size if kernel.unit == "world" and self._island_class is None else None
        # units differ in how long they take to solve, and in warps of their own they do not wait for each other
        solves = listed is not None and listed.family == SIZE_CLASSES
        apart = self._island_class is not None or (solves and shard.size <= SPREAD_WORLDS)
        return SizedCall(call, store, extent, ahead and not apart, parts, most)

    def _tiled(self, kernel: Kernel, touched: tuple[int, ...], listed: Listed | None) -> tuple[int, ...]:
        """The segments that a call touches tile by tile.

        A tile of a call over all worlds is the same range of worlds in every such call, and touches only the data of
        these worlds. The counts are an exception for a kernel that adds up the counts of all worlds of the shard
        itself. A tile of a call over listed worlds is the same range of the list in every such call, and of what is
        divided by lists touches only the data of these worlds. Which worlds a tile of chosen ones has, nobody knows.
        """
        if kernel.unit != "world" or kernel.in_parts or self._chosen is not None:
            return ()
        if listed is not None:
            if kernel.queued:  # whose groups of lanes take worlds as they come
                return ()
            own = (listed.family, listed.member)
            return tuple(segment for segment in touched if self.segments.partition(segment) == own)
        of_all = self.ids((*(("counts",) if kernel.own_addresses else ()), *_QUEUES), None)
        return tuple(segment for segment in touched if segment not in of_all)

    def _scratch_ids(self, works_in: Buffer | None) -> tuple[int, ...]:
        return () if works_in is None else (self.segments.intern("scratch", self.shard.number, None),)

    def _updated(self, kernel: Kernel, listed: Listed | None, ahead: bool) -> tuple[int, ...]:
        return self.ids((kernel.stored_as(n) for n in kernel.updates if ahead or n not in _PROGRESS), listed)

    def _most_dofs(self) -> int:
        """The largest number of dofs that a unit may have."""
        model = self._store.model
        return model.nv if self._island_class is None else class_bounds(model)[self._island_class]

    def _read(self, kernel: Kernel, listed: Listed | None, ahead: bool) -> tuple[str, ...]:
        """Names of the fields that a call reads."""
        progress = ("progress",) if ahead and kernel.unit != "column" and not kernel.own_addresses else ()
        own = kernel.parameters if self._store.model.finds_pairs else ()
        lists = ("slice_record", "pair_totals") if kernel.unit == "slice" else self._lists(listed)
        return (*map(kernel.stored_as, kernel.reads), *kernel.addresses, *own, *lists, *progress)

    def _reads(self, kernel: Kernel, listed: Listed | None, ahead: bool) -> tuple[int, ...]:
        """Ids of the segments that a call reads.

        Of what the call before has made for its list of worlds, it reads the part of these worlds alone. So the calls
        over other lists need not wait for each other.
        """
        of_worlds = listed if kernel.unit == "world" and listed and listed.column.startswith("rows") else None
        return tuple(
            segment
            for name in self._read(kernel, listed, ahead)
            for segment in self.ids((name,), of_worlds if name in _MADE_BY_LISTS else None)
        )

    def _of_shard(self, kernel: Kernel, scalars: Mapping[str, int]) -> list[Any]:
        """Scalar arguments of a scan."""
        shard, store = self.shard, self._store
        rooms = {"contact": store.contacts, "row": store.rows, "jacobian": store.jacobians, **store.islands}
        values: dict[str, Any] = {"begin": shard.begin, "shard_size": shard.size, **scalars}
        values |= {f"{space}_capacity": of[shard.index_in_group].capacity_argument for space, of in rooms.items()}
        return [values[name] for name in kernel.scalars]

    def _lists(self, listed: Listed | None) -> tuple[str, ...]:
        """Fields that list the units of a call."""
        if self._island_class is not None:
            return ("island_totals",)
        return ("lists", "totals") if listed else ()

    def _prefix(self, listed: Listed | None) -> list[Any]:
        """Tables, list of units, total, and range of a kernel over worlds or islands."""
        shard = self.shard
        head: list[Any] = [*self.tables]
        if self._island_class is not None:
            buffer, start = self.argument("island_totals")
            of_class = (buffer, start + 4 * self._island_class)
            return [*head, self.argument("island_record"), of_class, self._island_class, 0]
        if listed is None:
            chosen: list[Any] = [None, None]
            if self._chosen is not None:
                chosen = [(self._chosen[0], 4 * shard.begin), (self._chosen[1], 4 * shard.index_in_group)]
            return [*head, *chosen, shard.begin, shard.size]
        column = COLUMNS.index(listed.column)
        at = 4 * (NUM_COLUMNS * shard.begin + column * shard.size)
        total = 4 * (NUM_TOTALS * shard.index_in_group + column)
        return [
            *head,
            (self._store.buffer("lists"), at),
            (self._store.buffer("totals"), total),
            shard.begin,
            shard.size,
        ]

    def _slices(self) -> list[Any]:
        """Tables and range of a kernel over all slices of the shard."""
        buffer, start = self.argument("pair_totals")
        number = (buffer, start + 4 * PAIR_COLUMNS.index("slices"))
        return [*self.tables, self.argument("slice_record"), number, 0, 0]

    def _fields(self, kernel: Kernel, kept: set[str]) -> list[Any]:
        arguments: list[Any] = []
        for name, stored, made in kernel.touched:
            dropped = name not in kept and (made or name in _PROGRESS)
            arguments.append(None if dropped else self.argument(stored))
        arguments += [self.argument(name) for name in (*kernel.addresses, *kernel.island_scratch)]
        own = self._store.model.finds_pairs
        return [*arguments, *(self.argument(name) if own else None for name in kernel.parameters)]

    def argument(self, name: str) -> Any:
        """The kernel argument of a field: a buffer, or a buffer and the offset of the shard's part in it [bytes]."""
        if name not in self._arguments:
            self._arguments[name] = self._argument(name)
        return self._arguments[name]

    def _argument(self, name: str) -> Any:
        space, shard = FIELD[name].space, self.shard
        if space in ("contact", *ROW_SPACES, *ISLAND_ARENAS, *PAIR_ARENAS):
            return self._store.arena(space, shard.index_in_group).buffers[name]
        if space in COLUMNS_OF:
            first = shard.begin if space.endswith("column") else shard.index_in_group
            return (self._store.buffer(name), 4 * len(COLUMNS_OF[space]) * first)
        return self._store.buffer(name)

    def _tail(self, kernel: Kernel, places: ScratchPlan, scalars: Mapping[str, int]) -> list[Any]:
        room = self._store.contacts[self.shard.index_in_group].capacity_argument
        values: dict[str, Any] = {"shard_size": self.shard.size, "contact_capacity": room, **scalars}
        return [
            *(values[name] for name in kernel.scalars),
            *(places.offsets[item.name] for item in kernel.scratch_items),
            places.words,
        ]

    def ids(self, names: Iterable[str], listed: Listed | None) -> tuple[int, ...]:
        """Ids of the segments of fields, or of the parts of these fields that belong to listed worlds."""
        ids = []
        for name in names:
            partition = None
            if listed is not None:
                partition = (listed.family, listed.member)
            ids.append(self.segments.intern(name, self.shard.number, partition))
        return tuple(ids)

    def _cost(self, kernel: Kernel, kept: Sequence[str], scratch: int) -> Cost:
        """A hint: operations and bytes for all worlds of the shard, as if each world had one entry in each arena."""
        store, worlds = self._store, self.shard.size
        flops = sum(stage.flops for stage in kernel.stages) * store.model.nv * worlds
        touched = (store.entry_bytes(stored) for name, stored, made in kernel.touched if not made or name in kept)
        return Cost(flops, sum(touched) * worlds, scratch)
