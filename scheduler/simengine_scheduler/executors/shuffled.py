"""The shuffled executor: a random legal order in each run, on the host. It finds missing declarations.

    emitters --round-robin--> window of N --random ready call--> the calling thread

Invariants
    1. The window is filled before each choice, so every order that a window of N calls allows can occur.
    2. The choice is uniform among ready calls. The seed determines the sequence of runs.
    3. If a call touches what it did not declare, a result sooner or later differs from that of `serial`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from ..core.calls import Emitter
from ..core.emission import Feeder
from ..core.errors import call_failed
from ..core.window import Window
from ..tracing.trace import Trace
from .base import Executor, Options, finish_run, run_on_host
from .recorder import start_recording


class ShuffledExecutor(Executor):
    """Runs ready calls in random order, one at a time."""

    name = "shuffled"

    def __init__(self, options: Options) -> None:
        self._options = options
        self._window = Window(options.table(self.name), options.window)
        self._random = random.Random(options.seed)

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Run the emitters' calls in a random legal order."""
        trace = Trace(self.name, self._options.record)
        window = self._window
        window.clear()
        recorder = start_recording(trace, first=window.following)
        feeder = Feeder(emitters, lambda seq: seq not in window.calls, window.following)
        try:
            while True:
                while not window.full and (call := feeder.pull()) is not None:
                    window.insert(call)
                    if recorder is not None:
                        recorder.enter(call)
                if not window.ready:  # then the window is empty, since its oldest call is never pending
                    if feeder.idle:
                        continue
                    break
                seq = self._random.choice(window.ready)
                call = window.start(seq)
                if recorder is not None:
                    recorder.issue(seq, 0)
                try:
                    run_on_host(call, seq, recorder)
                except Exception as error:
                    raise call_failed(call, self.name, error) from error
                window.complete(seq)
                if recorder is not None:
                    recorder.observe(seq, 0)
                if feeder.waiting:
                    feeder.release(seq)
        finally:
            feeder.close()
        return finish_run(trace, feeder, recorder)

    def synchronize(self) -> None:
        """Return at once: a run has ended when it returns."""

    def close(self) -> None:
        """Do nothing: the executor holds no threads or streams."""
