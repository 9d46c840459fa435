"""A persistent kernel whose blocks take tiles by tickets. The window is on the GPU, and the host launches whole lists.

    list --reset--> window --admit--> tickets (kernel, tile) in program order --> free block
                                                free block --what it waits for has ended, release--> runs

Invariants
    1. Blocks take tickets in program order, `ticket` apart, and hold a tile until it has run. What a block waits for
       was taken before, so no block waits for ever.
    2. The tiles of a kernel start `release` after the end of the last kernel that it waits for. A tile runs `worker`
       times as long as a block of the kernel.
    3. The window is ready `reset` after the list has arrived. It then takes in one kernel after another, each in
       `admit`, whatever blocks do. Tickets of a kernel can be taken from then on.
    4. With `wake` there is a set of ready kernels instead of tickets in program order: blocks take tiles of the first
       kernel that waits for nothing, `wake` after it has become ready. No block holds a tile that waits.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from .batches import Batch, Runner
from .processors import Kernel


class TicketBatch(Batch):
    """A list that a persistent kernel runs."""

    def begin(self, runner: Runner, done: Callable[[], None]) -> None:
        """Let the blocks take tickets once the window is ready."""
        spec, clock = runner.spec, runner.clock
        self._runner, self._done = runner, done
        self._next = 0  # the kernel whose tickets are taken next
        self._blocks = spec.multiprocessors * spec.tiles  # free blocks
        self._counter = 0.0  # when the next ticket can be taken [s]
        self._taken = [0.0] * len(self.kernels)  # when the blocks have the tiles that were taken last [s]
        self._ready = [0.0] * len(self.kernels)  # when tiles may run, once no upstream kernel is left [s]
        self._parked = [0] * len(self.kernels)  # blocks that hold a tile of the kernel and wait
        self._seconds = [spec.worker * spec.block_seconds(kernel.shape, kernel.seconds) for kernel in self.kernels]
        begin = clock.now + spec.reset
        self._admitted = [begin + n * spec.admit for n in range(1, len(self.kernels) + 1)]
        clock.at(begin, self._take)

    def _take(self) -> None:
        """Let free blocks take tickets."""
        while self._blocks and self._next < len(self.kernels):
            number = self._next
            kernel = self.kernels[number]
            tiles = min(self._blocks, kernel.blocks)
            self._blocks -= tiles
            kernel.blocks -= tiles
            if not kernel.blocks:
                self._next += 1
            there = max(self._counter, self._runner.clock.now, self._admitted[number])
            self._counter = self._taken[number] = there + tiles * self._runner.spec.ticket
            if self.upstream[number]:
                self._parked[number] += tiles
            else:
                self._run(number, tiles)

    def _run(self, number: int, tiles: int) -> None:
        """Run tiles on the blocks that hold them."""
        kernel = self.kernels[number]
        start = max(self._taken[number], self._ready[number])
        if kernel.start != kernel.start:
            kernel.start = start
        kernel.running += tiles
        self._runner.clock.at(start + self._seconds[number], lambda: self._end(kernel, number, tiles))

    def _end(self, kernel: Kernel, number: int, tiles: int) -> None:
        kernel.running -= tiles
        self._blocks += tiles
        if not kernel.running and not kernel.blocks:
            kernel.end = self._runner.clock.now
            if not self._runner.complete(kernel):
                return
            self._release(number)
        self._take()
        if not self.left:
            self._done()

    def _release(self, number: int) -> None:
        """Let the kernels that waited for this one alone start, `release` later."""
        for later in self.freed(number):
            self._ready[later] = self._runner.clock.now + self._runner.spec.release
            if self._parked[later]:
                self._run(later, self._parked[later])


class ReadyBatch(TicketBatch):
    """The same with a set of ready kernels, of which blocks take the first in program order."""

    def begin(self, runner: Runner, done: Callable[[], None]) -> None:
        """Let the blocks take tiles of ready kernels once the window is there."""
        self._able = [number for number, upstream in enumerate(self.upstream) if not upstream]
        super().begin(runner, done)

    def _take(self) -> None:
        while self._blocks and self._able:
            number = self._able[0]
            kernel = self.kernels[number]
            tiles = min(self._blocks, kernel.blocks)
            self._blocks -= tiles
            kernel.blocks -= tiles
            if not kernel.blocks:
                heappop(self._able)
            there = max(self._counter, self._runner.clock.now, self._admitted[number], self._ready[number])
            self._counter = self._taken[number] = there + tiles * self._runner.spec.ticket
            self._run(number, tiles)

    def _release(self, number: int) -> None:
        spec = self._runner.spec
        for later in self.freed(number):
            self._ready[later] = self._runner.clock.now + spec.release + (spec.wake or 0.0)
            heappush(self._able, later)
