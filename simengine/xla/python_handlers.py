"""Handlers of custom calls in Python, for machines without a C++ compiler.

They do what those of `handler_host.cpp` and `handler_cuda.cpp` do, and have the same functions. A call takes a tenth of
a millisecond more on the host. On a GPU work is issued ahead, so that longer steps hide this.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict
from contextlib import suppress
from functools import cache
from threading import Condition, RLock
from typing import Any

import jax
import numpy as np

from simengine.xla import structures
from simengine.xla.call_frame import CallFrame, handler

_ROOM = 512  # bytes of the text of an error
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


def _asked(function: Any, *arguments: int) -> int:
    """What a function answers that takes room for the text of an error. Raises RuntimeError with that text."""
    text = ctypes.create_string_buffer(_ROOM)
    found = function(*arguments, ctypes.addressof(text), _ROOM)
    if text.value:
        raise RuntimeError(text.value.decode())
    return int(found)


def _address(structure: Any) -> int:
    return ctypes.cast(structure, ctypes.c_void_p).value or 0


class HostHandlers:
    """The functions of `handler_host.cpp`. Shards run one after another."""

    def __init__(self) -> None:
        self._make: Any = None
        self._grow: Any = None
        self._idle: dict[int, list[int]] = defaultdict(list)
        self._running: dict[int, int] = defaultdict(int)
        self._changed = Condition()
        self._closed = False
        self.simengine_step = handler(self._step)

    def simengine_set_callbacks(self, make: Any, grow: Any) -> None:
        """Take the functions that make memory of a kind, and that grow an arena."""
        self._make, self._grow = make, grow

    def simengine_add(self, kind: Any, memory: Any) -> None:
        """Add a memory of a kind that was made in advance."""
        with self._changed:
            self._idle[kind.value].append(_address(memory))

    def simengine_forget(self, kind: Any) -> None:
        """Forget the memories of a kind once no call uses them."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running[kind.value])
            self._idle.pop(kind.value, None)

    def simengine_close(self) -> None:
        """Let later calls fail, before Python's interpreter ends, and wait for programs that may make some."""
        self._closed = True
        _await_arrays()

    def _step(self, frame: CallFrame) -> None:
        _check_open(self._closed)
        with self._changed:
            self._running[frame.kind] += 1
            idle = self._idle[frame.kind]
            address = idle.pop() if idle else 0
        try:
            address = address or _asked(self._make, frame.kind)
            self._run(structures.HostMemory.from_address(address), frame)
        finally:
            with self._changed:
                self._running[frame.kind] -= 1
                if address:
                    self._idle[frame.kind].append(address)
                self._changed.notify_all()

    def _run(self, memory: structures.HostMemory, frame: CallFrame) -> None:
        for field, (data, size) in zip(memory.inputs[: memory.num_inputs], frame.arguments, strict=False):
            _check_size(field, size)
            _rows(field.data, field)[...] = _rows(data, field, packed=True)
        for field in memory.cleared[: memory.num_cleared]:
            _rows(field.data, field)[...] = 0
        if memory.chosen:
            self._choose(memory, frame.arguments[memory.num_inputs][0])
        for number, shard in enumerate(memory.shards[: memory.num_shards]):
            for place in range(shard.number):
                self._run_program(memory, frame.kind, number, place, shard.programs)
        for field, (data, _) in zip(memory.outputs[: memory.num_outputs], frame.results, strict=True):
            _rows(data, field, packed=True)[...] = _rows(field.data, field)

    def _run_program(self, memory: Any, kind: int, shard: int, place: int, programs: Any) -> None:
        run = _RUN(programs[place].run)
        for _ in range(programs[place].repeats):
            at = 0
            while True:
                program = programs[place]  # whose addresses change when an arena grows
                at = run(program.ops, program.number, at, program.over)
                if at >= program.number:
                    break
                _asked(self._grow, kind, memory.index, shard, place, at)

    def _choose(self, memory: structures.HostMemory, mask: int) -> None:
        """List the worlds of a mask, shard by shard."""
        for number, shard in enumerate(memory.shards[: memory.num_shards]):
            flags = (ctypes.c_int32 * (shard.end - shard.begin)).from_address(mask + 4 * shard.begin)
            worlds = shard.begin + np.flatnonzero(np.asarray(flags)).astype(np.int32)
            ctypes.memmove(memory.chosen + 4 * shard.begin, worlds.ctypes.data, worlds.nbytes)
            ctypes.c_int32.from_address(memory.num_chosen + 4 * number).value = len(worlds)


def _check_open(closed: bool) -> None:
    if closed:
        raise RuntimeError("simengine makes no more steps, because Python is ending")


def _await_arrays() -> None:
    """Wait for every array that some program still computes.

    A thread that calls a handler in Python after the interpreter's end would never come back.
    """
    for array in jax.live_arrays():
        with suppress(RuntimeError):  # its program failed, or the array is deleted
            array.block_until_ready()


def _check_size(field: structures.Field, size: int) -> None:
    if field.rows * field.bytes != size:
        raise ValueError("an argument of simengine's step has another size than it was traced with")


def _rows(data: int, field: structures.Field, packed: bool = False) -> np.ndarray:
    """The bytes of an array like a field, (rows, bytes), with or without gaps between the rows."""
    stride = field.bytes if packed else field.stride
    flat = np.asarray((ctypes.c_uint8 * ((field.rows - 1) * stride + field.bytes)).from_address(data))
    return np.lib.stride_tricks.as_strided(flat, (field.rows, field.bytes), (stride, 1))


