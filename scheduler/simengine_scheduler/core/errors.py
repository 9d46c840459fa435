"""The error that executors raise for a call that failed, and the choices that a refused name leaves."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from .calls import KernelCall


class CallError(RuntimeError):
    """A kernel call failed.

    Before the error is raised, the executor starts no further call and waits for those that run. The executor can be
    used again unless the error is fatal.

    Attributes:
        call: the call that failed.
        cause: the exception that it raised.
        fatal: whether the CUDA context is lost, so that only a new process can go on.
    """

    def __init__(self, message: str, call: KernelCall, cause: BaseException, fatal: bool = False) -> None:
        super().__init__(message)
        self.call = call
        self.cause = cause
        self.fatal = fatal


def call_failed(call: KernelCall, executor: str, cause: BaseException) -> CallError:
    """Return the error for a call that raised when it was issued, or when it ran on the host."""
    where = f"stage {call.tag.stage!r}, " if call.tag.stage else ""
    return CallError(
        f"call {call.name!r} ({where}shard {call.tag.shard}) failed under executor {executor!r}: "
        f"{type(cause).__name__}: {cause}",
        call,
        cause,
    )


def device_fault(call: KernelCall, executor: str, cause: BaseException) -> CallError:
    """Return the error for a CUDA fault. A later driver call reports a fault, so `call` need not be its cause."""
    return CallError(
        f"a CUDA fault ended the context and was noticed at call {call.name!r} under executor {executor!r} ({cause}); "
        f"start a new process and rerun with executor='serial', check_each=True to name the call that did it",
        call,
        cause,
        fatal=True,
    )


def device_stalled(call: KernelCall, executor: str, cause: BaseException) -> CallError:
    """Return the error for a device that does not end its work in time. `call` was issued last."""
    return CallError(
        f"executor {executor!r} gave up waiting: {cause}; call {call.name!r} of shard {call.tag.shard} was issued "
        f"last; start a new process and rerun with executor='serial', check_each=True to name the call that never ends",
        call,
        cause,
        fatal=True,
    )


def call_stuck(call: KernelCall, executor: str, why: str) -> CallError:
    """Return the error for a list that executor `device` gave up because a call waited too long."""
    return CallError(
        f"executor {executor!r} gave up its list: {why}; what the list writes is undefined, so set the state anew, or "
        f"rerun with executor='serial', check_each=True to see which call does not end",
        call,
        TimeoutError(why),
    )


def choose_one(name: object, known: Sequence[str]) -> str:
    """Return the end of a sentence that refuses a name: the choices, and the one that is nearest to the name."""
    near = get_close_matches(str(name), known, n=1)
    nearest = f" (the nearest is {near[0]!r})" if near else ""
    return f"choose one of {', '.join(known)}{nearest}"
