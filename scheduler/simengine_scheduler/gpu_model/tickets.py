"""A persistent kernel that takes tiles by tickets: the window is on the GPU, and the host hands over whole lists.

    list --reset--> window --admit--> tickets (kernel, tile) in program order --> free block
                                                free block --what it waits for has ended, release--> runs

Invariants
    1. Blocks take tickets in program order, `ticket` apart, and keep a tile until it has run: the window is as long as
       there are blocks, and what a block waits for was taken before it, so none waits for ever.
    2. A kernel's tiles start `release` after the last kernel that it waits for has ended. A tile runs `worker` times as
       long as a block of the kernel does.
    3. The state of the window is made new until `reset` after the list was there. From then on the window takes in one
       kernel after another, each for `admit`, whatever blocks do; the first ticket of a kernel comes behind that.
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
        self._taken = [0.0] * len(self.kernels)  # when blocks have the latest tiles that they took
        self._ready = [0.0] * len(self.kernels)  # when tiles may run, once nothing is upstream
        self._parked = [0] * len(self.kernels)  # blocks that hold a tile and wait
        self._seconds = [spec.worker * spec.block_seconds(kernel.shape, kernel.seconds) for kernel in self.kernels]
        begin = clock.now + spec.reset
        self._admitted = [begin + n * spec.admit for n in range(1, len(self.kernels) + 1)]
        clock.at(begin, self._take)

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
            there = max(self._counter, self._runner.clock.now, self._admitted[number])
            self._counter = self._taken[number] = there + tiles * self._runner.spec.ticket
            if self.upstream[number]:
                self._parked[number] += tiles
            else:
                self._run(number, tiles)

    def _run(self, number: int, tiles: int) -> None:
        """Blocks run the tiles they hold, once they all have them."""
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
        """What waited for a kernel alone goes on `release` later."""
        for later in self.freed(number):
            self._ready[later] = self._runner.clock.now + self._runner.spec.release
            if self._parked[later]:
                self._run(later, self._parked[later])
