"""Memory of custom calls on a GPU, and the graphs that run there."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import jax

from simengine.backends.cuda import CudaBackend
from simengine.engines.list_engine import ListEngine
from simengine.errors import BackendError
from simengine.model.blob import field_offsets
from simengine.model.model_table import ModelTable
from simengine.plan.capacity import first_entries
from simengine.state.fields import PROGRESS, WORLD_ARENAS
from simengine.xla import structures
from simengine.xla.calls import Call, registered
from simengine.xla.invweights import WeightsCall
from simengine.xla.invweights_memory import CudaWeights
from simengine.xla.library import MAKE_ON, answer, handlers, when_gone
from simengine_scheduler import KernelCall
from simengine_scheduler.core.dependencies import dependencies
from simengine_scheduler.cuda import graph

COPIES_OPTIONS = (f"-DPROGRESS_WORDS={len(PROGRESS)}", f"-DARENA_FLAGS={len(WORLD_ARENAS)}")
"""What the source of copies is compiled with."""

_MOST_NODES = 512  # of a graph that makes several steps; a larger one takes long to build

_memories: WeakKeyDictionary[Any, dict[int, Any]] = WeakKeyDictionary()
_being_made: dict[tuple[int, int], Future[Any]] = {}
"""Memories that a thread makes at the moment, by the numbers of the call and of the GPU."""
_lock = Lock()  # of the two above


class CudaMemory:
    """The engine's memory behind a custom call on a GPU, and the graphs of its steps.

    Attributes:
        structure: what the handler reads.
    """

    def __init__(self, call: Call, device: int):
        import cupy

        with cupy.cuda.Device(device):
            self._fill(call)

    def _fill(self, call: Call) -> None:
        import cupy

        groups = [(call.model, call.num_worlds)]
        self.engine = ListEngine(groups, _InGraphs(), "graph-cached", call.dtype, 1, "whole", {})
        store = self.engine.stores[0]
        for space in WORLD_ARENAS:  # no arena can grow while a program runs
            store.arena(space, 0).reserve(first_entries(call.model, space, call.num_worlds, True))
        call.make_room(store)
        inputs = [_field(store.array(name)) for name in call.inputs]
        if call.params:
            table, offsets = self.engine.parameter_table(0, "dof_damping" in call.params), field_offsets(store.model)
            inputs += [_field(table, *offsets[name]) for name in call.params]
        self._graphs = self._build(call)
        # fields of results are allocated with the calls that write them
        outputs = [_field(store.array(name)) for name in (*call.outputs, *call.keep)]
        cleared = [_field(array.reshape(1, -1)) for array in store.counters()] if call.chooses else []
        chosen = [array.data.ptr for array in store.chosen_worlds()] if call.chooses else [None, None]
        _check_number(call, max(len(inputs) + len(cleared), len(outputs)))
        names = [*call.inputs, *call.params]
        fallback = [names.index(name) if name in names else -1 for name in (*call.outputs, *call.keep)]
        progress = store.array("progress")
        self._event = cupy.cuda.Event(disable_timing=True)
        self._event.record(cupy.cuda.Stream(non_blocking=True))
        self._functions = [_module().get_function(name).kernel for name in ("gather", "scatter", "choose")]
        self._arrays = (
            structures.array_of(structures.Field, inputs),
            structures.array_of(structures.Field, outputs),
            structures.array_of(structures.Graph, [structures.Graph(*entry) for entry in self._graphs]),
            (ctypes.c_int64 * max(1, len(fallback)))(*fallback),
            structures.array_of(structures.Field, cleared),
        )
        self.structure = structures.CudaMemory(
            *(self._arrays[0], len(inputs), self._arrays[1], len(outputs)),
            *(self._arrays[2], len(self._graphs), *(function.ptr for function in self._functions[:2])),
            *(progress.data.ptr, int(progress.size), self._event.ptr, self._arrays[3]),
            *(self._arrays[4], len(cleared), self._functions[2].ptr, *chosen, call.num_worlds),
        )
        cupy.cuda.Device().synchronize()

    def _build(self, call: Call) -> list[tuple[int, int]]:
        """Handles of graphs, each with the number of its repeats."""
        (emitter,) = self.engine.emitters[0]
        keep = frozenset(call.keep)
        if not call.steps:
            return [(self._graph(emitter.evaluation_ahead(keep)), 1)]
        calls = emitter.ahead(keep, call.steps, whole=True)
        if len(calls) <= _MOST_NODES:
            return [(self._graph(calls), 1)]
        repeated = call.steps - bool(keep)
        graphs = [(self._graph(emitter.ahead(frozenset(), 1, whole=True)), repeated)]
        return [*graphs, (self._graph(emitter.ahead(keep, 1, whole=True)), 1)] if keep else graphs

    def _graph(self, calls: Sequence[KernelCall]) -> int:
        waits = dependencies(calls, self.engine.segments.conflicts)
        return graph.build([call.launch for call in calls], waits)

    def close(self) -> None:
        """Destroy the graphs, once no work uses them: XLA's streams, too, are behind the device."""
        self.engine.backend.drain()
        for handle, _ in self._graphs:
            graph.destroy(handle)
        self.engine.close()


