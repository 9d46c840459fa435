"""Errors of the service."""

from __future__ import annotations


class ServiceError(RuntimeError):
    """An error of the service; the base of those below."""


class RequestRefused(ServiceError, ValueError):
    """The owner refused a request and did nothing. The client can go on."""


class ListFailed(ServiceError):
    """A submitted list did not run to its end. `call` names the call that failed. Later calls did not run."""

    def __init__(self, message: str, call: str) -> None:
        super().__init__(message)
        self.call = call


class QueueFull(ServiceError):
    """The queue of a client was full for too long. Nothing was submitted."""


class OwnerLost(ServiceError):
    """The owner has closed or died, or has lost its CUDA context. The client cannot go on."""
