"""Waits that end: after a limit, the host raises `Stalled` where it would wait for the device for ever.

`SIMENGINE_PATIENCE` is the limit of the engine [s]; without it there is none. Compiled code queries events through
`PatientDriver.query`, so its waits end, too. After the first `Stalled`, every wait of a driver raises it at once: what
the device still does is not known.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from threading import Thread
from time import monotonic, sleep
from typing import Any

from ..native.issuer import Functions
from .driver import Driver

VARIABLE = "SIMENGINE_PATIENCE"

_STALLED = 100_000  # what the query that compiled code calls returns after the limit; no status of CUDA
_PENDING = 600  # what it returns before: cudaErrorNotReady
_LONGEST_SLEEP = 1e-3  # seconds
_Query = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64)


class Stalled(TimeoutError):
    """The device did not end its work within the limit."""


def limit() -> float | None:
    """Return the limit in the environment [s], or None. Raises ValueError for what is no time to wait."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ValueError(f"{VARIABLE}={text} is no time to wait; give more than 0 seconds, or unset it")
    return seconds


def within(seconds: float | None, wait: Callable[[], None], what: str) -> None:
    """Call a function that blocks, on a thread of its own if there is a limit.

    Args:
        seconds: the limit; None for none.
        wait: the function. What it raises is raised here.
        what: what it waits for, as the error says it.

    Raises:
        Stalled: it has not returned within the limit. Its thread goes on.
    """
    if seconds is None:
        wait()
        return
    raised: list[BaseException] = []

    def run() -> None:
        try:
            wait()
        except BaseException as error:
            raised.append(error)

    thread = Thread(target=run, name="simengine-patience", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise Stalled(f"{what} did not end within {VARIABLE}={seconds:g} s; start a new process")
    if raised:
        raise raised[0]


class PatientDriver:
    """Another driver, with a limit on how long the host waits for one event or stream.

    Args:
        driver: the driver.
        patience: the limit [s].
    """

    def __init__(self, driver: Driver, patience: float) -> None:
        self._driver: Any = driver
        self._patience = patience
        self._since: dict[int, float] = {}  # event -> when it was first found not to be complete
        self._event: int | None = None
        self._error: Stalled | None = None
        self._failed: Exception | None = None  # what a query by compiled code raised
        self._query = _Query(self._queried)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def record(self, event: int, stream: int) -> None:
        """Record an event. The host's patience with it begins again."""
        self._since.pop(event, None)
        self._driver.record(event, stream)

    def query(self, event: int) -> bool:
        """Return whether an event has completed. Raises Stalled if queries have found it pending for too long."""
        if self._driver.query(event):
            self._since.pop(event, None)
            return True
        if self._error is not None:
            raise self._error
        if monotonic() - self._since.setdefault(event, monotonic()) > self._patience:
            self._error = Stalled(f"the device has not ended its work within {self._patience:g} s")
            raise self._error
        return False

    def synchronize(self, stream: int) -> None:
        """Wait until a stream is empty. Raises Stalled if that takes too long."""
        if self._event is None:
            self._event = self._driver.create_event(False)
        self.record(self._event, stream)
        pause = 0.0
        while not self.query(self._event):
            sleep(pause)
            pause = min(_LONGEST_SLEEP, pause + 1e-6)
        self._driver.synchronize(stream)  # raises the errors of kernels that have ended

    def functions(self) -> Functions | None:
        """Return the driver's functions for compiled code, with queries that end."""
        functions: Functions | None = self._driver.functions()
        address = ctypes.cast(self._query, ctypes.c_void_p).value or 0
        return None if functions is None else functions._replace(query=address)

    def _queried(self, event: int) -> int:
        try:
            return 0 if self.query(event) else _PENDING
        except Exception as error:
            self._failed = error
            return _STALLED

    def is_fault(self, error: BaseException) -> bool:
        """Return whether the context is lost, or may be busy for ever."""
        return isinstance(error, Stalled) or self._driver.is_fault(error)

    def error(self, status: int) -> Exception:
        """Return the error for a status, and for a query of compiled code what it raised."""
        if status == _STALLED and self._failed is not None:
            return self._failed
        error: Exception = self._driver.error(status)
        return error
