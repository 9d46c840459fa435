"""`on_own_gpu`: an engine's functions work on the GPU of its backend, whichever GPU is current."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any, TypeVar

EngineClass = TypeVar("EngineClass", bound=type)


def on_own_gpu(engine: EngineClass) -> EngineClass:
    """Make the GPU of an engine's backend the current one during each of the engine's public functions.

    CuPy allocates and launches on the current GPU of a thread. Other code changes it: JAX leaves the last GPU current
    when it starts.
    """
    for name, function in list(vars(engine).items()):
        if isfunction(function) and not name.startswith("_"):
            setattr(engine, name, _with_gpu(function))
    return engine


def _with_gpu(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        gpu = self.backend.own_gpu()
        if gpu is None:
            return function(self, *args, **kwargs)
        with gpu:
            return function(self, *args, **kwargs)

    return call
