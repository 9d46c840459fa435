"""What networks make their calls with: dense layers, means and filters over fields of their memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.calls import Cost, KernelCall, Tag
from .base import Memory
from .kernels import DENSE, JOIN, MEAN, OBSERVE, THREADS, Kernel, tiles_of


class CallMaker:
    """Makes the calls of one member of a network, such as a chain, an image or a client.

    Args:
        memory: of the network.
        member: number of the member; it stands behind the names of its fields and calls.
        rng: draws weights.
    """

    def __init__(self, memory: Memory, member: int, rng: np.random.Generator) -> None:
        self.memory = memory
        self.member = member
        self.rng = rng

    def field(self, name: str, values: np.ndarray) -> Any:
        """Return the array of a new field of this member, which starts with these values."""
        return self.memory.field(self._full(name), values)

    def segment(self, name: str, part: int | None = None) -> int:
        """Return the id of a field, or of a part of it. Parts are disjoint."""
        return self.memory.segment(self._full(name), None if part is None else ("part", part))

    def call(
        self,
        kernel: Kernel,
        stage: str,
        tiles: int,
        args: Sequence[Any],
        reads: Sequence[int] = (),
        writes: Sequence[int] = (),
        updates: Sequence[int] = (),
        cost: Cost = Cost(),
    ) -> KernelCall:
        """Return a call."""
        launch, tag = self.memory.target.launch(kernel, tiles, args), Tag((self.member,), self.member, stage)
        return KernelCall(self._full(stage), launch, tuple(reads), tuple(writes), tuple(updates), cost, tag)

    def observe(self, x: str, arrays: tuple[Any, Any], rows: int, inputs: int, outputs: int, action: str) -> KernelCall:
        """Return the call that moves the inputs `x` by a chaotic map, which the outputs `action` perturb."""
        size = rows * inputs
        return self.call(
            OBSERVE,
            "observe",
            -(-size // THREADS),
            (*arrays, rows, inputs, outputs),
            reads=(self.segment(action),),
            updates=(self.segment(x),),
            cost=Cost(5.0 * size, 8.0 * size),
        )

    def dense(
        self,
        stage: str,
        source: Any,
        target: Any,
        sizes: tuple[int, int, int],
        kind: int,
        reads: Sequence[int],
        writes: Sequence[int],
        layer: tuple[Any, Any] | None = None,
    ) -> KernelCall:
        """Return a dense layer on all rows.

        Args:
            stage: its name.
            source, target: arrays, (rows, inputs) and (rows, outputs).
            sizes: rows, inputs and outputs.
            kind: of the activation.
            reads, writes: ids of segments.
            layer: weights (inputs, outputs) and biases (outputs,) float32; None draws them.
        """
        rows, k, o = sizes
        every = self.memory.constant(np.array([rows], np.int32))
        args = None, every, source, *(layer or self.memory.layer(self.rng, k, o)), target, k, o, k, o, kind
        cost = Cost(2.0 * rows * k * o, 4.0 * (rows * (k + o) + k * o))
        return self.call(DENSE, stage, tiles_of(rows, o), args, reads=reads, writes=writes, cost=cost)

    def filtered(
        self,
        stage: str,
        source: Any,
        filters: Any,
        target: Any,
        side: int,
        reads: Sequence[int],
        writes: Sequence[int],
    ) -> KernelCall:
        """Return a 3 x 3 filter of each channel of one image, rectified before. `filters` is (9, channels) float32."""
        channels = filters.shape[1]
        size = side * side * channels
        one, first = self.memory.constant(np.ones(1, np.float32)), self.memory.constant(np.zeros(1, np.int32))
        args = source, first, one, filters, target, 1, channels, side, 1
        cost = Cost(18.0 * size, 8.0 * size)
        return self.call(JOIN, stage, -(-size // THREADS), args, reads=reads, writes=writes, cost=cost)

    def mean(
        self,
        stage: str,
        source: Any,
        rows: Sequence[int],
        target: Any,
        size: int,
        reads: Sequence[int],
        writes: Sequence[int] = (),
        updates: Sequence[int] = (),
    ) -> KernelCall:
        """Return the mean of some rows of `size` numbers each."""
        chosen = self.memory.constant(np.array(rows, np.int32))
        cost = Cost(1.0 * size * len(rows), 4.0 * size * (len(rows) + 1))
        args = source, chosen, target, len(rows), size
        return self.call(MEAN, stage, -(-size // THREADS), args, reads, writes, updates, cost)

    def _full(self, name: str) -> str:
        return f"{name}_{self.member}"
