"""The block scheduler: blocks of kernels on multiprocessors, as threads, blocks, registers and shared memory allow.

    kernel --spacing--> queue --head's blocks, while they fit--> multiprocessors --last block ends--> done

Invariants
    1. Kernels are served in the order in which they came. Blocks of a kernel start once all blocks of the kernel before
       it have started. A kernel that does not fill the GPU thus runs beside others.
    2. Blocks that start together are spread evenly over the multiprocessors that can hold them. The rest goes to those
       with the most free threads.
    3. A block holds its resources until it ends. Its duration is fixed when it starts.
    4. Alone on an empty GPU, a kernel takes its measured duration: waves times the duration of a block.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from ..core.calls import KernelCall
from .clock import Clock
from .recording import LaunchShape
from .spec import GpuSpec


class Kernel:
    """One run of a kernel. Virtual times [s]: issue by the host, start of the first block, end of the last."""

    __slots__ = (
        "blocks",
        "body",
        "call",
        "done",
        "end",
        "issue",
        "own",
        "running",
        "seconds",
        "shape",
        "start",
        "then",
    )

    def __init__(self, call: KernelCall, shape: LaunchShape, seconds: float, body: Callable[[], None] | None) -> None:
        self.call = call
        self.shape = shape
        self.seconds = seconds  # duration alone on the GPU where it was measured [s]
        self.body = body
        self.issue = self.start = self.end = float("nan")
        self.blocks = shape.blocks  # blocks that have not started
        self.running = 0
        self.own: np.ndarray | None = None  # threads of the kernel on each multiprocessor
        self.done: Callable[[], None] = lambda: None  # called by the block scheduler at its end
        self.then: Callable[[], None] = lambda: None  # called by the device after its body


class Processors:
    """All multiprocessors of a GPU. `peak` is the largest number of kernels that ever ran at once."""

    def __init__(self, spec: GpuSpec, clock: Clock) -> None:
        self.spec = spec
        self._clock = clock
        self._full = np.array(spec.limits(), np.int64)
        self._free = np.tile(self._full, (spec.multiprocessors, 1))
        self._waiting: deque[Kernel] = deque()
        self._resident = 0
        self._front = 0.0  # when the next kernel may start [s]
        self._needs: dict[LaunchShape, np.ndarray] = {}
        self._alone: dict[tuple[LaunchShape, float], float] = {}  # durations of blocks that run alone [s]
        self.peak = 0

    def admit(self, shape: LaunchShape) -> np.ndarray:
        """Return what a block needs. Raises ValueError if no multiprocessor can ever hold it."""
        need = self._needs.get(shape)
        if need is None:
            self.spec.waves(shape)
            need = self._needs[shape] = np.array(self.spec.needs(shape), np.int64)
        return need

    def submit(self, kernel: Kernel, done: Callable[[], None]) -> None:
        """Queue a kernel. `done` is called at the end of its last block. Raises ValueError if no block of it fits."""
        self.admit(kernel.shape)
        kernel.done = done
        begin = max(self._clock.now, self._front)
        self._front = begin + self.spec.spacing
        self._clock.at(begin, lambda: self._enter(kernel))

    def reset(self) -> None:
        """Empty the GPU, after a failure."""
        self._free[:] = self._full
        self._waiting.clear()
        self._resident = 0
        self._front = 0.0

    def _enter(self, kernel: Kernel) -> None:
        self._waiting.append(kernel)
        self._serve()

    def _serve(self) -> None:
        """Start the blocks that fit, in order."""
        while self._waiting:
            kernel = self._waiting[0]
            if kernel.start != kernel.start and self._resident >= self.spec.resident:
                return
            self._place(kernel)
            if kernel.blocks:
                return
            self._waiting.popleft()

    def _place(self, kernel: Kernel) -> None:
        """Start as many blocks of a kernel as fit."""
        need = self.admit(kernel.shape)
        room = (self._free // need).min(axis=1)
        given = room if room.sum() <= kernel.blocks else _spread(room, self._free[:, 0], kernel.blocks)
        (where,) = given.nonzero()
        if not len(where):
            return
        if kernel.start != kernel.start:
            kernel.start = self._clock.now
            self._resident += 1
            self.peak = max(self.peak, self._resident)
        placed = given[where]
        others = self._others(kernel, where, placed * need[0])
        self._free[where] -= placed[:, None] * need
        count = int(placed.sum())
        kernel.blocks -= count
        kernel.running += count
        alone = self._alone_seconds(kernel)
        if others is None:
            self._end_later(kernel, alone, where, placed, need)
            return
        for share in np.unique(others):
            these = others == share
            seconds = alone * (1.0 + self.spec.contention * float(share))
            self._end_later(kernel, seconds, where[these], placed[these], need)

    def _alone_seconds(self, kernel: Kernel) -> float:
        """Return how long a block runs with nothing beside it [s]."""
        key = kernel.shape, kernel.seconds
        seconds = self._alone.get(key)
        if seconds is None:
            seconds = self._alone[key] = self.spec.block_seconds(*key)
        return seconds

    def _others(self, kernel: Kernel, where: np.ndarray, threads: np.ndarray) -> np.ndarray | None:
        """Return the share of threads that other kernels hold on some multiprocessors, or None if it does not matter.

        `threads` are those that the kernel takes there.
        """
        if not self.spec.contention:
            return None
        if kernel.own is None:
            kernel.own = np.zeros(self.spec.multiprocessors, np.int64)
        others = self.spec.threads - self._free[where, 0] - kernel.own[where]
        kernel.own[where] += threads
        return others / self.spec.threads

    def _end_later(
        self, kernel: Kernel, seconds: float, where: np.ndarray, placed: np.ndarray, need: np.ndarray
    ) -> None:
        def end() -> None:
            self._free[where] += placed[:, None] * need
            if kernel.own is not None:
                kernel.own[where] -= placed * need[0]
            kernel.running -= int(placed.sum())
            if not kernel.running and not kernel.blocks:
                kernel.end = self._clock.now
                self._resident -= 1
                kernel.done()
            self._serve()

        self._clock.at(self._clock.now + seconds, end)


def _spread(room: np.ndarray, free: np.ndarray, blocks: int) -> np.ndarray:
    """Spread blocks, all of which fit: evenly, and the rest by free threads."""
    level = 0
    while np.minimum(room, level + 1).sum() <= blocks:
        level += 1
    given = np.minimum(room, level)
    order = np.argsort(-free, kind="stable")
    open_ = order[room[order] > level]
    given[open_[: blocks - int(given.sum())]] += 1
    return given
