"""Measurements on a GPU that other processes use too: a measurement is repeated until it is good enough."""

from __future__ import annotations

import time
from collections.abc import Callable


def best(measure: Callable[[], float], enough: float, seconds: float = 30.0) -> float:
    """Repeat a measurement until it exceeds `enough` or the time [s] is over, and return the largest value."""
    end, most = time.monotonic() + seconds, measure()
    while most <= enough and time.monotonic() < end:
        most = max(most, measure())
    return most
