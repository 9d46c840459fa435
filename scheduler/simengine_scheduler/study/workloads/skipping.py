"""A convolutional network whose input chooses its blocks, for several images at once.

    image i:  map --+-- pool -- gate -- bucket -- (counts) --+-- filter -- dense -- merge --+--> map of the next block
                    |                                        |  only if the gate says so    |
                    +----------------------------------------+------------------------------+

After each block a gate looks at the pooled map, and says whether the next block runs or is left out (Wang et al. 2018,
arXiv 1711.09485). The host waits for it. The output perturbs a chaotic map of the image, so that other blocks run in
each step. With form "fixed" every block of every image runs, and the host waits for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...core.calls import AwaitCounts, Cost, Emitter, FixedList, Item, KernelCall
from .base import Network, check_form
from .calls import CallMaker
from .kernels import BOUNDED, BUCKET, LINEAR, ROUTE
from .targets import Target

_COLOURS, _CLASSES, _WAYS = 3, 10, 2  # a gate has two ways: leave out, and run


class _Image:
    """The calls for one image.

    The map that a block reads is that of the latest block that ran. There is a call for each pair of blocks, made when
    it is first needed.
    """

    def __init__(self, make: CallMaker, blocks: int, side: int, channels: int) -> None:
        self._make, self._blocks, self._side, self._channels = make, blocks, side, channels
        pixels, rng = side * side, make.rng
        image = make.field("image", rng.uniform(-1, 1, (pixels, _COLOURS)).astype(np.float32))
        # each map has two rows: the change that its block makes, and the map itself
        self._maps = make.field("maps", np.zeros((2 * (blocks + 1), pixels * channels), np.float32))
        self._filtered = make.field("filtered", np.zeros(pixels * channels, np.float32))
        self._pooled = make.field("pooled", np.zeros((1, channels), np.float32))
        output = make.field("output", np.zeros((1, _CLASSES), np.float32))
        self._seen = make.memory.target.visible(_WAYS)
        observe = make.observe("image", (image, output), 1, pixels * _COLOURS, _CLASSES, "output")
        shown, told, pooled = ((make.segment(name),) for name in ("image", "output", "pooled"))
        stem = make.dense("stem", image, self._maps[1], (pixels, _COLOURS, channels), LINEAR, shown, (self._map(0),))
        self._first = observe, stem
        self._layers = [
            (make.memory.weights(rng, 9, channels, fan_in=9), make.memory.layer(rng, channels, channels))
            for _ in range(blocks)
        ]
        self._pools = [self._pool(block) for block in range(blocks + 1)]
        self._gates = [self._gate(block) for block in range(blocks)]
        self._classify = make.dense("classify", self._pooled, output, (1, channels, _CLASSES), BOUNDED, pooled, told)
        self._made: dict[tuple[int, int], tuple[KernelCall, ...]] = {}

    def _map(self, block: int) -> int:
        """The segment of the map before a block."""
        return self._make.segment("maps", block)

    def _pool(self, block: int) -> KernelCall:
        """The mean over the pixels of the map before a block."""
        pixels, source, written = range(self._side**2), self._maps[2 * block + 1], (self._make.segment("pooled"),)
        read = (self._map(block),)
        return self._make.mean(f"pool{block}", source, pixels, self._pooled, self._channels, read, written)

    def _gate(self, block: int) -> tuple[KernelCall, KernelCall]:
        """The gate of a block, and what tells the host."""
        make, channels = self._make, self._channels
        chosen = make.field(f"chosen{block}", np.zeros(1, np.int32))
        lists, counts = (make.field(f"{n}{block}", np.zeros((_WAYS, 1), np.int32)) for n in ("lists", "counts"))
        ways = make.memory.weights(make.rng, channels, _WAYS, fan_in=channels)
        chose, read = (make.segment(f"chosen{block}"),), (make.segment("pooled"),)
        written = tuple(make.segment(f"{name}{block}") for name in ("lists", "counts"))
        args = self._pooled, ways, chosen, 1, channels, _WAYS
        gate = make.call(ROUTE, f"gate{block}", 1, args, read, chose, cost=Cost(2.0 * _WAYS * channels))
        # All gates tell the host in the same place, which is read before the next gate is issued.
        return gate, make.call(
            BUCKET, f"tell{block}", _WAYS, (chosen, lists, counts, self._seen.argument, 1), chose, written
        )

    def _block(self, block: int, before: int) -> tuple[KernelCall, ...]:
        """The calls of a block that reads an earlier map, which is the latest."""
        if (block, before) not in self._made:
            make, maps, number, pixels = self._make, self._maps, block + 1, self._side**2
            filters, layer = self._layers[block]
            change, kept, name = maps[2 * number], 2 * before + 1, f"block{block}_after{before}"
            read, written, between = self._map(before), self._map(number), make.segment("filtered")
            sizes = pixels, self._channels, self._channels
            self._made[block, before] = (
                make.filtered(f"{name}_filter", maps[kept], filters, self._filtered, self._side, (read,), (between,)),
                make.dense(f"{name}_dense", self._filtered, change, sizes, BOUNDED, (between,), (written,), layer),
                make.mean(
                    f"{name}_merge",
                    maps,
                    (kept, 2 * number),
                    maps[2 * number + 1],
                    change.size,
                    (read,),
                    (),
                    (written,),
                ),
            )
        return self._made[block, before]

    def emit(self) -> Iterator[Item]:
        """Yield one step."""
        yield from self._first
        latest = 0
        for block, (gate, tell) in enumerate(self._gates):
            yield self._pools[latest]
            yield gate
            yield tell
            yield AwaitCounts(tell)
            if self._seen.values[1]:
                yield from self._block(block, latest)
                latest = block + 1
        yield self._pools[latest]
        yield self._classify

    def fixed(self) -> FixedList:
        """Return the list of a step in which every block runs."""
        blocks = (call for block in range(self._blocks) for call in self._block(block, block))
        return FixedList([*self._first, *blocks, self._pools[-1], self._classify])


class SkippingNetwork(Network):
    """A convolutional network that leaves out blocks.

    Args:
        target: where it runs.
        images: how many there are.
        blocks: of each image.
        channels: of every map.
        side: pixels on a side of a map.
        form: "varying" or "fixed".
        seed: of weights and first images.
    """

    def __init__(
        self,
        target: Target,
        images: int = 8,
        blocks: int = 8,
        channels: int = 32,
        side: int = 28,
        form: str = "varying",
        seed: int = 0,
    ) -> None:
        super().__init__("skipping", target, images)
        makers = [CallMaker(self.memory, n, np.random.default_rng((seed, n))) for n in range(images)]
        self._images = [_Image(make, blocks, side, channels) for make in makers]
        self._lists = [image.fixed() for image in self._images] if check_form(form) == "fixed" else None

    def emitters(self) -> Sequence[Emitter]:
        """Return an emitter for each image."""
        return list(self._lists) if self._lists is not None else [image.emit() for image in self._images]
