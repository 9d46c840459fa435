"""A persistent kernel that takes tiles by tickets: the window is on the GPU, and the host hands over whole lists.

    list --reset--> tickets (kernel, tile) in program order --> free block --what it waits for has ended--> runs

Invariants
    1. Blocks take tickets in program order, `ticket` apart, and keep a tile until it has run: the window is as long as
       there are blocks, and what a block waits for was taken before it, so none waits for ever.
    2. A kernel's tiles start `release` after the last kernel that it waits for has ended. A tile runs as long as a
       block of the kernel does.
    3. The first ticket is taken `reset` after the list was there: the state of the window is made new before.
"""

from __future__ import annotations

from collections.abc import Callable

from .batches import Batch, Runner
from .processors import Kernel


class TicketBatch(Batch):
    """A list run by a persistent kernel."""

    def begin(self, runner: Runner, done: Callable[[], None]) -> None:
        """Let the blocks take tickets from `reset` on."""
        spec, clock = runner.spec, runner.clock
        self._runner, self._done = runner, done
        self._next = 0  # kernel whose tickets are next
        self._blocks = spec.multiprocessors * spec.tiles  # free ones
        self._counter = 0.0  # when the next ticket can be taken
        self._ready = [0.0] * len(self.kernels)  # when tiles may run, once nothing is upstream
        self._parked = [0] * len(self.kernels)  # blocks that hold a tile and wait
        self._seconds = [spec.block_seconds(kernel.shape, kernel.seconds) for kernel in self.kernels]
        clock.at(clock.now + spec.reset, self._take)

    def _take(self) -> None:
        """Free blocks take tickets."""
        while self._blocks and self._next < len(self.kernels):
            number = self._next
            kernel = self.kernels[number]
            tiles = min(self._blocks, kernel.blocks)
            self._blocks -= tiles
            kernel.blocks -= tiles
            if not kernel.blocks:
                self._next += 1
            self._counter = max(self._counter, self._runner.clock.now) + tiles * self._runner.spec.ticket
            if self.upstream[number]:
                self._parked[number] += tiles
            else:
                self._run(number, tiles)

    def _run(self, number: int, tiles: int) -> None:
        """Blocks run the tiles they hold, once they all have them."""
        kernel = self.kernels[number]
        start = max(self._counter, self._ready[number])
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
        """What waited for a kernel alone goes on `release` later."""
        for later in self.freed(number):
            self._ready[later] = self._runner.clock.now + self._runner.spec.release
            if self._parked[later]:
                self._run(later, self._parked[later])
