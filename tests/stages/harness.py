"""Memory and launches for calling kernels directly. Every field has a buffer of its own between guard zones.

A `Memory` has one shard of worlds, unused worlds before and after it, and arenas with unused entries at their end. A
write outside the shard is therefore found wherever it lands.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from copy import copy
from functools import cache
from typing import NamedTuple, cast

import numpy as np

from simengine.kernels.functions import Build
from simengine.kernels.host_build import HostFunction, build_library, defines, load_kernels
from simengine.kernels.kernel import Kernel
from simengine.model import ModelTable
from simengine.model.blob import pack_models
from simengine.plan.every_kernel import all_kernels
from simengine.plan.tiles import COUNTING_KERNELS, REST_KERNELS, TILED_KERNELS
from simengine.state.field import Field
from simengine.state.fields import COLUMNS_OF, FIELD, FIELDS, ISLAND_ARENAS, ROW_SPACES, WORLD_ARENAS, entry_shape
from simengine.state.pair_fields import PAIR_COLUMNS
from tests.stages.units import one_lane_source

FRONT, BACK = 3, 2
"""Numbers of unused worlds before and after the shard."""

ROOM = 1 << 30  # capacity of the arenas that a scan assumes, in contacts and rows

WORLD_SPACES = ("world", "block", "queue")
"""Spaces whose fields have one entry for each world."""

SPARE = 5
"""Number of unused entries at the end of an arena."""

POISON_INT = -1234567891
GUARD_BYTES, GUARD_VALUE = 256, 0xA5


class Pointer(NamedTuple):
    """A pointer argument: a buffer and an offset in bytes."""

    buffer: str
    offset: int = 0


Argument = bytes | int | Pointer | None
"""An argument of a kernel. The type `bytes` is the model's header, which is passed by value."""


