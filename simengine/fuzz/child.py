"""The parent's side of the child process that judges models: a crash or a hang of it is an outcome, too."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from simengine.fuzz.judge import Outcome
from simengine.fuzz.worker import MEMORY

_PATIENCE = 5.0  # times the limit that may pass on a clock
# Models, and bytes of addresses, after which a new child is started, so that a leak does not grow.
_MOST_SERVED, _MOST_ADDRESSES = 400, MEMORY // 2
_FAILURES = ("raises", "crashes")


class Child:
    """A process that judges models, and is replaced after a crash or a hang. It is a context manager.

    Args:
        backend: "cuda", "host", "jax" or "auto".
        dtypes: the precisions that are compared.
        states: states for each model.
        limit: seconds that a model may take, of processor time; five times as long on a clock, since machines are busy.
        processors: numbers of those that the process may use; all that this process may, if there are none.
    """

    def __init__(
        self, backend: str, dtypes: Sequence[str], states: int, limit: float, processors: Collection[int] = ()
    ):
        self._request: dict[str, Any] = {"backend": backend, "dtypes": list(dtypes), "states": states}
        self._limit, self._processors = limit, processors
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="simengine-fuzz-", ignore_cleanup_errors=True)
        self._served = 0

    def judge(self, text: str, seed: int, within: float | None = None) -> Outcome:
        """Judge a model. One that takes too long has a second try, since the machine may have been asleep.

        So has one that runs out of memory where earlier models may have taken some. A model on which MuJoCo fails
        without the engine, too, is undecided.

        Args:
            text: MJCF.
            seed: of its states.
            within: seconds on a clock after which it hangs, without a second try; None for the child's own limit.
        """
        outcome = self._judge(text, seed, within)
        starved = outcome.kind == "raises" and outcome.reasons[0].partition(" in ")[0].endswith("MemoryError")
        if starved and self._served > 1:
            self._end()
            outcome = self._judge(text, seed)
        elif outcome.kind == "hangs" and within is None:
            outcome = self._judge(text, seed)
        if outcome.kind in _FAILURES and self._judge(text, seed, alone=True).kind in _FAILURES:
            self._end()
            return Outcome("undecided", [f"MuJoCo itself fails: {outcome.reasons[0]}"])
        return outcome

    def _judge(self, text: str, seed: int, within: float | None = None, alone: bool = False) -> Outcome:
        if self._process is not None and (self._served >= _MOST_SERVED or self._is_large(self._process.pid)):
            self._end()
        process = self._process or self._start()
        self._served += 1
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            request = {**self._request, "text": text, "seed": seed, "alone": alone}
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            return self._crashed(process)
        line = _line(process, self._limit, _PATIENCE * self._limit if within is None else within)
        if line is None:
            self._end()
            return Outcome("hangs", [f"no answer in {self._limit:g} s of processor time"])
        return Outcome(**json.loads(line)) if line else self._crashed(process)

    def _is_large(self, pid: int) -> bool:
        """Whether a process has much of the addresses that it may have; drivers of other backends reserve more."""
        return self._request["backend"] == "host" and _addresses(pid) > _MOST_ADDRESSES

    def _crashed(self, process: subprocess.Popen[bytes]) -> Outcome:
        code = process.wait()
        self._end()
        what = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Outcome("crashes", [f"the process ended by {what}"])

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        environment["OPENBLAS_NUM_THREADS"] = "1"  # its matrices are small, and other children have the other cores
        if "float64" in self._request["dtypes"]:
            environment["JAX_ENABLE_X64"] = "1"
        # MuJoCo writes its log into the working folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "simengine.fuzz.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.name,
            env=environment,
        )
        if self._processors and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(self._process.pid, self._processors)
        self._served = 0
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._end()
        self._folder.cleanup()


def _line(process: subprocess.Popen[bytes], seconds: float, patience: float) -> bytes | None:
    """The next line of a process; empty if it ends, None if no line comes in time. Nothing follows a line.

    Args:
        process: the process.
        seconds: of processor time that it may take.
        patience: seconds that may pass on a clock.
    """
    assert process.stdout is not None
    end, busy = time.monotonic() + patience, _processor_time(process.pid)
    while (left := end - time.monotonic()) > 0 and _processor_time(process.pid) - busy < seconds:
        ready, _, _ = select.select([process.stdout], [], [], min(seconds, left, 1.0))
        if ready:
            return process.stdout.readline()
    return None


def _addresses(pid: int) -> int:
    """Bytes of addresses of a process; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _processor_time(pid: int) -> float:
    """Seconds of processor time of a process and of those that it has waited for; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
