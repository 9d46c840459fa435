"""`Processors`: the threads of a pool stay away from the processor of their caller, who works, too.

A kernel may wake a thread on the processor of the one that wakes it. Both then share it until the kernel balances
loads, which takes some milliseconds, and so may be longer than the run.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of Linux: the time in each period that a container may use, and the period


def usable_processors() -> int:
    """The number of processors that this process may use, which a container or `taskset` may have lowered."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processors_of_quota() -> int:
    """The number of processors that this process may keep busy, which a container's quota may have lowered, too."""
    usable = usable_processors()
    try:
        quota, period = map(int, _QUOTA.read_text().split())
    except (OSError, ValueError):  # there is no such file, or no limit, which it calls "max"
        return usable
    return max(1, min(usable, quota // period))


class Processors:
    """Where the threads of a pool may run. On Linux only; elsewhere it does nothing.

    Args:
        threads: the threads of the pool, which are alive.
    """

    def __init__(self, threads: Sequence[Thread]) -> None:
        self._current = _getcpu() if threads else None
        self._threads = threads
        self._left_free = -1  # the processor where no thread of the pool runs

    def leave_free(self) -> None:
        """Let the threads run wherever the calling thread may, but not where it runs now."""
        if self._current is None or (here := self._current()) == self._left_free:
            return
        if others := os.sched_getaffinity(0) - {here}:
            self._left_free = here
            for thread in self._threads:
                with suppress(OSError, TypeError):  # a thread that has ended, or has no number yet
                    os.sched_setaffinity(thread.native_id, others)  # type: ignore[arg-type]


def _getcpu() -> Callable[[], int] | None:
    """The function that returns the processor of the calling thread."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.PyDLL(None), "sched_getcpu", None)
