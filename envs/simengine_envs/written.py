"""`written_for`: the backend for which functions are traced, where a form suits it. All forms have the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_backend = ContextVar("_backend", default="jax")


@contextmanager
def written_for(backend: str) -> Iterator[None]:
    """Trace functions for a backend."""
    token = _backend.set(backend)
    try:
        yield
    finally:
        _backend.reset(token)


def for_processor() -> bool:
    """Whether functions are traced for the engine's kernels on a CPU."""
    return _backend.get() == "host"


_in_chain = ContextVar("_in_chain", default=False)


@contextmanager
def written_for_chain() -> Iterator[None]:
    """Trace functions for one custom call, in which there are no loops; see `simengine_envs.lanes`."""
    token = _in_chain.set(True)
    try:
        yield
    finally:
        _in_chain.reset(token)


def for_chain() -> bool:
    """Whether functions are traced for one custom call."""
    return _in_chain.get()
