"""`Deferred`: Ctrl-C that waits until all worlds have made the same number of steps."""

from __future__ import annotations

# the functions behind those of `signal`, which make enums of all they return and so take several microseconds a block
import _signal  # type: ignore[import-not-found]
import signal
from threading import current_thread, main_thread
from types import FrameType, TracebackType
from typing import Any


class Deferred:
    """A block in which Ctrl-C raises nothing at first; KeyboardInterrupt follows at the end of the block.

    Long work looks at `arrived` where it can stop, and leaves the block. A second Ctrl-C acts at once. Handlers that
    the program has set itself, and threads other than the main one, are left alone.

    Attributes:
        arrived: whether Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.arrived = False
        self._before: Any = None

    def __enter__(self) -> Deferred:
        if current_thread() is main_thread() and _signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = _signal.signal(signal.SIGINT, self._take)
        return self

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.arrived:
            signal.default_int_handler(number, frame)
        self.arrived = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._before is not None:
            _signal.signal(signal.SIGINT, self._before)
        if self.arrived and kind is None:
            raise KeyboardInterrupt
