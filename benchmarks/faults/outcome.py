"""What became of injected faults, and commands that run with one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_FOLDERS = [str(ROOT / folder) for folder in (".", "scheduler", "envs", "training", "configs")]
PYTHONPATH = os.pathsep.join([*_FOLDERS, *filter(None, [os.environ.get("PYTHONPATH")])])
"""This checkout before all that this process imports from."""
_MOST_SECONDS = 300

# Runs Python with the other arguments, once the size of files is limited. A function between fork and exec would not
# do, since programs with JAX must not fork.
_LIMITED = """
import os, resource, sys
most = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


@dataclass
class Outcomes:
    """What became of the trials of one fault.

    Attributes:
        fault: what was done.
        to: to what.
        found: trials in which it was told in one sentence, and nothing was changed.
        recovered: trials after which a second run, or the same one, gave the bits of a run without the fault.
        harmless: trials that changed nothing that is read.
        wrong: one sentence for each trial in which something else happened.
    """

    fault: str
    to: str
    found: int = 0
    recovered: int = 0
    harmless: int = 0
    wrong: list[str] = field(default_factory=list)

    def as_row(self) -> dict[str, Any]:
        """The outcomes as a row of a result file."""
        trials = self.found + self.recovered + self.harmless + len(self.wrong)
        counts = {"found": self.found, "recovered": self.recovered, "harmless": self.harmless}
        return {"fault": self.fault, "to": self.to, "trials": trials, **counts, "wrong": self.wrong}


def started(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None, most_bytes: int | None = None
) -> subprocess.Popen[str]:
    """Start a command of simengine in a process group of its own.

    Args:
        arguments: the command line.
        folder: working folder.
        environment: variables beside those of this process.
        most_bytes: size of the largest file that it may write, as if the disk were full beyond that.
    """
    limit = [] if most_bytes is None else ["-c", _LIMITED, str(most_bytes)]
    return subprocess.Popen(
        [sys.executable, *limit, "-m", "simengine.cli.main", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": PYTHONPATH, "JAX_PLATFORMS": "cpu", **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and standard error stream of a process, once it has ended."""
    said = process.communicate(timeout=_MOST_SECONDS)[1]
    return process.returncode, said


def is_one_sentence(said: str) -> bool:
    """Whether a command told its failure in one line, after warnings if any, and without a traceback."""
    lines = [line for line in said.splitlines() if line.startswith("simengine: ")]
    return len(lines) == 1 and "Traceback" not in said
