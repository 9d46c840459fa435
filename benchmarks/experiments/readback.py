"""Experiment 1: from launching a kernel that writes 16 counts to the host holding them; the idle time."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cupy as cp
import numpy as np
from cupy.cuda import runtime

from .harness import Launch, PinnedInts, Source

SOURCE = Source(
    ("counts.cu",),
    ("count16", "stamp_start", "empty", "clock_readings", "arguments1", "arguments8", "arguments24"),
)
REPEATS = 300
SPINS = 10_000_000  # polls before giving up, about a second
SHORT, LONG = 256, 16384  # entries a count: a few us, and long enough for the host to run ahead


@dataclass(frozen=True)
class Method:
    """A way to bring the counts over: what to issue after the counting kernel, how to wait, how to read."""

    count: Launch
    issue: Callable[[], None]
    wait: Callable[[], None]
    read: Callable[[], list[int]]


class Bench:
    """Buffers, stream and the methods compared."""

    def __init__(self) -> None:
        self.functions = SOURCE.load()
        self.stream = cp.cuda.Stream(non_blocking=True)
        values = np.random.default_rng(0).integers(0, 100, 16 * LONG).astype(np.int32)
        self.data = cp.asarray(values)
        self.expected = values[: 16 * SHORT].reshape(16, SHORT).sum(axis=1).tolist()
        self.counts = cp.zeros(16, dtype=cp.int32)
        self.pinned = PinnedInts(32)
        self.stamps = cp.zeros(2 * REPEATS, dtype=cp.uint64)
        self.number, self.slot = ctypes.c_int(0), ctypes.c_int(0)
        self.ahead = self._count16(self.counts, None, LONG)
        self.follow = Launch(self.functions["stamp_start"], 1, 32, [self.stamps, self.slot])
        self.event = cp.cuda.Event(disable_timing=True)
        runtime.deviceSynchronize()

    def _count16(self, counts: Any, sequence: Any, per_count: int) -> Launch:
        arguments = [self.data, per_count, counts, sequence, self.number, self.stamps, self.slot]
        return Launch(self.functions["count16"], 1, 512, arguments)

    def methods(self) -> dict[str, Method]:
        """The methods by name."""
        event, pinned, stream, counts = self.event, self.pinned, self.stream, self.counts
        view = pinned.view

        def record() -> None:
            event.record(stream)

        def copy() -> None:
            runtime.memcpyAsync(pinned.pointer().value, counts.data.ptr, 64, runtime.memcpyDeviceToHost, stream.ptr)
            event.record(stream)

        def nothing() -> None:
            return None

        def poll_event() -> None:
            for _ in range(SPINS):
                if event.done:
                    return
            raise RuntimeError("the counting kernel's event did not complete; see whether an earlier kernel failed")

        def poll_sequence() -> None:
            number = self.number.value
            for _ in range(SPINS):
                if view[16] == number:
                    return
            raise RuntimeError("the counts' sequence number did not arrive; see whether an earlier kernel failed")

        def from_view() -> list[int]:
            return view[:16].tolist()

        mapped = self._count16(pinned.pointer(), None, SHORT)
        numbered = self._count16(pinned.pointer(), pinned.pointer(16), SHORT)
        on_device = self._count16(counts, None, SHORT)
        return {
            "a mapped, event query": Method(mapped, record, poll_event, from_view),
            "b mapped, sequence number": Method(numbered, nothing, poll_sequence, from_view),
            "c memcpyAsync, event query": Method(on_device, copy, poll_event, from_view),
            "d mapped, event.synchronize": Method(mapped, record, event.synchronize, from_view),
            "e cupy .get()": Method(on_device, nothing, nothing, lambda: counts.get(stream=stream).tolist()),
        }

    def latency_us(self, method: Method) -> float:
        """Median host time [us] from before the launch on an idle stream to the counts in a Python list."""
        times = []
        for repeat in range(REPEATS):
            self.stream.synchronize()
            self.number.value += 1
            start = time.perf_counter_ns()
            method.count(self.stream.ptr)
            method.issue()
            method.wait()
            counts = method.read()
            if repeat >= REPEATS // 10:
                times.append(1e-3 * (time.perf_counter_ns() - start))
            if counts != self.expected:
                raise RuntimeError(f"counts read back are wrong at repeat {repeat}: {counts}")
        return statistics.median(times)

    def bubble_us(self, method: Method | None) -> float:
        """GPU time [us] from the counting kernel's end to the start of the kernel launched on its counts.

        A longer kernel runs ahead, so that the host waits before the counts are made. ``None``: no wait at all.
        The mean of the middle 80 % of the repeats, since the clock may tick coarsely.
        """
        count = self._count16(self.counts, None, SHORT) if method is None else method.count
        for repeat in range(REPEATS):
            self.stream.synchronize()
            self.number.value += 1
            self.slot.value = repeat
            self.ahead(self.stream.ptr)
            count(self.stream.ptr)
            if method is not None:
                method.issue()
                method.wait()
                method.read()
            self.follow(self.stream.ptr)
        self.stream.synchronize()
        stamps = self.stamps.get().astype(np.int64).reshape(-1, 2)[REPEATS // 10 :]
        gaps = np.sort(stamps[:, 1] - stamps[:, 0])
        return 1e-3 * float(gaps[gaps.size // 10 : -gaps.size // 10].mean())

    def clock_step_ns(self) -> int:
        """Smallest step [ns] seen between readings of the GPU's clock."""
        Launch(self.functions["clock_readings"], 1, 1, [self.stamps, self.stamps.size])(self.stream.ptr)
        self.stream.synchronize()
        steps = np.diff(self.stamps.get().astype(np.int64))
        return int(steps[steps > 0].min()) if (steps > 0).any() else 0


def run() -> tuple[dict[str, Any], list[str]]:
    """Measure every method; returns the results and the summary's lines."""
    bench = Bench()
    results: dict[str, Any] = {"clock_step_ns": bench.clock_step_ns(), "no_wait_bubble_us": bench.bubble_us(None)}
    lines = ["1 count read-back, us: latency from launch / idle GPU before the next kernel "
             f"(unwaited {results['no_wait_bubble_us']:.2f}; clock step {results['clock_step_ns']} ns)"]  # fmt: skip
    for name, method in bench.methods().items():
        results[name] = {"latency_us": bench.latency_us(method), "bubble_us": bench.bubble_us(method)}
        lines.append(f"  {name:28s} {results[name]['latency_us']:7.2f} / {results[name]['bubble_us']:6.2f}")
    return results, lines