class Memory:
    """Buffers of one shard of worlds. They start poisoned: with NaN, or with POISON_INT for integers.

    Only ten_J starts as zeros, because most of its entries stay zero and nobody writes them.

    Attributes:
        model: the model.
        dtype: "float32" or "float64".
        capacity: number of entries of each arena.
        num_worlds: number of worlds of the shard. The first of them has index FRONT in the buffers.
        arrays: fields by name, with unused worlds and arena entries, and the model's blobs.
        header: the model's header.
    """

    def __init__(
        self,
        model: ModelTable,
        dtype: str,
        num_worlds: int,
        contacts: int,
        rows: int,
        islands: Mapping[str, int] | None = None,
    ):
        self.model = model
        self.dtype = dtype
        self.num_worlds = num_worlds
        self.capacity = {"contact": contacts, "row": rows, "jacobian": rows, **(islands or {})}
        self._raw: dict[str, np.ndarray] = {}
        self.arrays: dict[str, np.ndarray] = {}
        for field in FIELDS:
            self.add(field.name, np.empty(self._shape(field), np.int32 if field.kind == "int" else dtype))
        self.poison(FIELD)
        self.arrays["ten_J"].fill(0)
        (self.header,), ints, reals = pack_models([model], dtype)
        self.add("model_ints", ints)
        self.add("model_reals", reals)
        self.add("listed", np.zeros(num_worlds, np.int32))
        self.add("num_listed", np.zeros(1, np.int32))

    def _shape(self, field: Field) -> tuple[int, ...]:
        entry = entry_shape(field, self.model.sizes)
        if field.space in WORLD_SPACES:
            return (FRONT + self.num_worlds + BACK, *entry)
        if field.space in COLUMNS_OF:
            return (len(COLUMNS_OF[field.space]) * self.num_worlds,) if field.space.endswith("column") else entry
        return (self.capacity.get(field.space, 0) + SPARE, *entry)

    def add(self, name: str, values: np.ndarray) -> None:
        """Add a buffer between guard zones with a copy of `values`. Its start is aligned to 64 bytes."""
        room = np.full(values.nbytes + 2 * GUARD_BYTES + 64, GUARD_VALUE, np.uint8)
        start = GUARD_BYTES + -(room.ctypes.data + GUARD_BYTES) % 64
        self._raw[name] = room
        self.arrays[name] = room[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
        self.arrays[name][...] = values

    def poison(self, names: Iterable[str]) -> None:
        """Fill whole buffers with NaN or POISON_INT."""
        for name in names:
            self.arrays[name].fill(POISON_INT if FIELD[name].kind == "int" else np.nan)

    def own(self, name: str) -> np.ndarray:
        """The shard's part of a field: (num_worlds, ...), (contacts, ...), (rows, ...), or the whole field."""
        array, space = self.arrays[name], FIELD[name].space
        if space in WORLD_SPACES:
            return array[FRONT : FRONT + self.num_worlds]
        if space in self.capacity:
            return array[: self.capacity[space]]
        return array

    def set(self, fields: Mapping[str, np.ndarray]) -> None:
        """Write the shard's part of fields, rounded to the memory's precision."""
        for name, values in fields.items():
            self.own(name)[...] = values.reshape(self.own(name).shape)

    def copy(self) -> Memory:
        """A memory with the same contents in other buffers."""
        other = copy(self)
        other._raw, other.arrays, arrays = {}, {}, self.arrays
        for name, array in arrays.items():
            other.add(name, array)
        return other

    def snapshot(self) -> dict[str, np.ndarray]:
        """Copies of the contents of all buffers."""
        return {name: array.copy() for name, array in self.arrays.items()}

    def broken_guards(self) -> list[str]:
        """Buffers whose guard zone was written to."""
        broken = []
        for name, room in self._raw.items():
            array = self.arrays[name]
            start = array.ctypes.data - room.ctypes.data
            zones = (room[:start], room[start + array.nbytes :])
            if any((zone != GUARD_VALUE).any() for zone in zones):
                broken.append(name)
        return broken

    def pointer(self, place: Pointer) -> int:
        """Address of a pointer argument."""
        return int(self.arrays[place.buffer].ctypes.data) + place.offset


def near_list(memory: Memory, name: str) -> np.ndarray:
    """The entries of near_cand or near_adr, two of them a word unless the model has too many."""
    words = memory.own(name)
    return words.view(np.uint16) if memory.model.nnear < memory.model.ncand else words


def changed(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Which words differ in their bits, in the shape of the arrays."""
    word = np.uint64 if before.itemsize == 8 else np.uint32
    return np.asarray(before.view(word) != after.view(word))


def arguments(
    kernel: Kernel,
    memory: Memory,
    listed: bool = False,
    nrow: int = 0,
    scalars: Mapping[str, int] | None = None,
    null: frozenset[str] = frozenset(),
) -> list[Argument]:
    """Arguments of a kernel in launch order.

    Args:
        kernel: the kernel.
        memory: the memory on which it works.
        listed: whether worlds are those in the buffers `listed` and `num_listed`, not the shard's range.
        nrow: bound on the rows of a world, for kernels with rows in scratch.
        scalars: values of the stages' scalars.
        null: outputs that the kernel does not store.
    """
    fields: list[Argument] = [Pointer(n) for n in kernel.reads]
    fields += [None if n in null else Pointer(n) for n in kernel.produced]
    fields += [Pointer(n) for n in kernel.updates]
    if kernel.unit == "column":
        values = {
            "begin": FRONT,
            "shard_size": memory.num_worlds,
            **dict.fromkeys((f"{space}_capacity" for space in (*WORLD_ARENAS, *ISLAND_ARENAS)), ROOM),
            **dict.fromkeys((f"{space}_beyond" for space in ROW_SPACES), 0),
            **(scalars or {}),
        }
        return [*fields, *(values[n] for n in kernel.scalars)]
    head: list[Argument] = [memory.header, Pointer("model_ints"), Pointer("model_reals")]
    head += [Pointer("listed"), Pointer("num_listed")] if listed else [None, None]
    first = FRONT
    if kernel.unit == "slice":
        head[3:], first = [Pointer("slice_record"), Pointer("pair_totals", 4 * PAIR_COLUMNS.index("slices"))], 0
    plan = kernel.plan_scratch(memory.model.sizes, nrow, registers=False)
    values = {"shard_size": memory.num_worlds, "contact_capacity": ROOM, **(scalars or {})}
    tail = [values[n] for n in kernel.scalars]
    tail += [plan.offsets[item.name] for item in kernel.scratch_items]
    fields += [Pointer(n) for n in kernel.addresses]
    fields += [Pointer(n) if memory.model.finds_pairs else None for n in kernel.parameters]
    return [*head, first, memory.num_worlds, None, *fields, *tail, plan.words]


KERNELS = {k.name: k for k in (*all_kernels(), *TILED_KERNELS, *COUNTING_KERNELS, *REST_KERNELS)}
_ALONE = {
    k for k in KERNELS.values() if k.unit not in ("world", "column") or k.tiled_from or k.name.endswith("_pushing")
}
TOGETHER = [k for k in KERNELS.values() if k not in _ALONE]
"""Kernels that one library has. Those over islands, slices and tiles, and for pushing rows, have their own."""


@cache
def function(name: str, dtype: str) -> HostFunction:
    """A kernel of the engine for one lane. The first call compiles it, or all of them, or finds it in the cache."""
    if KERNELS[name] not in TOGETHER:
        return load_kernels([Build(KERNELS[name], 1)], dtype)[0]
    found = getattr(_library(dtype), name)
    found.argtypes, found.restype = [ctypes.c_void_p], None
    return cast(HostFunction, found)


@cache
def _library(dtype: str) -> ctypes.CDLL:
    # more optimisation takes six times as long, and each kernel runs on few worlds
    options = [*defines(dtype, 1), "-Og"]
    return ctypes.CDLL(str(build_library("kernels_of_stages", one_lane_source(TOGETHER), options)))


def call(kernel: Kernel, memory: Memory, slots: list[Argument]) -> None:
    """Call a kernel on the host with arguments in launch order."""
    packed = np.frombuffer(b"".join(slot_bytes(s, memory) for s in slots), dtype=np.uint64)
    function(kernel.name, memory.dtype)(packed.ctypes.data)


def slot_bytes(argument: Argument, memory: Memory) -> bytes:
    """An argument in the form that host kernels take, in words of eight bytes."""
    if isinstance(argument, bytes):
        return argument + bytes(-len(argument) % 8)
    value = memory.pointer(argument) if isinstance(argument, Pointer) else argument or 0
    return value.to_bytes(8, "little", signed=True)


def list_worlds(memory: Memory, worlds: np.ndarray) -> None:
    """Fill the buffers `listed` and `num_listed` with worlds, given by their indices in the shard."""
    memory.arrays["listed"][: len(worlds)] = FRONT + worlds
    memory.arrays["num_listed"][0] = len(worlds)
