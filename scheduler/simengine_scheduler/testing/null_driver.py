"""A driver that does nothing, to measure what issuing costs by itself."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from ..launch.arguments import BufferSet
from ..native.compiling import build
from ..native.issuer import Functions
from .fake_device import FakeDevice


class NullLaunch:
    """A launch that does nothing, from Python or from compiled code."""

    __slots__ = ("arguments", "buffers")

    def __init__(self, arguments: int, buffers: BufferSet) -> None:
        self.arguments = arguments
        self.buffers = buffers

    def node(self) -> tuple[int, tuple[int, int, int], tuple[int, int, int], int, int]:
        """Return what compiled code needs."""
        return 1, (1, 1, 1), (32, 1, 1), 0, self.arguments

    def issue(self, stream: int) -> None:
        """Do nothing."""


class NullDriver(FakeDevice):
    """Streams and events of which nothing is kept. Every event is complete.

    Raises RuntimeError where its compiled functions cannot be built.

    Args:
        ends: whether compiled code finds that events are complete. Otherwise it never does.
        threads: whether several threads may call it.
    """

    def __init__(self, ends: bool = True, threads: bool = False) -> None:
        super().__init__()
        self._threads = threads
        self._query = "null_query" if ends else "null_goes_on"
        source = Path(__file__).with_name("null_driver.cpp")
        self._compiled: Any = ctypes.CDLL(str(build("null_driver.so", [source])))

    @property
    def called(self) -> int:
        """How many launches compiled code has made with any such driver."""
        return int(ctypes.c_int64.in_dll(self._compiled, "null_calls").value)

    def record(self, event: int, stream: int) -> None:
        """Do nothing."""

    def wait(self, stream: int, event: int) -> None:
        """Do nothing."""

    def query(self, event: int) -> bool:
        """Return True."""
        return True

    def functions(self) -> Functions:
        """Return the addresses of the compiled functions."""
        names = {"launch": "null_launch", "record": "null_record", "wait": "null_wait", "query": self._query}
        if self._threads:
            names |= {"get_context": "null_get_context", "set_context": "null_set_context"}
        found = {of: ctypes.cast(self._compiled[name], ctypes.c_void_p).value or 0 for of, name in names.items()}
        return Functions(**found)
