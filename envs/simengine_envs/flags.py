"""`Flags`: finds out without waiting whether something went wrong in worlds."""

from __future__ import annotations

from collections import deque
from typing import Any

import jax
import numpy as np


class Flags:
    """The flags of steps that were issued and have not been looked at."""

    def __init__(self) -> None:
        self._flags: deque[Any] = deque()

    def add(self, flags: jax.Array) -> None:
        """Note the flags (n,) bool of a step, which may not have been computed yet."""
        if isinstance(flags, jax.core.Tracer):  # the step is part of a program, which has the flags among its results
            return
        flags.copy_to_host_async()
        self._flags.append(flags)

    def found(self) -> np.ndarray | None:
        """The flags of the first step in which a world has one; None if no step that has been computed has one."""
        while self._flags and self._flags[0].is_ready():
            flags = np.asarray(self._flags.popleft())
            if flags.any():
                self._flags.clear()
                return flags
        return None
