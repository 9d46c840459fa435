"""Experiment 7: host cost of issuing a kernel by several routes, and of events."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy as cp
from cupy.cuda import driver, runtime

from . import readback
from .harness import Launch, host_us

ARGUMENTS = (1, 8, 24)
BATCH = 100
LOOP_SOURCE = """
typedef unsigned u;
typedef int (*launch_t)(void*, u, u, u, u, u, u, u, void*, void**, void**);
struct call { void* function; void** parameters; };
int issue(launch_t launch, const struct call* calls, int n, void* stream) {
    for (int i = 0; i < n; ++i) {
        int status = launch(calls[i].function, 1, 1, 1, 32, 1, 1, 0, stream, calls[i].parameters, 0);
        if (status) return status;
    }
    return 0;
}
"""


class _Call(ctypes.Structure):
    _fields_ = [("function", ctypes.c_void_p), ("parameters", ctypes.c_void_p)]


def _cu_launch_kernel() -> Any:
    function = ctypes.CDLL("libcuda.so.1").cuLaunchKernel
    function.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
    return function


def _through_launch(launch: Launch, stream: int) -> float:
    return host_us(lambda: launch(stream))


def _through_driver(launch: Launch, stream: int) -> float:
    arguments = (launch.function, 1, 1, 1, 32, 1, 1, 0, stream, launch.packed, 0)
    call = driver.launchKernel
    return host_us(lambda: call(*arguments))


def _through_ctypes(launch: Launch, stream: int) -> float:
    call = _cu_launch_kernel()
    numbers = [ctypes.c_uint(n) for n in (1, 1, 1, 32, 1, 1, 0)]
    pointers = [ctypes.c_void_p(p) for p in (launch.function, stream, launch.packed, 0)]
    arguments = (pointers[0], *numbers, *pointers[1:])
    if call(*arguments):
        raise RuntimeError("cuLaunchKernel through ctypes failed")
    return host_us(lambda: call(*arguments))


def _through_bindings(launch: Launch, stream: int) -> float:
    from cuda.bindings import driver as bindings

    function, on, call = bindings.CUfunction(launch.function), bindings.CUstream(stream), bindings.cuLaunchKernel
    arguments = (function, 1, 1, 1, 32, 1, 1, 0, on, launch.packed, 0)
    return host_us(lambda: call(*arguments))


def _through_c_loop(launch: Launch, stream: int) -> float:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("g++")
    if compiler is None:
        raise RuntimeError("no C compiler on this machine")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "issue.so"
        command = [compiler, "-x", "c", "-O2", "-shared", "-fPIC", "-o", str(library), "-"]
        subprocess.run(command, input=LOOP_SOURCE.encode(), check=True, capture_output=True)
        issue = ctypes.CDLL(str(library)).issue
    issue.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    entry = ctypes.cast(_cu_launch_kernel(), ctypes.c_void_p)
    calls = (_Call * BATCH)(*[_Call(launch.function, launch.packed)] * BATCH)
    pointer = ctypes.c_void_p(ctypes.addressof(calls))
    if issue(entry, pointer, BATCH, stream):
        raise RuntimeError("the C loop's launches failed")
    return host_us(lambda: issue(entry, pointer, BATCH, stream), inner=2, repeats=40) / BATCH


ROUTES: dict[str, Callable[[Launch, int], float]] = {
    "Launch object": _through_launch,
    "driver.launchKernel": _through_driver,
    "ctypes cuLaunchKernel": _through_ctypes,
    "cuda.bindings": _through_bindings,
    f"C loop of {BATCH}": _through_c_loop,
}


def _others(launch: Launch) -> dict[str, float]:
    """Host cost [us] of events and of launching a graph."""
    first, second = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
    event = cp.cuda.Event(disable_timing=True)
    raw, one, two = event.ptr, first.ptr, second.ptr

    def pair() -> None:
        runtime.eventRecord(raw, one)
        runtime.streamWaitEvent(two, raw)

    result = {"record+wait": host_us(pair), "event query": host_us(lambda: runtime.eventQuery(raw))}
    first.begin_capture()
    for _ in range(20):
        launch(one)
    graph = first.end_capture()
    result["graph of 20 kernels"] = host_us(lambda: graph.launch(stream=first), inner=10)
    return result


def run() -> tuple[dict[str, Any], list[str]]:
    """Measure every route and argument count; a route that is missing on the machine is reported as such."""
    functions = readback.SOURCE.load()
    buffers = [cp.zeros(4, dtype=cp.int32) for _ in range(max(ARGUMENTS))]
    stream = cp.cuda.Stream(non_blocking=True)
    launches = {n: Launch(functions[f"arguments{n}"], 1, 32, buffers[:n]) for n in ARGUMENTS}
    results: dict[str, Any] = {"us_per_launch": {}, "missing": {}}
    lines = ["7 host cost of issue, us a launch with 1 / 8 / 24 pointer arguments"]
    for name, route in ROUTES.items():
        try:
            times = {n: route(launch, stream.ptr) for n, launch in launches.items()}
        except Exception as error:  # one route may be absent on a machine; the others still count
            results["missing"][name] = repr(error)
            lines.append(f"  {name:24s} not available: {error!r:.70}")
            continue
        results["us_per_launch"][name] = times
        lines.append(f"  {name:24s} " + " / ".join(f"{t:.2f}" for t in times.values()))
    results["other_us"] = _others(launches[8])
    lines.append("  " + ", ".join(f"{k} {v:.2f}" for k, v in results["other_us"].items()))
    return results, lines
