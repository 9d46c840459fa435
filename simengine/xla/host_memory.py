"""Memory of custom calls on a CPU, and the programs that run there."""

from __future__ import annotations

import ctypes
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from simengine.backends.host import HostBackend
from simengine.backends.host_program import HostProgram
from simengine.engines.list_engine import ListEngine
from simengine.kernels.host_build import load_runner
from simengine.model.blob import field_offsets
from simengine.model.model_table import ModelTable
from simengine.xla import structures
from simengine.xla.calls import Call, registered
from simengine.xla.invweights import WeightsCall
from simengine.xla.invweights_memory import HostWeights
from simengine.xla.library import GROW, MAKE, answer, handlers, when_gone

_indices = count()
_memories: WeakKeyDictionary[Any, dict[int, Any]] = WeakKeyDictionary()


class HostMemory:
    """The engine's memory behind a custom call on a CPU, and the programs of every shard.

    Several calls of a kind may run at the same time. Each then has a memory of its own.

    Attributes:
        structure: what the handler reads.
    """

    def __init__(self, call: Call, index: int):
        backend = HostBackend()
        shards = backend.shards_for(call.num_worlds, "threads", "whole")
        self.engine = ListEngine([(call.model, call.num_worlds)], backend, "serial", call.dtype, shards, "whole", {})
        call.make_room(self.engine.stores[0])
        inputs = [_field(self.engine.stores[0].array(name)) for name in call.inputs]
        if call.params:
            table = self.engine.parameter_table(0, "dof_damping" in call.params)
            offsets = field_offsets(self.engine.stores[0].model)
            inputs += [_field(table, *offsets[name]) for name in call.params]
        self._programs = self._of_shards(call)
        # fields of results are allocated with the programs that write them
        outputs = [_field(self.engine.get(0, name)) for name in (*call.outputs, *call.keep)]
        self._shards = [structures.array_of(structures.Program, row) for row in self._structures(call)]
        store = self.engine.stores[0]
        cleared = [_field(array.reshape(1, -1)) for array in store.counters()] if call.chooses else []
        chosen = [array.ctypes.data for array in store.chosen_worlds()] if call.chooses else [None, None]
        rows = [
            structures.Shard(row, len(row), emitter.shard.begin, emitter.shard.end)
            for row, emitter in zip(self._shards, self.engine.emitters[0], strict=True)
        ]
        self._arrays = (
            structures.array_of(structures.Field, inputs),
            structures.array_of(structures.Field, outputs),
            structures.array_of(structures.Shard, rows),
            structures.array_of(structures.Field, cleared),
        )
        self.structure = structures.HostMemory(
            *(self._arrays[0], len(inputs), self._arrays[1], len(outputs)),
            *(self._arrays[2], len(self._shards), index, self._arrays[3], len(cleared), *chosen),
        )

    def _of_shards(self, call: Call) -> list[list[tuple[HostProgram, int]]]:
        """The programs of every shard, each with the number of its repeats."""
        keep, emitters = frozenset(call.keep), self.engine.emitters[0]
        if not call.steps:
            return [[(emitter.evaluation_program(keep).program, 1)] for emitter in emitters]
        rows = []
        for emitter in emitters:
            first, last = emitter.whole_step(frozenset()).program, emitter.whole_step(keep).program
            rows.append([(first, call.steps - 1), (last, 1)] if keep else [(first, call.steps)])
        return rows

    def _structures(self, call: Call) -> list[list[structures.Program]]:
        runner = ctypes.cast(load_runner(), ctypes.c_void_p).value  # type: ignore[arg-type]
        return [
            [structures.Program(*program.packed(), repeats, runner) for program, repeats in row]
            for row in self._programs
        ]

    def grow(self, shard: int, program: int, at: int) -> None:
        """Grow the arena of a shard whose check failed in a program, and tell the handler the new addresses."""
        self._programs[shard][program][0].grow(at)
        for row, (own, _) in zip(self._shards[shard], self._programs[shard], strict=True):
            row.ops, row.number, row.over = own.packed()
        self.engine.stores[0].retired.clear()


def _field(array: Any, first: int = 0, number: int | None = None) -> structures.Field:
    """An array, or the columns of a table from `first` on, `number` of them."""
    row = array[0].nbytes
    size = row if number is None else number * array.itemsize
    return structures.Field(array.ctypes.data + first * array.itemsize, len(array), size, row)


def prepare(call: Call | WeightsCall) -> None:
    """Make the memory of a call in advance, so that its first run need not."""
    library = load(call.model)
    memory = _new(call)
    library.simengine_add(ctypes.c_int64(call.number), ctypes.byref(memory.structure))


def load(table: ModelTable) -> Any:
    """The handler's library, which knows the functions that make and grow memory. Every model can run on a CPU."""
    library = handlers("cpu")
    library.simengine_set_callbacks(_MAKE, _GROW)
    return library


def time_of_steps() -> float:
    """Time that all steps inside JAX programs on a CPU have taken in this process [s], on the wall's clock.

    Raises:
        AttributeError: there is no C++ compiler, and so no clock in the handler.
    """
    function = handlers("cpu").simengine_time_of_steps
    function.restype = ctypes.c_int64
    return float(function()) * 1e-9


def _new(call: Call | WeightsCall) -> HostMemory | HostWeights:
    index = next(_indices)
    if call not in _memories:
        _memories[call] = {}
        when_gone(call, _forget, call.number, _memories[call])
    made = HostWeights(call, index) if isinstance(call, WeightsCall) else HostMemory(call, index)
    _memories[call][index] = made
    return made


def _forget(number: int, memories: dict[int, Any]) -> None:
    """Make the handler forget the memories of a call that is gone, once no program uses them. It keeps them until then.

    The interpreter's lock is released meanwhile, since a program that runs may have to grow an arena.
    """
    handlers("cpu").simengine_forget(ctypes.c_int64(number))
    memories.clear()


def _make(number: int, why: int, room: int) -> int:
    return answer(why, room, lambda: ctypes.addressof(_new(registered(number)).structure), 0)


def _grow(number: int, index: int, shard: int, program: int, at: int, why: int, room: int) -> int:
    def work() -> int:
        _memories[registered(number)][index].grow(shard, program, at)
        return 0

    return answer(why, room, work, 1)


_MAKE: Any = MAKE(_make)
_GROW: Any = GROW(_grow)
