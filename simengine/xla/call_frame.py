"""`CallFrame`: a custom call as XLA hands it to a handler, read with `ctypes`. See XLA's `ffi/api/c_api.h`.

The layout of these structures is XLA's stable binary interface. A new version of it may add fields at their ends only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, ClassVar

HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

_METADATA = 1  # type of the extension by which XLA asks for the handler's version
_INTERNAL = 13  # error code
# places among the functions of XLA_FFI_Api
_ERROR_CREATE, _STREAM_GET, _DEVICE_GET = 0, 4, 17


_BYTES = {4: 4, 8: 4, 11: 4, 5: 8, 9: 8, 12: 8}  # of int32, uint32, float32, int64, uint64, float64


class _Base(ctypes.Structure):
    _fields_: ClassVar[Any] = (("size", ctypes.c_size_t), ("extension", ctypes.c_void_p))


class _Version(_Base):
    _fields_: ClassVar[Any] = (("major", ctypes.c_int), ("minor", ctypes.c_int))


class _Extension(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.c_void_p),
    )


class _Metadata(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("version", _Version), ("traits", ctypes.c_uint32))


class _Arrays(_Base):
    """Arguments or results."""

    _fields_: ClassVar[Any] = (
        ("number", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("entries", ctypes.POINTER(ctypes.c_void_p)),
    )


class _Attributes(_Base):
    _fields_: ClassVar[Any] = (
        ("number", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("entries", ctypes.POINTER(ctypes.c_void_p)),
    )


class _Buffer(_Base):
    _fields_: ClassVar[Any] = (
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    )


class _Scalar(ctypes.Structure):
    _fields_ = (("dtype", ctypes.c_int), ("value", ctypes.POINTER(ctypes.c_int64)))


class _Api(_Base):
    _fields_: ClassVar[Any] = (
        ("version", _Version),
        ("internal", ctypes.c_void_p),
        ("functions", ctypes.c_void_p * 18),
    )


class _Frame(_Base):
    _fields_: ClassVar[Any] = (
        ("api", ctypes.POINTER(_Api)),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("arguments", _Arrays),
        ("results", _Arrays),
        ("attributes", _Attributes),
    )


class _StreamGet(_Base):
    _fields_: ClassVar[Any] = (("context", ctypes.c_void_p), ("stream", ctypes.c_void_p))


class _DeviceGet(_Base):
    _fields_: ClassVar[Any] = (("context", ctypes.c_void_p), ("device", ctypes.c_int32))


class _ErrorCreate(_Base):
    _fields_: ClassVar[Any] = (("message", ctypes.c_char_p), ("code", ctypes.c_int))


class CallFrame:
    """A custom call whose only attribute is an int64.

    Attributes:
        arguments, results: address and size [bytes] of each array.
        kind: the attribute.
    """

    def __init__(self, frame: _Frame):
        self._frame = frame
        self.arguments = _arrays(frame.arguments)
        self.results = _arrays(frame.results)
        scalar = ctypes.cast(frame.attributes.entries[0], ctypes.POINTER(_Scalar)).contents
        self.kind = int(scalar.value[0])

    def stream(self) -> int:
        """The CUDA stream of the call."""
        asked = _StreamGet(ctypes.sizeof(_StreamGet), None, self._frame.context)
        self._ask(_STREAM_GET, asked)
        return asked.stream or 0

    def device(self) -> int:
        """The number of the call's device."""
        asked = _DeviceGet(ctypes.sizeof(_DeviceGet), None, self._frame.context)
        self._ask(_DEVICE_GET, asked)
        return int(asked.device)

    def _ask(self, place: int, asked: Any) -> None:
        if _call(self._frame.api.contents, place, asked):
            raise RuntimeError("XLA does not tell the stream or the device of a custom call")


def _call(api: _Api, place: int, asked: Any) -> Any:
    if api.size < _Api.functions.offset + (place + 1) * ctypes.sizeof(ctypes.c_void_p):
        raise RuntimeError("this version of JAX has an older interface for custom calls; install a newer JAX")
    return _FUNCTION(api.functions[place])(ctypes.addressof(asked))


def _arrays(arrays: _Arrays) -> list[tuple[int, int]]:
    found = []
    for entry in range(arrays.number):
        buffer = ctypes.cast(arrays.entries[entry], ctypes.POINTER(_Buffer)).contents
        size = _BYTES[buffer.dtype]
        for axis in range(buffer.rank):
            size *= buffer.dims[axis]
        found.append((buffer.data or 0, size))
    return found


def handler(work: Callable[[CallFrame], None]) -> Any:
    """A C function that XLA calls for `work`. An exception of `work` becomes an error of the program."""

    def run(address: int) -> int | None:
        frame = _Frame.from_address(address)
        try:
            if frame.extension and _answers(frame):
                return None
            work(CallFrame(frame))
        except Exception as error:
            text = f"{error}".encode()
            asked = _ErrorCreate(ctypes.sizeof(_ErrorCreate), None, text, _INTERNAL)
            made: int | None = _call(frame.api.contents, _ERROR_CREATE, asked)
            return made
        return None

    return HANDLER(run)


def _answers(frame: _Frame) -> bool:
    """Whether XLA only asks for the handler's version, which is then told: that of XLA itself."""
    extension = _Extension.from_address(frame.extension)
    if extension.type != _METADATA:
        return False
    metadata, version = _Metadata.from_address(extension.metadata), frame.api.contents.version
    metadata.version.major, metadata.version.minor = version.major, version.minor
    metadata.traits = 0
    return True
