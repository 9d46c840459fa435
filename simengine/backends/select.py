"""Makes a backend by its name, or the fastest that is available."""

from __future__ import annotations

from collections.abc import Callable

from simengine.backends.base import Backend
from simengine.backends.cuda import CudaBackend
from simengine.backends.host import HostBackend
from simengine.errors import BackendError, did_you_mean

BACKENDS: tuple[str, ...] = ("cuda", "host", "jax")

_MAKERS: dict[str, Callable[[], Backend]] = {"cuda": CudaBackend, "host": HostBackend}


def make_backend(name: str) -> Backend | None:
    """Make a backend.

    Args:
        name: one of `BACKENDS`, or "auto" for the first of them that is available.

    Returns:
        The backend; None for "jax", which runs no kernel lists.

    Raises:
        ValueError: the name is unknown.
        BackendError: something that the backend needs is missing.
    """
    if name not in ("auto", *BACKENDS):
        hint = did_you_mean(name, BACKENDS)
        raise ValueError(f"unknown backend {name!r}{hint}; choose one of auto, {', '.join(BACKENDS)}")
    if name == "jax":
        return None
    if name != "auto":
        return _MAKERS[name]()
    for maker in _MAKERS.values():
        try:
            return maker()
        except BackendError:
            continue
    return None


def available_backends() -> dict[str, str]:
    """For each backend an empty string if it can run here, or else the reason why it cannot."""
    reasons = {}
    for name in BACKENDS:
        try:
            make_backend(name)
            reasons[name] = ""
        except BackendError as error:
            reasons[name] = str(error)
    return reasons
