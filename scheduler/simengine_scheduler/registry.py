"""The registry of executors: every way of running lists of kernels by its name.

`EXECUTORS` maps a name to a function that makes the executor from `Options`. A new executor is a file in `executors/`
and an entry here; a program may also enter one of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from .core.errors import choose_one
from .executors.auto import AutoExecutor
from .executors.base import Executor, Options
from .executors.device import DeviceExecutor
from .executors.graph import GraphExecutor
from .executors.pipeline import PipelineExecutor
from .executors.serial import SerialExecutor
from .executors.shuffled import ShuffledExecutor
from .executors.streams import StreamsExecutor
from .executors.streams_planned import PlannedExecutor
from .executors.streams_polling import PollingExecutor
from .executors.streams_several import SeveralExecutor
from .executors.threads import ThreadsExecutor
from .planning.planners import PLANNERS

_STREAMS = 32  # so many chains may go on at once without one of them waiting behind another
_WINDOW = 128  # calls, four for each of these streams


def _streams(options: Options) -> Executor:
    """Choose the form of `streams` that the options ask for."""
    if len(options.gpus) > 1:
        if options.completion == "polling" or options.stream_policy in PLANNERS:
            raise ValueError(
                f"streams on GPUs {options.gpus} wait for each other on the GPUs, call by call; give "
                f"completion='events' and a policy of single calls"
            )
        return SeveralExecutor(options)
    if options.stream_policy in PLANNERS:
        if options.completion == "polling":
            raise ValueError(
                f"stream_policy={options.stream_policy!r} plans calls that wait on the device; "
                f"give completion='events', or a policy of single calls"
            )
        return PlannedExecutor(options)
    if options.completion == "polling":
        return PollingExecutor(options)
    return StreamsExecutor(options.or_else(streams=_STREAMS, window=_WINDOW))


def _simulated(options: Options) -> Executor:
    """Load the model of a GPU, which no other executor needs, and make the executor that runs on it."""
    from .gpu_model.simulated import SimulatedExecutor

    return SimulatedExecutor(options.or_else(streams=8, window=32), make_known)  # as results of the model have it


def make_known(name: str, options: Options) -> Executor:
    """Make an executor by name from options. Raises ValueError for a name that `EXECUTORS` lacks."""
    if name not in EXECUTORS:
        raise ValueError(f"unknown executor {name!r}; {choose_one(name, sorted(EXECUTORS))}")
    return EXECUTORS[name](options)


EXECUTORS: dict[str, Callable[[Options], Executor]] = {
    "auto": lambda options: AutoExecutor(options, make_known),
    "device": DeviceExecutor,
    "graph": lambda options: GraphExecutor(options, cached=False),
    "graph-cached": lambda options: GraphExecutor(options, cached=True),
    "pipeline": PipelineExecutor,
    "serial": SerialExecutor,
    "shuffled": ShuffledExecutor,
    "simulated": _simulated,
    "streams": _streams,
    "threads": ThreadsExecutor,
}
"""Executors by name: each entry makes one from `Options`. A program may add its own."""


def make_executor(name: str, **options: Any) -> Executor:
    """Make an executor by name; it is a context manager that closes itself.

    Args:
        name: a key of `EXECUTORS`.
        options: fields of `Options`.

    Raises:
        ValueError: the name or a value is unknown.
        TypeError: an option is unknown.
        RuntimeError: the executor cannot run on this machine.
    """
    known = [f.name for f in fields(Options)]
    for option in options:
        if option not in known:
            raise TypeError(f"unknown executor option {option!r}; {choose_one(option, known)}")
    return make_known(name, Options(**options))
