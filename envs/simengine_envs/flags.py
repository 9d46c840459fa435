"""What went wrong in worlds: `Flags` finds it out without waiting, `Counts` counts it by cause."""

from __future__ import annotations

from collections import deque
from typing import Any

import jax
import numpy as np

from simengine import WORLD_STATUS


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


class Counts:
    """How often worlds were flagged, by the stage that found the number."""

    def __init__(self) -> None:
        self._flagged: deque[Any] = deque()
        self._counts = np.zeros(len(WORLD_STATUS), np.int64)

    def add(self, flagged: jax.Array) -> None:
        """Note the stages (n,) of a step that flagged worlds, 0 where none did, and count those of computed steps."""
        if isinstance(flagged, jax.core.Tracer):  # as in `Flags`
            return
        flagged.copy_to_host_async()
        self._flagged.append(flagged)
        while self._flagged[0].is_ready() and len(self._flagged) > 1:
            self._count()

    def by_stage(self) -> dict[str, int]:
        """The counts of all steps, for which it waits."""
        while self._flagged:
            self._count()
        return dict(zip(WORLD_STATUS[1:], self._counts[1:].tolist(), strict=True))

    def _count(self) -> None:
        flagged = np.asarray(self._flagged.popleft())
        if flagged.any():
            self._counts += np.bincount(flagged, minlength=len(WORLD_STATUS))
