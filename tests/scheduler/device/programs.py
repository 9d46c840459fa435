"""Random lists of calls whose tiles are Python functions. Tests run the device protocol with them on host threads."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass

import numpy as np

from simengine_scheduler import KernelCall, Segments
from simengine_scheduler.launch import Tiling
from simengine_scheduler.testing.threaded_device import PythonBody

FIELDS, PARTS = 5, 6


@dataclass(frozen=True)
class Program:
    """A list of calls and the fields that they touch. Fields have parts, and a call works on tiles or as a whole."""

    segments: Segments
    calls: list[KernelCall]
    data: np.ndarray

    def expected(self, order: list[KernelCall]) -> np.ndarray:
        """Run all calls in an order, return the resulting fields, and clear them."""
        self.data[:] = 0
        for call in order:
            call.launch.issue(0)
        result = self.data.copy()
        self.data[:] = 0
        return result


def random_program(seed: int, length: int = 40, tiled: float = 0.7) -> Program:
    """A list of calls, each of which updates a field from others.

    Tile i of a tiled call touches only the parts that the call's tiling gives it. It may share a part with other tiles.
    """
    draw = random.Random(seed)
    segments, data = Segments(), np.zeros((FIELDS, PARTS))
    ids = [segments.intern(f"field{i}") for i in range(FIELDS)]
    calls = []
    for k in range(length):
        reads = tuple(draw.sample(range(FIELDS), draw.randint(0, 2)))
        target = draw.choice([i for i in range(FIELDS) if i not in reads])
        by_tiles = draw.random() < tiled
        tiling = draw.choice([Tiling(), Tiling("row", 2), Tiling("strided", PARTS)]) if by_tiles else Tiling()
        body = _body(data, reads, target, k, tiling if by_tiles else None)
        tiles = (2 * PARTS if tiling.kind != "tile" else PARTS) if by_tiles else 1
        # the two values give two resource classes
        launch = PythonBody(body, tiles, tiling=tiling, registers=draw.choice((64, 128)))
        updates, read = (ids[target],), tuple(ids[i] for i in reads)
        calls.append(KernelCall(f"call{k}", launch, read, (), updates, tiled=(*read, *updates) if by_tiles else ()))
    return Program(segments, calls, data)


def _body(data, reads, target, k, tiling):  # type: ignore[no-untyped-def]
    shared = threading.Lock()

    def whole(tile: int) -> None:
        data[target] = data[target] * 0.5 + k + sum(data[i, ::-1] for i in reads)

    def part(tile: int) -> None:
        at = tile % tiling.size if tiling.kind == "strided" else tile // tiling.size
        added = k + sum(int(data[i, at]) % 7 for i in reads)
        with shared:  # several tiles may share a part; their additions commute
            data[target, at] += added

    return whole if tiling is None else part
