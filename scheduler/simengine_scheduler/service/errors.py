"""Errors of the multi-process mode."""

from __future__ import annotations


class ServiceError(RuntimeError):
    """Something that several processes did together went wrong."""


class RequestRefused(ServiceError, ValueError):
    """The owner refused a request; nothing of it was done, and the client can go on."""


class ListFailed(ServiceError):
    """A submitted list did not run to its end; `call` names the call that failed, and what followed it did not run."""

    def __init__(self, message: str, call: str) -> None:
        super().__init__(message)
        self.call = call


class QueueFull(ServiceError):
    """A client's queue had no room in time; nothing was submitted."""


class OwnerLost(ServiceError):
    """The owner has closed or died, or lost its CUDA context; this client cannot go on."""
