"""Batches: lists that are launched at once, as CUDA graphs or by a persistent kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from .clock import Clock
from .processors import Kernel
from .spec import GpuSpec


class Runner(Protocol):
    """What a batch runs on."""

    spec: GpuSpec
    clock: Clock

    def start(self, kernel: Kernel, done: Callable[[], None]) -> None:
        """Run a kernel by the block scheduler. `done` is called after its body."""
        ...

    def complete(self, kernel: Kernel) -> bool:
        """Run the body of a kernel that has ended. Returns whether nothing has failed so far."""
        ...


class Batch:
    """A launched list: kernels, how many others each one waits for, and which wait for it."""

    def __init__(self, kernels: list[Kernel], waits: Sequence[Sequence[int]]) -> None:
        self.kernels = kernels
        self.left = len(kernels)
        self.upstream = [len(direct) for direct in waits]
        self.joins = [upstream > 1 for upstream in self.upstream]
        self.behind: list[list[int]] = [[] for _ in kernels]
        for later, direct in enumerate(waits):
            for earlier in direct:
                self.behind[earlier].append(later)

    def begin(self, runner: Runner, done: Callable[[], None]) -> None:
        """Begin to run. `done` is called at the end of the last kernel."""
        raise NotImplementedError

    def freed(self, number: int) -> list[int]:
        """Note that a kernel has ended. Returns the kernels that waited for it alone."""
        self.left -= 1
        free = []
        for later in self.behind[number]:
            self.upstream[later] -= 1
            if not self.upstream[later]:
                free.append(later)
        return free


class NodeBatch(Batch):
    """A CUDA graph: a kernel starts `node` seconds after the end of the last kernel that it waits for, and
    `join` seconds later if it waits for several.
    """

    def begin(self, runner: Runner, done: Callable[[], None]) -> None:
        """Start the kernels that wait for nothing. The others follow as kernels end."""

        def start(number: int) -> None:
            runner.start(self.kernels[number], lambda: end(number))

        def end(number: int) -> None:
            for later in self.freed(number):
                gap = runner.spec.node + (runner.spec.join if self.joins[later] else 0.0)
                runner.clock.at(runner.clock.now + gap, lambda later=later: start(later))  # type: ignore[misc]
            if not self.left:
                done()

        for number in [n for n, upstream in enumerate(self.upstream) if not upstream]:
            start(number)
