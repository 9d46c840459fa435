"""Compile kernels, launch them with arguments packed once, and time them on the device and on the host.

NVRTC is called directly: that needs no CUDA headers, and compiling needs no GPU.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np
from cupy.cuda import driver, nvrtc, runtime

KERNELS = Path(__file__).parent / "kernels"
MULTIPROCESSORS = 132


@dataclass(frozen=True)
class Source:
    """One compilation: files joined in order, and the kernels (template instances) wanted from it."""

    files: tuple[str, ...]
    kernels: tuple[str, ...]
    defines: tuple[str, ...] = ()

    def compile(self, arch: str) -> tuple[bytes, dict[str, str]]:
        """Machine code for ``sm_<arch>``, and each kernel's name in it. Raises RuntimeError with the compiler's log."""
        text = "\n".join(f'#line 1 "{name}"\n' + (KERNELS / name).read_text() for name in self.files)
        program = nvrtc.createProgram(text, self.files[-1], (), ())
        try:
            for name in self.kernels:
                nvrtc.addNameExpression(program, name)
            options = (f"--gpu-architecture=sm_{arch}", "--fmad=false", "-std=c++17", *self.defines)
            try:
                nvrtc.compileProgram(program, options)
            except nvrtc.NVRTCError as error:
                raise RuntimeError(f"NVRTC refused {self.files}: {nvrtc.getProgramLog(program)}") from error
            return nvrtc.getCUBIN(program), {name: nvrtc.getLoweredName(program, name) for name in self.kernels}
        finally:
            nvrtc.destroyProgram(program)

    def load(self) -> dict[str, int]:
        """Function handle of each kernel on the current device."""
        cp.zeros(1)  # makes the device's context current
        cubin, names = self.compile(cp.cuda.Device().compute_capability)
        module = driver.moduleLoadData(cubin)
        return {name: driver.moduleGetFunction(module, lowered) for name, lowered in names.items()}


@dataclass
class Launch:
    """One kernel launch whose arguments (device arrays, None, ints, ctypes values) are packed once."""

    function: int
    grid: int
    block: int | tuple[int, int]
    arguments: Sequence[Any]
    shared: int = 0
    packed: int = field(init=False)

    def __post_init__(self) -> None:
        self._values = [_as_ctypes(a) for a in self.arguments]
        self._pointers = (ctypes.c_void_p * len(self._values))(*[ctypes.addressof(v) for v in self._values])
        self.packed = ctypes.addressof(self._pointers)
        self._block = self.block if isinstance(self.block, tuple) else (self.block, 1)
        if self.shared > 48 * 1024:
            driver.funcSetAttribute(self.function, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, self.shared)

    def __call__(self, stream: int) -> None:
        """Issue on the stream with this handle."""
        x, y = self._block
        driver.launchKernel(self.function, self.grid, 1, 1, x, y, 1, self.shared, stream, self.packed, 0)


def poison(array: cp.ndarray) -> None:
    """Fill a float32 array with NaN."""
    array.data.memset(0xFF, array.nbytes)


def _as_ctypes(value: Any) -> Any:
    if value is None:
        return ctypes.c_void_p(0)
    if isinstance(value, cp.ndarray):
        return ctypes.c_void_p(value.data.ptr)
    if isinstance(value, int):
        return ctypes.c_int(value)
    return value


def device_us(launches: Sequence[Launch], inner: int = 20, repeats: int = 15) -> float:
    """Median device time [us] of the launches in a chain, from events around a graph of ``inner`` copies of the chain.

    The graph keeps Python's issue cost out; about 0.7 us a launch of it remains.
    """

    def issue(stream: cp.cuda.Stream) -> None:
        for _ in range(inner):
            for launch in launches:
                launch(stream.ptr)

    return graph_us(issue, repeats) / inner


def graph_us(issue: Callable[[cp.cuda.Stream], None], repeats: int = 15) -> float:
    """Median device time [us] of a graph captured from ``issue(stream)``."""
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        try:
            issue(stream)
        finally:
            graph = stream.end_capture()
    runtime.deviceSynchronize()  # uploads ran on another stream
    begin, end = cp.cuda.Event(), cp.cuda.Event()
    times = []
    for repeat in range(repeats + 3):
        begin.record(stream)
        graph.launch(stream=stream)
        end.record(stream)
        end.synchronize()
        if repeat >= 3:
            times.append(1e3 * cp.cuda.get_elapsed_time(begin, end))
    return statistics.median(times)


def host_us(call: Callable[[], None], inner: int = 200, repeats: int = 15) -> float:
    """Median host time [us] of one ``call``, over runs of ``inner`` calls that each start on an idle device."""
    times = []
    for repeat in range(repeats + 2):
        runtime.deviceSynchronize()
        start = time.perf_counter_ns()
        for _ in range(inner):
            call()
        if repeat >= 2:
            times.append(1e-3 * (time.perf_counter_ns() - start) / inner)
    runtime.deviceSynchronize()
    return statistics.median(times)


class PinnedInts:
    """Page-locked, mapped host memory seen by host (``view``) and device (``pointer``) alike."""

    def __init__(self, count: int) -> None:
        self._address = runtime.hostAlloc(4 * count, runtime.hostAllocMapped | runtime.hostAllocPortable)
        self.view = np.ctypeslib.as_array((ctypes.c_int32 * count).from_address(self._address))
        self.view[:] = 0

    def pointer(self, index: int = 0) -> ctypes.c_void_p:
        """Device address of entry ``index``; with unified addressing it equals the host's."""
        return ctypes.c_void_p(self._address + 4 * index)


def block_threads(threads: int, largest: int = 128) -> int:
    """Threads a block: one warp while that leaves multiprocessors free, else ``largest``."""
    return 32 if threads <= MULTIPROCESSORS * 4 * 32 else largest


def blocks(threads: int, block: int) -> int:
    """Blocks that cover ``threads``."""
    return -(-threads // block)