class CudaHandlers:
    """The functions of `handler_cuda.cpp`."""

    def __init__(self) -> None:
        self._make: Any = None
        self._known: dict[tuple[int, int], int] = {}
        self._closed = False
        self._issuing = RLock()  # launches of two calls must not interleave
        self.simengine_step = handler(self._step)

    def simengine_set_callbacks(self, make: Any) -> None:
        """Take the function that makes memory of a kind on a device."""
        self._make = make

    def simengine_add(self, kind: Any, device: Any, memory: Any) -> None:
        """Add a memory of a kind on a device."""
        self._known[kind.value, device.value] = _address(memory)

    def simengine_forget(self, kind: Any) -> None:
        """Forget the memories of a kind."""
        with self._issuing:
            for key in [key for key in self._known if key[0] == kind.value]:
                del self._known[key]

    def simengine_close(self) -> None:
        """Let later calls fail, before Python's interpreter ends, and wait for programs that may make some."""
        self._closed = True
        _await_arrays()

    def simengine_most_items(self) -> int:
        """The number of arrays that a launch copies."""
        return structures.MOST_ITEMS

    def _step(self, frame: CallFrame) -> None:
        _check_open(self._closed)
        stream, device = frame.stream(), frame.device()
        with self._issuing:
            address = self._known.get((frame.kind, device)) or _asked(self._make, frame.kind, device)
            self._issue(structures.CudaMemory.from_address(address), frame, stream)

    def _issue(self, memory: structures.CudaMemory, frame: CallFrame, stream: int) -> None:
        driver = cuda_driver()
        inputs, cleared = memory.inputs[: memory.num_inputs], memory.cleared[: memory.num_cleared]
        into = (structures.Item * structures.MOST_ITEMS)()
        for item, field, (data, size) in zip(into, inputs, frame.arguments, strict=False):
            _check_size(field, size)
            _fill(item, field, data, field.data, (field.bytes, field.stride, 0))
        for number, field in enumerate(cleared, len(inputs)):
            _fill(into[number], field, None, field.data, (field.bytes, field.bytes, 0))
        out = (structures.Item * structures.MOST_ITEMS)()
        for number, field in enumerate(memory.outputs[: memory.num_outputs]):
            same = memory.fallback[number]
            _fill(out[number], field, field.data, frame.results[number][0], (field.stride, field.bytes, field.bytes))
            out[number].instead = None if same < 0 else into[same].source
        _check(driver.cuStreamWaitEvent(stream, memory.event, 0), "waits for its latest step")
        _launch(driver, memory.gather, into, len(inputs) + len(cleared), memory, stream)
        if memory.chosen:
            mask = ctypes.c_void_p(frame.arguments[memory.num_inputs][0])
            lists = ctypes.c_void_p(memory.chosen), ctypes.c_void_p(memory.num_chosen)
            _kernel(driver, memory.choose, (1, 1), 1024, stream, mask, ctypes.c_int32(memory.num_worlds), *lists)
        for graph in memory.graphs[: memory.num_graphs]:
            for _ in range(graph.repeats):
                _check(driver.cuGraphLaunch(graph.handle, stream), "launches a graph")
        _launch(driver, memory.scatter, out, memory.num_outputs, memory, stream)
        _check(driver.cuEventRecord(memory.event, stream), "records an event")


@cache
def cuda_driver() -> Any:
    """CUDA's driver."""
    driver = ctypes.CDLL("libcuda.so.1")
    pointer, number = ctypes.c_void_p, ctypes.c_uint
    driver.cuStreamWaitEvent.argtypes = [pointer, pointer, number]
    driver.cuEventRecord.argtypes = [pointer, pointer]
    driver.cuGraphLaunch.argtypes = [pointer, pointer]
    driver.cuLaunchKernel.argtypes = [pointer, *[number] * 7, pointer, pointer, pointer]
    return driver


def _fill(item: structures.Item, field: Any, source: int | None, to: int, strides: tuple[int, int, int]) -> None:
    """Fill an item with addresses and strides [bytes]: of the source, the target, and what is taken instead."""
    item.source, item.to, item.rows, item.words = source, to, field.rows, field.bytes // 4
    item.from_stride, item.to_stride, item.instead_stride = (stride // 4 for stride in strides)


def _launch(driver: Any, kernel: int, items: Any, number: int, memory: structures.CudaMemory, stream: int) -> None:
    """Launch a kernel that copies items."""
    most = max([1, *(item.rows * item.words for item in items[:number])])
    grid = min(256, -(-most // 256)), max(1, number)
    progress = ctypes.c_void_p(memory.progress), ctypes.c_int32(memory.progress_words)
    _kernel(driver, kernel, grid, 256, stream, items, *progress)


def _kernel(driver: Any, kernel: int, grid: tuple[int, int], threads: int, stream: int, *arguments: Any) -> None:
    parameters = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
    code = driver.cuLaunchKernel(kernel, *grid, 1, threads, 1, 1, 0, stream, parameters, None)
    _check(code, "copies a state or lists worlds")


def _check(code: int, what: str) -> None:
    if code:
        raise RuntimeError(f"CUDA reports error {code} while simengine {what}")


@cache
def python_handlers(platform: str) -> Any:
    """The handlers of a platform, "cpu" or "CUDA"."""
    return CudaHandlers() if platform == "CUDA" else HostHandlers()
