"""Programs whose threads wait for each other at barriers run on one processor: waking a thread on another takes longer.

The thread sanitizer finds races by what orders memory, not by what runs at the same time.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import Any


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` with its output as text. Processes of tests that run at once take different processors."""
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=_stay, **options)


def _stay() -> None:
    if hasattr(os, "sched_setaffinity"):  # Linux
        usable = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {usable[os.getppid() % len(usable)]})