class _InGraphs(CudaBackend):
    """The CUDA backend for steps in graphs, which cannot wait for counts."""

    def form_of(self, model: ModelTable, dtype: str) -> ModelTable:
        """The model as it is, also where it would take less time by islands."""
        return model


@cache
def _module() -> Any:
    """The kernels that copy, in the cache of kernels of CuPy."""
    import cupy

    code = (Path(__file__).parent / "copies.cu").read_text()
    return cupy.RawModule(code=code, options=COPIES_OPTIONS)


def _field(array: Any, first: int = 0, number: int | None = None) -> structures.Field:
    """An array, or the columns of a table from `first` on, `number` of them."""
    row = int(array.strides[0]) if len(array) > 1 else int(array.nbytes)
    size = row if number is None else number * array.itemsize
    return structures.Field(array.data.ptr + first * array.itemsize, len(array), size, row)


def _check_number(call: Call, number: int) -> None:
    most = handlers("CUDA").simengine_most_items()
    if number > most:
        raise BackendError(
            f"a step of model {call.model.name!r} takes and gives {number} arrays, but a call on a GPU copies at most "
            f"{most}; keep fewer fields or set fewer parameters"
        )


def load(table: ModelTable) -> Any:
    """The handler's library, which knows the function that makes memory.

    Raises:
        BackendError: the model is solved by islands or has its pairs found, or a part that is needed is missing.
    """
    if table.has_islands or table.finds_pairs:
        what = "is solved island by island" if table.has_islands else "finds the pairs that may touch in every step"
        raise BackendError(
            f"model {table.name!r} {what}, which is not supported inside a JAX program on a GPU; "
            "use simengine.Simulation, or backend='host'"
        )
    library = handlers("CUDA")
    library.simengine_set_callbacks(_MAKE)
    return library


def prepare(call: Call | WeightsCall) -> None:
    """Make the memory of a call in advance on this process' first GPU, or on those of the mesh of `jax.shard_map`.

    Memory that is made while a program runs waits for its GPU. In a program of several GPUs that may be waiting for
    another one, which in turn waits for the memory.
    """
    number = max(1, jax.sharding.get_abstract_mesh().size)
    for gpu in jax.local_devices(backend="gpu")[:number]:
        device = gpu.local_hardware_id or 0
        # The thread that makes it tells errors, and a program that runs before waits for it.
        if number > 1 or (call.number, device) not in _being_made:
            _memory(call, device)


def _memory(call: Call | WeightsCall, device: int) -> CudaMemory | CudaWeights:
    """The memory of a call on a GPU. It is made here, unless it is there or another thread makes it."""
    key = call.number, device
    with _lock:
        if call not in _memories:
            _memories[call] = {}
            when_gone(call, _forget, call.number, _memories[call])
        if device in _memories[call]:
            return _memories[call][device]
        others = _being_made.get(key)
        own: Future[Any] = _being_made.setdefault(key, Future())
    if others is not None:
        return others.result()
    try:
        memory = _made(call, device)
        address = ctypes.c_void_p(ctypes.addressof(memory.structure))
        load(call.model).simengine_add(ctypes.c_int64(call.number), ctypes.c_int64(device), address)
        with _lock:
            _memories[call][device] = memory
        own.set_result(memory)
        return memory
    except BaseException as error:
        own.set_exception(error)
        raise
    finally:
        with _lock:
            del _being_made[key]


def _made(call: Call | WeightsCall, device: int) -> CudaMemory | CudaWeights:
    if not isinstance(call, WeightsCall):
        return CudaMemory(call, device)
    import cupy

    with cupy.cuda.Device(device):
        return CudaWeights(call, lambda name: _module().get_function(name).kernel.ptr)


def _forget(number: int, memories: dict[int, Any]) -> None:
    """Make the handler forget the memories of a call that is gone, and release them."""
    import cupy

    handlers("CUDA").simengine_forget(ctypes.c_int64(number))
    for device, memory in memories.items():
        with cupy.cuda.Device(device):
            memory.close()
    memories.clear()


def _make(number: int, device: int, why: int, room: int) -> int:
    def work() -> int:
        return ctypes.addressof(_memory(registered(number), device).structure)

    return answer(why, room, work, 0)


_MAKE: Any = MAKE_ON(_make)
