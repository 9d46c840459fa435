"""The memory of NumPy arrays, for tests which show that unused memory is released."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from simengine import Simulation

SPARE = 20 * 1024
"""Bytes that a simulation of few shards may hold beyond `nbytes`: words for the host, and alignment to cache lines."""


@contextmanager
def arrays_traced() -> Iterator[Callable[[], int]]:
    """Yield a function that returns the bytes of all arrays that were made inside the context and still exist."""
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
    """Assert that a simulation on the host holds the arrays in `nbytes`, and none that grown arenas have replaced."""
    assert sim.nbytes() <= held <= sim.nbytes() + SPARE
