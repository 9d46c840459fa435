"""Experiment 6: a chain of kernels with a count read-back in the middle, as one shard or several overlapping ones."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Iterator
from typing import Any

import cupy as cp
import numpy as np
from cupy.cuda import runtime

from . import kinematics_layout as layout
from . import readback
from .harness import Launch, PinnedInts, device_us

LANES = 8
TARGET_US = 15.0
TARGET_WORLDS = 4096
TOTALS = (8192, 1024)
SHARDS = (1, 2, 4)
STEPS = 20


class Shard:
    """One range of worlds on its own stream: three kernels, the counts, three kernels that need them."""

    def __init__(self, kinematics: dict[str, int], counting: dict[str, int], num_worlds: int, repeats: int) -> None:
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.pinned = PinnedInts(32)
        self.number = ctypes.c_int(0)
        body = layout.world_major(kinematics, layout.Fields(num_worlds), LANES, repeats)
        data = cp.asarray(np.random.default_rng(0).integers(0, 9, 4096).astype(np.int32))
        stamps = cp.zeros(2, dtype=cp.uint64)
        arguments = [data, 256, self.pinned.pointer(), self.pinned.pointer(16), self.number, stamps, 0]
        self.count = Launch(counting["count16"], 1, 512, arguments)
        self.before, self.after = [body] * 3, [body] * 3

    def steps(self, number: int, wait: bool) -> Iterator[None]:
        """Issue ``number`` steps; yields whenever the counts are not there yet."""
        stream, view = self.stream.ptr, self.pinned.view
        for _ in range(number):
            for launch in self.before:
                launch(stream)
            self.number.value += 1
            expected = self.number.value
            self.count(stream)
            spins = 0
            while wait and view[16] != expected:
                spins += 1
                if spins > readback.SPINS:
                    raise RuntimeError("a shard's counts did not arrive; see whether an earlier kernel failed")
                yield
            view[:16].tolist()
            for launch in self.after:
                launch(stream)


def _drive(shards: list[Shard], wait: bool) -> float:
    """Host time [us] a step from first issue to all done, the shards' emitters polled in turn."""
    runtime.deviceSynchronize()
    start = time.perf_counter_ns()
    running = [shard.steps(STEPS, wait) for shard in shards]
    while running:
        running = [emitter for emitter in running if next(emitter, emitter) is None]
    runtime.deviceSynchronize()
    return 1e-3 * (time.perf_counter_ns() - start) / STEPS


def _calibrate(kinematics: dict[str, int]) -> tuple[int, float]:
    """Repetitions of the body that take about 15 us at 4096 worlds, and the time [us] that they take."""
    fields = layout.Fields(TARGET_WORLDS)
    few, many = (device_us([layout.world_major(kinematics, fields, LANES, n)]) for n in (1, 11))
    repeats = max(1, round(1 + (TARGET_US - few) / max((many - few) / 10, 1e-3)))
    return repeats, device_us([layout.world_major(kinematics, fields, LANES, repeats)])


def run() -> tuple[dict[str, Any], list[str]]:
    """Measure every number of shards; returns the results and the summary's lines."""
    kinematics, counting = layout.SOURCE.load(), readback.SOURCE.load()
    repeats, kernel_us = _calibrate(kinematics)
    results: dict[str, Any] = {"repeats": repeats, "kernel_us_at_4096": kernel_us, "us_per_step": {}}
    for total in TOTALS:
        row: dict[str, float] = {}
        for count in SHARDS:
            shards = [Shard(kinematics, counting, total // count, repeats) for _ in range(count)]
            runtime.deviceSynchronize()
            chain = [*shards[0].before, shards[0].count, *shards[0].after]
            row[f"{count} chain alone"] = device_us(chain, inner=5)
            for wait in (True, False):
                times = [_drive(shards, wait) for _ in range(6)][1:]
                row[f"{count} {'with' if wait else 'without'} read-back"] = statistics.median(times)
        results["us_per_step"][total] = row
    lines = [f"6 six kernels ({kernel_us:.1f} us each at 4096 worlds) + counts, us a step of all worlds: "
             "one shard's chain in a graph / with read-back / never waiting"]  # fmt: skip
    for total, row in results["us_per_step"].items():
        cells = [f"{n} shards {row[f'{n} chain alone']:.1f} / {row[f'{n} with read-back']:.1f} / "
                 f"{row[f'{n} without read-back']:.1f}" for n in SHARDS]  # fmt: skip
        lines.append(f"  {total:5d} worlds: " + ", ".join(cells))
    return results, lines
