"""`Intake`: the compiled intake of `intake.h`, which numbers and defines calls."""

from __future__ import annotations

import ctypes
from array import array
from functools import lru_cache
from pathlib import Path
from typing import Any

from .compiling import build
from .issuer import OF_ISSUER, Issuer

_POINTER, _LONG, _INT, _OBJECT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.py_object
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "intake_make": (_POINTER, [_POINTER, _OBJECT, _OBJECT]),
    "intake_free": (None, [_POINTER]),
    "intake_forget": (None, [_POINTER]),
    "intake_numbers": (_INT, [_POINTER, _OBJECT, _LONG, _POINTER, _POINTER]),
    "feed_make": (_POINTER, [_OBJECT, _OBJECT, _OBJECT]),
    "feed_free": (None, [_POINTER]),
    "feed_add": (None, [_POINTER, _OBJECT, _OBJECT]),
    "feed_take": (_INT, [_POINTER, _OBJECT, _LONG, _POINTER]),
    "feed_from": (None, [_POINTER, _POINTER, _LONG]),
    "feed_item": (_OBJECT, [_POINTER]),
    "feed_leave": (None, [_POINTER]),
    "feed_join": (None, [_POINTER, _INT]),
    "flow_make": (_POINTER, [_POINTER, _POINTER, _POINTER, _OBJECT, _OBJECT]),
    "flow_begin": (None, [_POINTER, _OBJECT, _OBJECT, _POINTER, _LONG, _POINTER]),
    "flow_end": (None, [_POINTER]),
    "flow_free": (None, [_POINTER]),
    "flow_run": (_INT, [_POINTER, _POINTER]),
    "flow_advance": (None, [_POINTER]),
}
_TAKEN = 0


@lru_cache(maxsize=1)
def library() -> Any:
    """Load the compiled library, which is built at first use.

    Raises RuntimeError where it cannot be built, and OSError where this Python does not offer its functions.
    """
    folder = Path(__file__).parent
    own = ("intake.cpp", "feed.h", "flow.h", "intake.h", "python_calls.h")
    names = (*own, *OF_ISSUER, "pieces.h", "learning.h", "apart.h", "held.h")
    loaded = ctypes.PyDLL(str(build("intake.so", [folder / name for name in names])))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


class WrongSegment(ValueError):
    """A call names a segment that the table lacks."""

    def __init__(self, call: Any, segment: int, table: int) -> None:
        super().__init__(
            f"call {call.name!r} names segment {segment}, but the table holds {table}; "
            f"intern its segments in the Segments given to the executor"
        )


class Intake:
    """Numbers and defines calls, as `Numbering` does in Python.

    Args:
        issuer: gets the definitions. It lives as long.
        conflicts: of the segments of the calls, or None if hazards are not looked for.

    Attributes:
        by_number: the calls, each at the place of its number.

    Raises:
        RuntimeError, OSError: as `library`.
    """

    def __init__(self, issuer: Issuer, conflicts: list[tuple[int, ...]] | None) -> None:
        self._library = library()
        self.by_number: list[Any] = []
        self._issuer = issuer  # kept alive
        self._conflicts = conflicts
        self._handle = self._library.intake_make(issuer.handle, conflicts, self.by_number)
        self._wrong = array("q", [0, 0])
        self._at_wrong = self._wrong.buffer_info()[0]

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            self._library.intake_free(handle)

    @property
    def library(self) -> Any:
        """The compiled library."""
        return self._library

    @property
    def handle(self) -> int:
        """Address of the intake in compiled code."""
        return int(self._handle)

    def numbers(self, calls: list[Any]) -> array[int]:
        """Return the numbers of calls. Raises ValueError if one names a segment that the table lacks."""
        found = array("i", bytes(4 * len(calls)))
        at = found.buffer_info()[0]
        if self._library.intake_numbers(self._handle, calls, len(calls), at, self._at_wrong) != _TAKEN:
            raise self.wrong(calls, *self._wrong)
        return found

    def wrong(self, calls: list[Any], place: int, segment: int) -> WrongSegment:
        """Return the error of a call, by its place among some calls, that names a segment which the table lacks."""
        return WrongSegment(calls[place], segment, len(self._conflicts or ()))

    def hand_over(self) -> None:
        """Do nothing: calls are defined when they are numbered."""

    def forget(self) -> None:
        """Forget all calls, as the issuer does."""
        self._library.intake_forget(self._handle)
        self.by_number.clear()
