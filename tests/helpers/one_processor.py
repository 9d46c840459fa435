"""Programs whose threads wait for each other at barriers run on one processor: waking a thread on another takes longer.

The thread sanitizer finds races by what orders memory, not by what runs at the same time.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` with its output as text. Processes of tests that run at once take different processors."""
    with _one_processor():
        return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@contextmanager
def _one_processor() -> Iterator[None]:
    """Keep this thread on one processor, and so the programs that it starts."""
    if not hasattr(os, "sched_setaffinity"):  # not Linux
        yield
        return
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(usable)[os.getpid() % len(usable)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, usable)
