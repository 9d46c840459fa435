"""`FirstRuns`: times the calls of an executor's first runs, from which its planner knows what calls take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..core.calls import Emitter
from ..planning.planners import PLANNERS
from ..planning.profiles import Profile
from ..tracing.trace import Trace
from .base import Options
from .serial import SerialExecutor

_RUNS = 3  # where counts choose the calls, some come first in a later run


class FirstRuns:
    """The first runs of an executor with a planner, which run call by call on one stream and are timed.

    There are none where the options have a profile, or no planner, or where runs are recorded.

    Args:
        executor: name of the executor.
        options: its options.
        profile: gets what is measured.
    """

    def __init__(self, executor: str, options: Options, profile: Profile) -> None:
        self._executor = executor
        self._profile = profile
        planned = options.stream_policy in PLANNERS and options.profile is None and options.record == "off"
        self._left = _RUNS if planned else 0
        self._options = replace(options, device="cuda", record="times", stream_policy="follow") if planned else options

    def run(self, emitters: Iterable[Emitter]) -> Trace | None:
        """Make a run and time its calls. Returns None, and runs nothing, if there were enough of them."""
        if not self._left:
            return None
        self._left -= 1
        with SerialExecutor(self._options) as serial:
            timed = serial.run(emitters)
        if timed.order:
            self._profile.learn(timed)
        trace = Trace(self._executor, "off")
        trace.counters.calls, trace.counters.awaits = timed.counters.calls, timed.counters.awaits
        return trace
