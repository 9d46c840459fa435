"""A randomly wired network: stages of Watts-Strogatz graphs whose nodes are small convolutions, for one image.

    stage:  input nodes --+-- node --+-- ...  --+-- mean of the nodes that nothing follows --> next stage
                          +-- node --+          |
    node:   weighted sum of nodes, rectified, 3 x 3 filter of each channel | dense over channels

Graphs are those of Xie et al. 2019 (arXiv 1904.01569): a ring of N nodes with K neighbours each, every edge rewired
with probability P, and directed from the lower to the higher number. The list is the same in every step. The output of
the network perturbs a chaotic map of its image, so that the numbers differ from step to step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.calls import Cost, Emitter, FixedList, KernelCall, Tag
from .base import Network
from .kernels import BOUNDED, DENSE, JOIN, LINEAR, MEAN, OBSERVE, THREADS, Kernel, tiles_of
from .targets import Target

_CLASSES = 10
_COLOURS = 3


class _Images(NamedTuple):
    """Square images of one size: the name of the field, its array (number, side, side, channels) float32, and sizes."""

    name: str
    array: Any
    side: int
    channels: int


def watts_strogatz(nodes: int, neighbours: int, rewired: float, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return the edges of a random graph, each from the lower to the higher number, sorted.

    Args:
        nodes: how many there are.
        neighbours: edges of a node before any is rewired; even, and less than `nodes`.
        rewired: probability that an edge gets another end.
        rng: generator of random numbers.

    Raises:
        ValueError: `neighbours` is odd or too large.
    """
    if neighbours % 2 or not 0 < neighbours < nodes:
        raise ValueError(
            f"a ring of {nodes} nodes cannot have {neighbours} neighbours each; give an even number below that of nodes"
        )
    ends: list[set[int]] = [set() for _ in range(nodes)]
    for node in range(nodes):
        for step in range(1, neighbours // 2 + 1):
            ends[node].add((node + step) % nodes)
            ends[(node + step) % nodes].add(node)
    for step in range(1, neighbours // 2 + 1):
        for node in range(nodes):
            old = (node + step) % nodes
            free = [n for n in range(nodes) if n != node and n not in ends[node]]
            if rng.random() < rewired and free and old in ends[node]:
                new = int(rng.choice(free))
                ends[node].discard(old)
                ends[old].discard(node)
                ends[node].add(new)
                ends[new].add(node)
    return sorted((a, b) for a in range(nodes) for b in ends[a] if a < b)


class WiredNetwork(Network):
    """A randomly wired network.

    Args:
        target: where it runs.
        nodes: nodes of each stage.
        stages: how many; each halves the sides of images and doubles the channels.
        channels: channels of the first stage.
        side: pixels on a side of the image.
        neighbours, rewired: K and P of the graphs.
        seed: of graphs, weights and the first image.
    """

    def __init__(
        self,
        target: Target,
        nodes: int = 32,
        stages: int = 3,
        channels: int = 32,
        side: int = 56,
        neighbours: int = 4,
        rewired: float = 0.75,
        seed: int = 0,
    ) -> None:
        super().__init__("wired", target, 1)
        self._rng = np.random.default_rng(seed)
        self._calls: list[KernelCall] = []
        image = self._rng.uniform(-1, 1, (1, side, side, _COLOURS)).astype(np.float32)
        shown = _Images("image", self.memory.field("image", image), side, _COLOURS)
        self._output = self.memory.field("output", np.zeros((1, _CLASSES), np.float32))
        self._observe(shown)
        self.graphs = []
        for stage in range(stages):
            edges = watts_strogatz(nodes, neighbours, rewired, self._rng)
            self.graphs.append(edges)
            shown = self._stage(stage, nodes, edges, shown, channels << stage)
        self._classify(shown)
        self.list = FixedList(self._calls)

    def emitters(self) -> Sequence[Emitter]:
        """Return the fixed list of all calls."""
        return [self.list]

    def _observe(self, image: _Images) -> None:
        size = image.side * image.side * image.channels
        args = (image.array, self._output, 1, size, _CLASSES)
        access = {"reads": self._ids("output"), "updates": self._ids("image")}
        self._add(OBSERVE, "observe", _over(size), args, cost=Cost(5.0 * size, 8.0 * size), **access)

    def _stage(
        self, stage: int, nodes: int, edges: Sequence[tuple[int, int]], given: _Images, channels: int
    ) -> _Images:
        """Add the calls of a stage. Returns the images that it makes."""
        side = -(-given.side // 2)
        shape = (side, side, channels)
        widest = max(channels, given.channels)
        made = f"nodes{stage}", self.memory.field(f"nodes{stage}", np.zeros((nodes, *shape), np.float32))
        filtered = np.zeros((nodes, side * side * widest), np.float32)
        between = f"filtered{stage}", self.memory.field(f"filtered{stage}", filtered)
        for node in range(nodes):
            before = [a for a, b in edges if b == node]
            source = _Images(*made, side, channels) if before else given
            self._node(f"stage{stage}", node, source, before, between, _Images(*made, side, channels))
        ends = sorted(set(range(nodes)) - {a for a, _ in edges})
        name, size = f"stage{stage}", side * side * channels
        mean = self.memory.field(name, np.zeros((1, *shape), np.float32))
        reads = tuple(self.memory.segment(made[0], ("node", end)) for end in ends)
        args = (made[1], self._integers(ends), mean, len(ends), size)
        cost = Cost(1.0 * size * len(ends), 4.0 * size * (len(ends) + 1))
        self._add(MEAN, f"{name}.mean", _over(size), args, reads=reads, writes=self._ids(name), cost=cost)
        return _Images(name, mean, side, channels)

    def _node(
        self, stage: str, node: int, given: _Images, before: Sequence[int], between: tuple[str, Any], made: _Images
    ) -> None:
        """Add the two calls of a node. A node without predecessors reads the images that the stage is given."""
        rng, member = self._rng, ("node", node)
        count, channels, pixels = max(1, len(before)), given.channels, made.side * made.side
        joined, stride = between[1][node, : pixels * channels], 1 if before else 2
        weights = self.memory.constant(rng.dirichlet(np.ones(count)).astype(np.float32))
        filters = self.memory.weights(rng, 9, channels, fan_in=9)
        places = self._integers(before or [0])
        args = given.array, places, weights, filters, joined, count, channels, given.side, stride
        reads = tuple(self.memory.segment(given.name, ("node", n)) for n in before) or self._ids(given.name)
        writes = (self.memory.segment(between[0], member),)
        size = pixels * channels
        cost = Cost(9.0 * size * (2 * count + 2), 4.0 * (given.side**2 * channels * count + size))
        self._add(JOIN, f"{stage}.join{node}", _over(size), args, reads=reads, writes=writes, cost=cost)
        target = (self.memory.segment(made.name, member),)
        self._dense(
            f"{stage}.dense{node}", joined, made.array[node], pixels, channels, made.channels, LINEAR, writes, target
        )

    def _classify(self, last: _Images) -> None:
        """Add the calls from the images of the last stage to the output: the mean over pixels and a dense layer."""
        pixels, channels = last.side * last.side, last.channels
        pooled = self.memory.field("pooled", np.zeros((1, channels), np.float32))
        args = (last.array, self._integers(range(pixels)), pooled, pixels, channels)
        cost = Cost(1.0 * pixels * channels, 4.0 * pixels * channels)
        ids = self._ids(last.name), self._ids("pooled")
        self._add(MEAN, "pool", _over(channels), args, reads=ids[0], writes=ids[1], cost=cost)
        self._dense("classify", pooled, self._output, 1, channels, _CLASSES, BOUNDED, ids[1], self._ids("output"))

    def _dense(
        self,
        name: str,
        x: Any,
        y: Any,
        rows: int,
        k: int,
        o: int,
        kind: int,
        reads: tuple[int, ...],
        writes: tuple[int, ...],
    ) -> None:
        """Add a dense layer from k to o features of every row."""
        args = None, self._integers([rows]), x, *self.memory.layer(self._rng, k, o), y, k, o, k, o, kind
        cost = Cost(2.0 * rows * k * o, 4.0 * (rows * (k + o) + k * o))
        self._add(DENSE, name, tiles_of(rows, o), args, reads=reads, writes=writes, cost=cost)

    def _add(self, kernel: Kernel, name: str, tiles: int, args: Sequence[Any], cost: Cost, **access: Any) -> None:
        launch = self.target.launch(kernel, tiles, args)
        tag = Tag((0,), 0, kernel.name)
        self._calls.append(KernelCall(name, launch, **{"reads": (), "writes": (), **access}, cost=cost, tag=tag))

    def _ids(self, name: str) -> tuple[int, ...]:
        return (self.memory.segment(name),)

    def _integers(self, values: Sequence[int] | range) -> Any:
        return self.memory.constant(np.array(values, np.int32))


def _over(threads: int) -> int:
    """Return the tiles of a number of threads."""
    return -(-threads // THREADS)
