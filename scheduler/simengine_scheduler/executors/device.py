"""The device executor: a list is data on the GPU, where persistent workers run the tiles of its calls.

    emitters --round-robin--> program order until all have ended or await --image--> device memory
    reset --> window   hazards of each task against 32 slots, upstream lists
                worker   of one resource class: takes tickets in program order, waits for upstream tasks, runs tiles
                worker   of another resource class; all of them run at once
    or, `merged`: reset --> worker of all bodies, whose first block is the window before it works
    or, hazards="host": no window; workers take tickets of chains of calls, of which the host knows what they wait for

This is the hardware form of ACS (arXiv 2401.12377) in software: the host hands over a list and learns nothing until the
list has ended. The authors of ACS found a persistent kernel slower, because every task then pays for the registers of
the largest. Here bodies with like needs of registers and threads share a worker. Dependent calls follow each other
without a launch. They follow tile by tile (cuSync, arXiv 2305.13450) where calls say which segments are `tiled`. The
work of a call may depend on counts that only the GPU knows. `simengine_scheduler/device/protocol.cuh` is the protocol,
and says why it cannot deadlock.

Invariants
    1. Lists of a run follow each other on one stream. It waits for the home stream before the first list, and the home
       stream waits for it after the last.
    2. An awaited call has completed once its list has.
    3. Images are stored by the calls in them, and made again once a buffer has moved. The image of a `FixedList` is
       found without a look at its calls.
    4. A wait that lasts longer than `watchdog` ends the list. The next run or `synchronize` raises an error, which says
       which call waited for which. If a body never ends and a call waits for it, the error is the same, but only a new
       process can go on.
    5. The memory of an image comes from a stream that runs no kernels, so that nothing pending writes to it. It is
       freed after the lists that use it have ended, also where an executor is forgotten and not closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter, sleep
from typing import Any
from weakref import finalize, ref

import numpy as np

from ..core.calls import KernelCall
from ..core.dependencies import chains
from ..core.errors import call_stuck
from ..cuda import graph as cuda_graph
from ..cuda.driver import Driver
from ..device.image import STOP, STRIDE, WINDOW_THREADS, Image, build_image, window_memory
from ..device.known_image import build_known_image
from ..device.layout import STATUS_WORDS, Layout, explain, lay_out, list_structs, outcome
from ..device.occupancy import Multiprocessors
from ..device.programs import CudaPrograms
from ..device.words import WordTable
from ..launch.cuda import CudaLaunch
from ..tracing.trace import Trace
from .base import Options
from .built_graphs import BuiltGraph, Shape
from .graph import GraphExecutor
from .recorder import Recorder

_RESET = (64, 256)  # grid and block of `reset`
_OVERLAPS = 90  # architecture from which kernels of one stream may run together
_ROUNDS = 8
_GRACE = 2.0  # time that blocks have to stop after one of them has given up the list [s]


class _Loaded:
    """An image in the memory of the device."""

    __slots__ = ("block", "launches", "layout")

    def __init__(self, layout: Layout, block: Any, launches: list[CudaLaunch]) -> None:
        self.layout = layout
        self.block = block
        self.launches = launches


class _Images:
    """The images of an executor, by the graphs that run them, and the words through which lists are given up."""

    def __init__(self, driver: Driver, stream: int, status: Any) -> None:
        self.of: dict[int, _Loaded] = {}
        self.status = status
        self.hangs = False  # a list that hangs may use its memory for ever
        self._driver = driver
        self._stream = stream

    def drop(self, handle: int) -> None:
        """Free an image and its graph, once the list has ended."""
        if self.hangs:
            return
        self._driver.synchronize(self._stream)
        self._driver.destroy_graph(handle)
        del self.of[handle]

    def release(self) -> None:
        """Free all images, once their lists have ended. The graphs are destroyed elsewhere."""
        if self.hangs:
            _KEPT.append(self)
            return
        with suppress(Exception):  # a lost context runs nothing
            self._driver.synchronize(self._stream)
        self.of.clear()


_KEPT: list[_Images] = []


class _Last:
    """The executor that launched a list last in this process."""

    executor: Callable[[], DeviceExecutor | None] | None = None


_LAST = _Last()


class DeviceExecutor(GraphExecutor):
    """Runs lists with a window and workers on the GPU."""

    def __init__(self, options: Options) -> None:
        super().__init__(options, cached=True)
        self.name = "device"
        self._programs = CudaPrograms(options.keep)
        self._words = WordTable(self._conflicts)
        self._status = self._programs.pinned(STATUS_WORDS)
        self._images = _Images(self._driver, self._lanes.handles[0], self._status)
        self._ended = self._pool.take()
        self._release_images = finalize(self, self._images.release)
        of = self._programs
        self._device = Multiprocessors(of.multiprocessors, of.registers, of.shared, of.threads, of.blocks)

    @property
    def rounds(self) -> int:
        """How many rounds of fixed lists run best as one list, since launches of several classes take long.

        With a window it is 1: its blocks look at so many counters that 64 ants on an H200 took 417 us a step in lists
        of eight steps, and 373 us in lists of one step.
        """
        return _ROUNDS if self._options.knows_waits and self._options.record == "off" else 1

    def _graphs_of_lists(self) -> None:
        """Return None: an image holds a whole run, whose lists share a window."""

    def _make(self, calls: tuple[KernelCall, ...], keys: Any) -> BuiltGraph:
        return BuiltGraph(calls, Shape((), (), (), 0, 0), self._load(calls, times=False), keys)

    def _drop(self, handle: int) -> None:
        self._images.drop(handle)

    def _load(self, calls: Sequence[KernelCall], times: bool) -> int:
        """Copy an image of calls to the device. Returns the graph that runs it."""
        programs, options = self._programs, self._options
        image = self._image(calls)
        layout = lay_out(image, options.window)
        block = programs.upload(layout.content)
        base = int(block.data.ptr)
        status = int(self._status.ctypes.data)
        structs = [bytes(s) for s in list_structs(layout, base, status, options.watchdog, times)]
        reset, window = programs.window()
        state, first = (base + layout.sections[name][0] for name in ("state", "first"))
        counters = (np.uint64(state), np.uint64(first), len(image.state))
        launches = [CudaLaunch(reset, (_RESET[0],), (_RESET[1],), 0, counters)]
        if image.with_window:
            memory = window_memory(image.num_words, options.window, image.most_words)
            launches.append(CudaLaunch(window, (1,), (WINDOW_THREADS,), memory, (structs[0],)))
        for of, struct in zip(image.classes, structs, strict=True):
            worker = programs.function(of.kind, of.bodies)
            launches.append(CudaLaunch(worker, (of.blocks,), (of.kind.threads,), of.memory, (struct, of.arguments)))
        self._builder.built += 1
        if programs.arch >= _OVERLAPS:
            handle = cuda_graph.build_overlapping(launches, ordered=2)
        else:
            handle = self._driver.build_graph(launches, [(), *((0,) for _ in launches[1:])], None)
        self._images.of[handle] = _Loaded(layout, block, launches)
        return handle

    def _image(self, calls: Sequence[KernelCall]) -> Image:
        """Return the image of calls."""
        options, workers_of = self._options, self._programs.workers_of
        given = calls, self._conflicts, self._device
        if options.knows_waits:
            return build_known_image(*given, options.tiled, workers_of, options.merged, together=True)
        form = options.merged, options.ready
        return build_image(*given, options.window, options.tiled, workers_of, *form, self._words)

    def _launch_run(
        self, calls: tuple[KernelCall, ...], first: int, behind: list[int], recorder: Recorder | None, trace: Trace
    ) -> list[int]:
        self._check()
        if recorder is None:
            return super()._launch_run(calls, first, behind, None, trace)
        handle = self._load(calls, times=recorder.times)
        try:
            began = perf_counter()
            self._launch(handle)
            self._wait()
            loaded = self._images.of[handle]
            found = outcome(loaded.layout, self._programs.download(loaded.block))
        finally:
            self._drop(handle)
        recorder.device_list(first, found.waits, chains(found.waits), found.retired)
        found.count_into(recorder.trace.counters)
        if recorder.times:
            start = min(t for t, _ in found.times)
            for i, (a, b) in enumerate(found.times):
                recorder.ran(first + i, began + (a - start) * 1e-9, began + (b - start) * 1e-9)
        return []  # the host has seen all calls end

    def _launch(self, handle: int) -> None:
        """Launch a list after that of the executor that launched one last, because two lists could block each other."""
        lane = self._lanes.use(0)
        last = _LAST.executor() if _LAST.executor is not None else None
        if last is not None and last is not self:
            self._driver.wait(lane, last._ended)
        self._driver.launch_graph(handle, lane)
        self._driver.record(self._ended, lane)
        _LAST.executor = ref(self)

    def _wait(self) -> None:
        """Wait until the stream is empty or its list was given up."""
        self._driver.record(self._done, self._lanes.use(0))
        given_up = 0.0
        while not self._driver.query(self._done):
            if not self._status[0]:
                continue
            given_up = given_up or perf_counter()
            if perf_counter() - given_up > _GRACE:
                self._check(ended=False)
            sleep(0.01)
        self._check()

    def _check(self, ended: bool = True) -> None:
        """Raise CallError if a list was given up."""
        if not self._status[0]:
            return
        self._images.hangs = not ended
        status = self._status.tolist()
        loaded = self._at_fault(status[1])
        task, why = explain(loaded.layout, status, self._options.watchdog)
        self._status[:] = 0
        error = call_stuck(loaded.layout.image.calls[task], self.name, why if ended else f"{why} and does not stop")
        error.fatal = not ended
        raise error

    def _at_fault(self, task: int) -> _Loaded:
        """Return the list that was given up: the one whose `stop` is set."""
        for loaded in self._images.of.values():
            stop = loaded.layout.sections["state"][0] + 4 * STRIDE * STOP
            if len(loaded.layout.image.calls) > task and self._programs.glance(loaded.block, stop):
                return loaded
        return next(iter(self._images.of.values()))

    def run(self, emitters: Any) -> Any:
        """Hand over the emitters' calls. On return the home stream waits for all of them."""
        self._check()
        return super().run(emitters)

    def synchronize(self) -> None:
        """Block the host until all that was issued has ended. Raises CallError if a list was given up."""
        self._wait()
        super().synchronize()

    def close(self) -> None:
        """Free memory on the device, after all work on it has completed."""
        if _LAST.executor is not None and _LAST.executor() is self:
            _LAST.executor = None
        self._release_images()
        super().close()
