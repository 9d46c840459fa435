"""Memory of the custom call of `invweights`, on a CPU and on a GPU, as their handlers know it."""

from __future__ import annotations

import ctypes
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from simengine.backends.host import HostBackend
from simengine.kernels.host_build import build_library, defines
from simengine.state.fields import PROGRESS
from simengine.xla import structures
from simengine.xla.invweights import WeightsCall

_THREADS, _BLOCKS = 128, 256
_SOURCE = Path(__file__).parent / "invweights.cu"


class HostWeights:
    """Memory of the call on a CPU, and a program of each shard.

    Attributes:
        structure: what the handler reads.
    """

    def __init__(self, call: WeightsCall, index: int):
        count = call.num_worlds
        shards = HostBackend().shards_for(count, "threads", "whole")
        bounds = [count * s // shards for s in range(shards + 1)]
        arrays = call.constants | {name: _zeros(call, name) for name in (*call.inputs, *call.outputs)}
        chosen, number = np.zeros(count, np.int32), np.zeros(shards, np.int32)
        run = ctypes.cast(_host_function(call.dtype), ctypes.c_void_p).value
        self._kept: list[Any] = [arrays, chosen, number]
        rows = []
        for shard, (begin, end) in enumerate(pairwise(bounds)):
            own = {"chosen": chosen[begin:], "num_chosen": number[shard:], "scratch": np.zeros(call.room)}
            work = call.work(lambda array: array.ctypes.data, arrays | own)
            program = structures.Program(ctypes.addressof(work), 1, None, 1, run)
            programs = structures.array_of(structures.Program, [program])
            rows.append(structures.Shard(programs, 1, begin, end))
            self._kept += [own, work, programs]
        inputs, outputs = (
            structures.array_of(structures.Field, [_field(arrays[name], arrays[name].ctypes.data) for name in names])
            for names in (call.inputs, call.outputs)
        )
        listed, cleared = structures.array_of(structures.Shard, rows), structures.array_of(structures.Field, [])
        self._kept += [inputs, outputs, listed, cleared]
        self.structure = structures.HostMemory(
            *(inputs, len(call.inputs), outputs, len(call.outputs), listed, shards, index),
            *(cleared, 0, chosen.ctypes.data, number.ctypes.data),
        )


@cache
def _host_function(dtype: str) -> Any:
    library = ctypes.CDLL(str(build_library("invweights", _SOURCE.read_text(), defines(dtype, 1))))
    return library.invweights


def _zeros(call: WeightsCall, name: str) -> np.ndarray:
    entry, dtype = call.entry(name)
    return np.zeros((call.num_worlds, *entry), dtype)


def _field(array: Any, address: int) -> structures.Field:
    row = array[0].nbytes
    return structures.Field(address, len(array), row, row)


class CudaWeights:
    """Memory of the call on the current GPU, and the graph of its kernel.

    Attributes:
        structure: what the handler reads.
    """

    def __init__(self, call: WeightsCall, copies: Any):
        """Args: call; copies: a function that gives the handle of a kernel of `copies.cu` by name."""
        import cupy

        from simengine_scheduler import CudaLaunch
        from simengine_scheduler.cuda import graph

        self._graph = graph
        arrays = {name: cupy.asarray(array) for name, array in call.constants.items()}
        arrays |= {name: cupy.asarray(_zeros(call, name)) for name in (*call.inputs, *call.outputs)}
        blocks = min(_BLOCKS, call.num_worlds)
        chosen, number = cupy.zeros(call.num_worlds, "int32"), cupy.zeros(1, "int32")
        own = {"chosen": chosen, "num_chosen": number, "scratch": cupy.zeros((blocks, call.room))}
        work = bytes(call.work(lambda array: array.data.ptr, arrays | own))
        kernel = _cuda_module(call.dtype).get_function("invweights")
        launch = CudaLaunch.from_kernel(kernel, (blocks,), (_THREADS,), (work,))
        self._handle = graph.build([launch], [()])
        self._event = cupy.cuda.Event(disable_timing=True)
        self._event.record(cupy.cuda.Stream(non_blocking=True))
        inputs, outputs = (
            structures.array_of(structures.Field, [_field(arrays[name], arrays[name].data.ptr) for name in names])
            for names in (call.inputs, call.outputs)
        )
        graphs = structures.array_of(structures.Graph, [structures.Graph(self._handle, 1)])
        fallback = (ctypes.c_int64 * len(call.outputs))(*[-1] * len(call.outputs))
        cleared, progress = structures.array_of(structures.Field, []), cupy.zeros(len(PROGRESS), "int32")
        self._kept = [arrays, own, launch, inputs, outputs, graphs, fallback, cleared, progress]
        self.structure = structures.CudaMemory(
            *(inputs, len(call.inputs), outputs, len(call.outputs), graphs, 1, copies("gather"), copies("scatter")),
            *(progress.data.ptr, len(PROGRESS), self._event.ptr, fallback, cleared, 0),
            *(copies("choose"), chosen.data.ptr, number.data.ptr, call.num_worlds),
        )
        cupy.cuda.Device().synchronize()

    def close(self) -> None:
        """Destroy the graph, once no work uses it."""
        import cupy

        cupy.cuda.Device().synchronize()
        self._graph.destroy(self._handle)


@cache
def _cuda_module(dtype: str) -> Any:
    import cupy

    return cupy.RawModule(code=_SOURCE.read_text(), options=tuple(defines(dtype, 32)))
