"""Executors: ways of running kernel lists, chosen by name. One file each; this file is the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from ..planning import PLANNERS
from .auto import AutoExecutor
from .base import Executor, Options, run_repeatedly
from .device import DeviceExecutor
from .graph import GraphExecutor
from .pipeline import PipelineExecutor
from .serial import SerialExecutor
from .shuffled import ShuffledExecutor
from .simulated import SimulatedExecutor
from .streams import StreamsExecutor
from .streams_planned import PlannedExecutor
from .streams_polling import PollingExecutor
from .threads import ThreadsExecutor


def _streams(options: Options) -> Executor:
    if options.stream_policy in PLANNERS:
        if options.completion == "polling":
            raise ValueError(
                f"stream_policy={options.stream_policy!r} plans calls that wait on the device; "
                f"give completion='events', or a policy of single calls"
            )
        return PlannedExecutor(options)
    return PollingExecutor(options) if options.completion == "polling" else StreamsExecutor(options)


def _known(name: str, options: Options) -> Executor:
    if name not in EXECUTORS:
        raise ValueError(f"unknown executor {name!r}; choose one of {', '.join(sorted(EXECUTORS))}")
    return EXECUTORS[name](options)


EXECUTORS: dict[str, Callable[[Options], Executor]] = {
    "auto": lambda options: AutoExecutor(options, _known),
    "device": DeviceExecutor,
    "graph": lambda options: GraphExecutor(options, cached=False),
    "graph-cached": lambda options: GraphExecutor(options, cached=True),
    "pipeline": PipelineExecutor,
    "serial": SerialExecutor,
    "shuffled": ShuffledExecutor,
    "simulated": lambda options: SimulatedExecutor(options, _known),
    "streams": _streams,
    "threads": ThreadsExecutor,
}
"""Executors by name: each entry makes one from `Options`. A program may add its own."""


def make_executor(name: str, **options: Any) -> Executor:
    """Make an executor by name; `options` are the fields of `Options`.

    Raises ValueError for an unknown name or value, TypeError for an unknown option, RuntimeError where it cannot run.
    """
    known = [f.name for f in fields(Options)]
    for option in options:
        if option not in known:
            raise TypeError(f"unknown executor option {option!r}; the options are {', '.join(known)}")
    return _known(name, Options(**options))


__all__ = ["EXECUTORS", "AutoExecutor", "Executor", "Options", "make_executor", "run_repeatedly"]
