"""`WrittenFunctions`: functions of a driver that are written in Python, for compiled code to call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from .issuer import Functions

FAILED = 999  # what a function returns that raised
_INT, _UNSIGNED, _LONG = ctypes.c_int, ctypes.c_uint, ctypes.c_int64


class NodeParameters(ctypes.Structure):
    """The parameters of a kernel node, as CUDA has them."""

    _fields_ = [("function", _LONG), ("size", _UNSIGNED * 7), ("arguments", _LONG), ("others", _LONG * 3)]


_SIGNATURES = {
    "launch": ctypes.CFUNCTYPE(_INT, _LONG, *[_UNSIGNED] * 7, _LONG, _LONG, _LONG),
    "record": ctypes.CFUNCTYPE(_INT, _LONG, _LONG),
    "wait": ctypes.CFUNCTYPE(_INT, _LONG, _LONG, _UNSIGNED),
    "query": ctypes.CFUNCTYPE(_INT, _LONG),
    "launch_graph": ctypes.CFUNCTYPE(_INT, _LONG, _LONG),
    "enable": ctypes.CFUNCTYPE(_INT, _LONG, _LONG, _UNSIGNED),
    "create_graph": ctypes.CFUNCTYPE(_INT, ctypes.POINTER(_LONG), _UNSIGNED),
    "add_node": ctypes.CFUNCTYPE(
        _INT, ctypes.POINTER(_LONG), _LONG, ctypes.POINTER(_LONG), ctypes.c_size_t, ctypes.POINTER(NodeParameters)
    ),
    "instantiate": ctypes.CFUNCTYPE(_INT, ctypes.POINTER(_LONG), _LONG, ctypes.c_ulonglong),
    "destroy_graph": ctypes.CFUNCTYPE(_INT, _LONG),
}


class WrittenFunctions:
    """The functions of a driver. `called` counts their calls, and `raised` is what the latest raised that failed.

    Args:
        doing: for each name in `Functions` what does it, with the parameters of the driver's function. What it returns
            is the status, and None is 0.
    """

    def __init__(self, doing: Mapping[str, Callable[..., int | None]]) -> None:
        self.called = 0
        self.raised: Exception | None = None
        self._made = {name: _SIGNATURES[name](self._caught(do)) for name, do in doing.items()}

    def addresses(self) -> Functions:
        """Return where compiled code finds them, as long as this object lives."""
        found: dict[str, Any] = {name: ctypes.cast(made, ctypes.c_void_p).value for name, made in self._made.items()}
        return Functions(**found)

    def take_error(self) -> Exception | None:
        """Return what a function raised, once."""
        raised, self.raised = self.raised, None
        return raised

    def _caught(self, do: Callable[..., int | None]) -> Callable[..., int]:
        def called(*arguments: int) -> int:
            self.called += 1
            try:
                return do(*arguments) or 0
            except Exception as error:  # which cannot pass through compiled code
                self.raised = error
                return FAILED

        return called
