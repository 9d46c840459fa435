"""Traces: what ran when, whether that was legal, and pictures of it.

events      what a trace consists of, and times that follow from it
trace       the trace of one run, which executors fill
validation  whether a trace respects every hazard
holds       what each call waited for
perfetto    the trace as a file for ui.perfetto.dev
timeline    the trace as a picture
access      which kernel touches which buffer, as a table and a picture
"""

from .access import AccessTable
from .events import Counters, Event, Step
from .trace import Trace
from .validation import validate

__all__ = [
    "AccessTable",
    "Counters",
    "Event",
    "Step",
    "Trace",
    "validate",
]
