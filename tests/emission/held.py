"""How many bytes of NumPy arrays are held, to see that memory which is not used any more goes back."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from simengine import Simulation

SPARE = 20 * 1024
"""Bytes that a simulation of few shards holds beside `nbytes`: words for the host, and arrays begin on cache lines."""


@contextmanager
def arrays_traced() -> Iterator[Callable[[], int]]:
    """Yields what says how many bytes the arrays have that were made since then and are still there."""
    only_arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)

    def held() -> int:
        gc.collect()
        return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([only_arrays]).traces)

    tracemalloc.start()
    try:
        yield held
    finally:
        tracemalloc.stop()


def assert_nothing_left_over(sim: Simulation, held: int) -> None:
    """A simulation on the host holds the arrays that it counts, and none that its arenas moved from."""
    assert sim.nbytes() <= held <= sim.nbytes() + SPARE
