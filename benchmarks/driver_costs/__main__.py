"""Measures what calls of CUDA's driver take: `python -m benchmarks.driver_costs --json FILE`.

Compiled code calls the driver with an empty kernel, on eight streams in turn: launches of kernels, of graphs of calls
in a row, and of graphs with four calls side by side; what orders streams; what differs in a list, where streams and
graphs change and the host waits in between; and launches by several threads. A row has the median and the least time of
a call over fifteen repeats [us].
"""

from __future__ import annotations

import ctypes
import sys
from array import array
from pathlib import Path
from typing import Any

from benchmarks.stepping import print_and_write
from simengine_scheduler.native.compiling import build

_NAMES = (
    *("cuLaunchKernel", "cuStreamCreate", "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuEventQuery"),
    *("cuCtxSynchronize", "cuCtxGetCurrent", "cuCtxSetCurrent", "cuGraphCreate", "cuGraphAddKernelNode_v2"),
    *("cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphExecKernelNodeSetParams_v2"),
    "cuStreamWriteValue32_v2",
)


def measured() -> list[dict[str, Any]]:
    """All costs."""
    import cupy

    kernel = cupy.RawKernel('extern "C" __global__ void nothing() {}', "nothing")
    kernel((1,), (32,), ())
    driver = ctypes.CDLL("libcuda.so.1")
    functions = array("Q", [ctypes.cast(getattr(driver, name), ctypes.c_void_p).value or 0 for name in _NAMES])
    rows: list[dict[str, Any]] = []

    def report(what: bytes, median: float, least: float) -> None:
        rows.append({"what": what.decode(), "median_us": round(median, 3), "least_us": round(least, 3)})

    library = ctypes.CDLL(str(build("driver_costs.so", [Path(__file__).with_name("costs.cpp")])))
    callback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_double, ctypes.c_double)(report)
    seen = cupy.cuda.alloc_pinned_memory(64)
    pointers = (ctypes.c_void_p(each) for each in (functions.buffer_info()[0], kernel.kernel.ptr, seen.ptr))
    library.measure(*pointers, callback)
    return rows


if __name__ == "__main__":
    sys.exit(print_and_write("benchmarks.driver_costs", __doc__, measured))
