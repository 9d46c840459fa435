"""Executor `device` on host threads: the same protocol, built by a C++ compiler, for tests without a GPU.

A block is one thread of the host. The protocol can thus run under the sanitizers of the compiler.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ..core.calls import Emitter, KernelCall
from ..core.dependencies import chains
from ..core.emission import Feeder
from ..core.errors import call_stuck
from ..device.image import STRIDE, build_image, window_memory
from ..device.known_image import build_known_image
from ..device.layout import STATUS_WORDS, explain, lay_out, list_structs, outcome
from ..device.occupancy import Multiprocessors
from ..executors.base import Executor, Options, finish_run
from ..executors.recorder import start_recording
from ..launch.tasks import DeviceBody, DeviceTask
from ..tracing.trace import Trace

_HERE = Path(__file__).parents[1] / "device"
BODY = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint64), ctypes.c_int, ctypes.c_void_p)


@cache
def build(flags: tuple[str, ...] = ()) -> Path:
    """Compile the protocol for the host. Returns the library. Raises RuntimeError if there is no compiler."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise RuntimeError("the device protocol on the host needs a C++ compiler; install g++ or clang++, or set CXX")
    out = Path(tempfile.mkdtemp(prefix="device_protocol_")) / "worker_host.so"
    command = [compiler, "-std=c++17", "-O2", "-shared", "-fPIC", "-pthread", *flags]
    subprocess.run([*command, str(_HERE / "worker_host.cpp"), "-o", str(out)], check=True)
    return out


class PythonBody:
    """A launch whose tiles are calls of a Python function with the number of the tile."""

    def __init__(self, function: Callable[[int], None], tiles: int = 1, **task: Any) -> None:
        self.function = function
        self._callback = BODY(lambda arguments, tile, memory: function(tile))
        address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        kind = {name: task.pop(name) for name in ("threads", "registers") if name in task}
        self.task = DeviceTask(DeviceBody(f"python_{id(self)}", address=address, **kind), tiles, **task)

    def issue(self, stream: int) -> None:
        """Run all tiles, one after another."""
        for tile in range(self.task.tiles):
            self.function(tile)

    def packed_arguments(self) -> np.ndarray:
        """Return no words: the function takes the number of the tile only."""
        return np.zeros(0, np.uint64)


class ThreadedDevice(Executor):
    """Runs lists by the protocol on host threads.

    Args:
        options: as for executor `device`.
        workers: threads of each resource class.
        lose: the number of a call of which one ticket is never counted, so that other calls wait in vain.
        library: what `build` returned.
        places: how many threads, with the window, may run at a time. The others begin when one of them ends.
        together: whether bodies of several classes are one class where it has room.
    """

    name = "device"

    def __init__(
        self,
        options: Options,
        workers: int = 2,
        lose: int | None = None,
        library: Path | None = None,
        places: int = 1 << 20,
        together: bool = False,
    ) -> None:
        self._options = options
        self._conflicts = options.table(self.name).conflicts
        self._workers = workers
        self._lose = lose
        self._places = places
        self._together = together
        self._run = ctypes.CDLL(str(library or build())).run_list

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Run every call of every emitter."""
        trace = Trace(self.name, self._options.record)
        recorder = start_recording(trace)
        feeder = Feeder(emitters, lambda seq: False)
        try:
            while True:
                first, calls = feeder.latest + 1, list[KernelCall]()
                while (call := feeder.pull()) is not None:
                    calls.append(call)
                    if recorder is not None:
                        recorder.enter(call)
                if calls:
                    began = perf_counter()
                    found = self._run_calls(calls)
                    if recorder is not None:
                        recorder.device_list(first, found.waits, chains(found.waits), found.retired)
                        found.count_into(trace.counters)
                        start = min(t for t, _ in found.times)
                        for i, (a, b) in enumerate(found.times):
                            recorder.ran(first + i, began + (a - start) * 1e-9, began + (b - start) * 1e-9)
                if feeder.exhausted:
                    return finish_run(trace, feeder, recorder)
                for seq in list(feeder.waiting):
                    if recorder is not None:
                        recorder.observe(seq, -1)
                    feeder.release(seq)
        finally:
            feeder.close()

    def _run_calls(self, calls: Sequence[KernelCall]) -> Any:
        options = self._options
        device = Multiprocessors(number=self._workers)
        window, tiled, merged, ready = options.window, options.tiled, options.merged, options.ready
        if options.knows_waits:
            image = build_known_image(calls, self._conflicts, device, tiled, merged=merged, together=self._together)
        else:
            image = build_image(calls, self._conflicts, device, window, tiled, merged=merged, ready=ready)
        has_window = image.records is None
        if self._lose is not None and self._lose < len(calls):
            image.state[image.remaining + self._lose * STRIDE] += 1
        layout = lay_out(image, options.window)
        memory, status = layout.content.copy(), np.zeros(STATUS_WORDS, np.int32)
        limit = options.watchdog
        structs = list_structs(layout, memory.ctypes.data, status.ctypes.data, limit, True)
        addresses = [[body.address for body in of.bodies] for of in image.classes]
        tables = [(ctypes.c_void_p * len(own))(*own) for own in addresses]
        bodies = (ctypes.c_void_p * len(tables))(*(ctypes.addressof(table) for table in tables))
        grids = (ctypes.c_int * len(tables))(*(min(self._workers + merged, of.blocks) for of in image.classes))
        lists = (type(structs[0]) * len(structs))(*structs)
        most = max(of.memory for of in image.classes)
        of_window = window_memory(image.num_words, options.window, image.most_words) if has_window else 0
        self._run(lists, grids, len(tables), bodies, most, of_window, int(merged), self._places)
        if status[0]:
            task, why = explain(layout, status.tolist(), limit)
            raise call_stuck(calls[task], self.name, why)
        return outcome(layout, memory)

    def synchronize(self) -> None:
        """Return at once: a run has ended when it returns."""

    def close(self) -> None:
        """Do nothing: the executor holds nothing."""
