"""`Stalls`: finds out without waiting whether worlds stood still since the memory for contacts was full."""

from __future__ import annotations

from collections import deque
from typing import Any

import jax
import numpy as np


class Stalls:
    """The flags of steps that were issued and have not been looked at."""

    def __init__(self) -> None:
        self._flags: deque[Any] = deque()

    def add(self, stalled: jax.Array) -> None:
        """Note the flags (n,) bool of a step, which may not have been computed yet."""
        if isinstance(stalled, jax.core.Tracer):  # the step is part of a program, which has the flags among its results
            return
        stalled.copy_to_host_async()
        self._flags.append(stalled)

    def found(self) -> np.ndarray | None:
        """The flags of the first step in which a world stood still; None if no step that has been computed has one."""
        while self._flags and self._flags[0].is_ready():
            stalled = np.asarray(self._flags.popleft())
            if stalled.any():
                self._flags.clear()
                return stalled
        return None
