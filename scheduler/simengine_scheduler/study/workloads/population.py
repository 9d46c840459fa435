"""A population of policies: networks of different sizes. Each is a mixture of experts, and inputs choose the expert.

    group g:  observe -- route -- bucket -- (counts) --+-- expert 0: dense, dense, dense --+-- act
                                                       +-- expert 2: dense, dense, dense --+

An input is a row of the batch of a group. The router sends it to one of four experts of different widths. Only experts
that were chosen have calls in the list. Inputs follow a chaotic map that the actions perturb, so that the list differs
from step to step. Experts work on disjoint rows, which are a partition of the fields between the layers.

With form "fixed" every expert has calls for all rows, which end early, and the host waits for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.calls import AwaitCounts, Cost, Emitter, FixedList, Item, KernelCall, Tag
from .base import Memory, Network, check_form
from .kernels import BOUNDED, BUCKET, DENSE, OBSERVE, RECTIFIED, ROUTE, THREADS, TILE, Kernel, tiles_of
from .targets import Target

WIDTHS = (0.25, 0.5, 0.75, 1.0)
"""Width of each expert of a group, of the group's own: those of slimmable networks (arXiv 1812.08928)."""


class _Expert:
    """Three layers on the rows that were sent to one expert. There is a call for each number of tiles."""

    def __init__(self, group: _Group, number: int, rng: np.random.Generator) -> None:
        memory, rows = group.memory, group.rows
        width = max(1, int(WIDTHS[number] * group.width))
        sizes = (group.inputs, width, width, group.features)
        fields = ("x", "hidden1", "hidden2", "features")
        strides = (group.inputs, group.width, group.width, group.features)
        member = ("expert", number)
        places, count = group.lists[number], group.counts[number : number + 1]
        self._target = memory.target
        self._by_tiles: dict[int, tuple[KernelCall, ...]] = {}
        self._widths = sizes[1:]
        self._layers = []
        for layer in range(3):
            k, o = sizes[layer], sizes[layer + 1]
            source, target = fields[layer], fields[layer + 1]
            layout = k, o, strides[layer], strides[layer + 1], RECTIFIED
            args = places, count, group.arrays[source], *memory.layer(rng, k, o), group.arrays[target], *layout
            read = memory.segment(group.field(source), None if source == "x" else member)
            call = group.call(
                DENSE,
                f"expert{number}_layer{layer + 1}",
                tiles_of(rows, o),
                args,
                reads=(read, *group.ids("lists", "counts")),
                writes=(memory.segment(group.field(target), member),),
                cost=Cost(2.0 * rows * k * o, 4.0 * (rows * (k + o) + k * o)),
            )
            self._layers.append(call)

    def calls(self, rows: int) -> tuple[KernelCall, ...]:
        """Return the calls for a number of rows."""
        tiles = -(-rows // TILE)
        if tiles not in self._by_tiles:
            self._by_tiles[tiles] = tuple(
                replace(call, launch=self._target.with_tiles(call.launch, tiles_of(rows, o)))
                for call, o in zip(self._layers, self._widths, strict=True)
            )
        return self._by_tiles[tiles]


class _Group:
    """One network of the population, and its batch."""

    def __init__(self, memory: Memory, number: int, rows: int, sizes: tuple[int, int, int], seed: int) -> None:
        rng = np.random.default_rng((seed, number))
        self.memory, self.number, self.rows = memory, number, rows
        self.inputs, self.width, self.outputs = sizes
        self.features = self.width // 2
        experts = len(WIDTHS)
        starts = {
            "x": rng.uniform(-1, 1, (rows, self.inputs)).astype(np.float32),
            "chosen": np.zeros(rows, np.int32),
            "lists": np.zeros((experts, rows), np.int32),
            "counts": np.zeros(experts, np.int32),
            "hidden1": np.zeros((rows, self.width), np.float32),
            "hidden2": np.zeros((rows, self.width), np.float32),
            "features": np.zeros((rows, self.features), np.float32),
            "action": np.zeros((rows, self.outputs), np.float32),
        }
        self.arrays = {name: memory.field(self.field(name), values) for name, values in starts.items()}
        self.lists, self.counts = self.arrays["lists"], self.arrays["counts"]
        self._seen = memory.target.visible(experts)
        self._before = self._make_before(rng)
        self._experts = [_Expert(self, e, rng) for e in range(experts)]
        self._act = self._make_act(rng)

    def field(self, name: str) -> str:
        """Return the name of a field in the table of segments."""
        return f"{name}_{self.number}"

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
        """Return a call of this group."""
        launch = self.memory.target.launch(kernel, tiles, args)
        tag = Tag((self.number,), self.number, stage)
        return KernelCall(f"{stage}_{self.number}", launch, tuple(reads), tuple(writes), tuple(updates), cost, tag)

    def ids(self, *names: str) -> tuple[int, ...]:
        """Return the segments of fields."""
        return tuple(self.memory.segment(self.field(name)) for name in names)

    def _make_before(self, rng: np.random.Generator) -> tuple[KernelCall, KernelCall, KernelCall]:
        rows, inputs, arrays, experts = self.rows, self.inputs, self.arrays, len(WIDTHS)
        router = self.memory.weights(rng, inputs, experts, fan_in=inputs)
        observe = self.call(
            OBSERVE,
            "observe",
            -(-rows * inputs // THREADS),
            (arrays["x"], arrays["action"], rows, inputs, self.outputs),
            reads=self.ids("action"),
            updates=self.ids("x"),
            cost=Cost(5.0 * rows * inputs, 8.0 * rows * inputs),
        )
        route = self.call(
            ROUTE,
            "route",
            -(-rows // THREADS),
            (arrays["x"], router, arrays["chosen"], rows, inputs, experts),
            reads=self.ids("x"),
            writes=self.ids("chosen"),
            cost=Cost(2.0 * rows * inputs * experts, 4.0 * rows * (inputs + 1)),
        )
        bucket = self.call(
            BUCKET,
            "bucket",
            experts,
            (arrays["chosen"], arrays["lists"], arrays["counts"], self._seen.argument, rows),
            reads=self.ids("chosen"),
            writes=self.ids("lists", "counts"),
            cost=Cost(0.0, 4.0 * rows * (experts + 1)),
        )
        return observe, route, bucket

    def _make_act(self, rng: np.random.Generator) -> KernelCall:
        memory, rows, k, o = self.memory, self.rows, self.features, self.outputs
        every = memory.constant(np.array([rows], np.int32))
        source, target = self.arrays["features"], self.arrays["action"]
        args = None, every, source, *memory.layer(rng, k, o), target, k, o, k, o, BOUNDED
        return self.call(
            DENSE,
            "act",
            tiles_of(rows, o),
            args,
            reads=self.ids("features"),
            writes=self.ids("action"),
            cost=Cost(2.0 * rows * k * o, 4.0 * (rows * (k + o) + k * o)),
        )

    def emit(self) -> Iterator[Item]:
        """Yield one step."""
        yield from self._before
        yield AwaitCounts(self._before[-1])
        for expert, rows in zip(self._experts, self._seen.values.tolist(), strict=True):
            if rows:
                yield from expert.calls(rows)
        yield self._act

    def fixed(self) -> FixedList:
        """Return the list of a step with all experts."""
        experts = (call for expert in self._experts for call in expert.calls(self.rows))
        return FixedList([*self._before, *experts, self._act])


class Population(Network):
    """A population of policies.

    Args:
        target: where it runs.
        rows: inputs of each policy.
        policies: how many there are; each has random sizes.
        most: largest width of a hidden layer.
        form: "varying" or "fixed".
        seed: of sizes, weights and first inputs.
    """

    def __init__(
        self, target: Target, rows: int = 64, policies: int = 8, most: int = 256, form: str = "varying", seed: int = 0
    ) -> None:
        super().__init__("population", target, rows * policies)
        rng = np.random.default_rng(seed)
        widths = [max(4, most >> shift) for shift in range(3)]
        self.groups = [
            _Group(
                self.memory,
                number,
                rows,
                (int(rng.integers(8, 65)), int(rng.choice(widths)), int(rng.integers(2, 13))),
                seed,
            )
            for number in range(policies)
        ]

        self._lists = [group.fixed() for group in self.groups] if check_form(form) == "fixed" else None

    def emitters(self) -> Sequence[Emitter]:
        """Return an emitter for each policy."""
        return list(self._lists) if self._lists is not None else [group.emit() for group in self.groups]
