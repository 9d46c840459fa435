"""Executors: ways of running kernel lists, chosen by name. One file each; this file is the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from .base import Executor, Options
from .device import DeviceExecutor
from .graph import GraphExecutor
from .serial import SerialExecutor
from .shuffled import ShuffledExecutor
from .streams import StreamsExecutor
from .streams_polling import PollingExecutor
from .threads import ThreadsExecutor


def _streams(options: Options) -> Executor:
    return PollingExecutor(options) if options.completion == "polling" else StreamsExecutor(options)


EXECUTORS: dict[str, Callable[[Options], Executor]] = {
    "device": DeviceExecutor,
    "graph": lambda options: GraphExecutor(options, cached=False),
    "graph-cached": lambda options: GraphExecutor(options, cached=True),
    "serial": SerialExecutor,
    "shuffled": ShuffledExecutor,
    "streams": _streams,
    "threads": ThreadsExecutor,
}


def make_executor(name: str, **options: Any) -> Executor:
    """Make an executor by name; `options` are the fields of `Options`.

    Raises ValueError for an unknown name or value, TypeError for an unknown option, RuntimeError where it cannot run.
    """
    if name not in EXECUTORS:
        raise ValueError(f"unknown executor {name!r}; choose one of {', '.join(sorted(EXECUTORS))}")
    known = [f.name for f in fields(Options)]
    for option in options:
        if option not in known:
            raise TypeError(f"unknown executor option {option!r}; the options are {', '.join(known)}")
    return EXECUTORS[name](Options(**options))


__all__ = ["EXECUTORS", "Executor", "Options", "make_executor"]
