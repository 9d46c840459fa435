"""What a GPU can do, seen beside other processes that use it: the best of as many runs as it takes."""

from __future__ import annotations

import time
from collections.abc import Callable


def best(measure: Callable[[], float], enough: float, seconds: float = 30.0) -> float:
    """The largest of measurements, which are repeated until one is more than `enough`, for so long at most."""
    end, most = time.monotonic() + seconds, measure()
    while most <= enough and time.monotonic() < end:
        most = max(most, measure())
    return most
