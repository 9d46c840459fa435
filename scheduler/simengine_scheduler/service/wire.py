"""The calls of a list as messages, which a client writes and an owner reads and checks.

An argument is one of

    int                      int32
    numpy scalar             its own type, e.g. np.float32(0.5)
    "x", ("x", offset)       the address of buffer x, plus an offset in bytes
    None                     the null pointer

and an access is "x", ("x", shard) or ("x", shard, family, member), as for `Segments.intern`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .channel import MalformedMessage, take

_NUMBERS = "biuf"


@dataclass(frozen=True, slots=True)
class BufferAddress:
    """An argument that points into a client's buffer."""

    buffer: str
    offset: int


@dataclass(frozen=True, slots=True)
class Access:
    """What a call touches: a buffer, or a piece of it."""

    buffer: str
    shard: int = 0
    partition: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class CallMessage:
    """One call, as it arrives."""

    name: str
    kernel: int
    args: tuple[Any, ...]
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    updates: tuple[Access, ...]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int


def argument_to_wire(position: int, argument: Any) -> Any:
    """Return an argument as plain data. Raises TypeError for one that no kernel takes."""
    if argument is None or type(argument) is int:
        return argument
    if isinstance(argument, np.generic) and argument.dtype.kind in _NUMBERS:
        return {"dtype": argument.dtype.str, "bytes": argument.tobytes().hex()}
    if isinstance(argument, str):
        return {"buffer": argument, "offset": 0}
    if isinstance(argument, tuple) and len(argument) == 2 and isinstance(argument[0], str):
        return {"buffer": argument[0], "offset": int(argument[1])}
    raise TypeError(
        f"argument {position} is a {type(argument).__name__}; pass an int, a numpy scalar such as np.float32(x), "
        f"the name of a buffer, a (name, byte offset) pair or None"
    )


def argument_from_wire(value: Any) -> Any:
    """Return int, numpy scalar, BufferAddress or None."""
    if value is None or type(value) is int:
        return value
    if isinstance(value, dict) and "buffer" in value:
        return BufferAddress(take(value, "buffer", str), take(value, "offset", int))
    if isinstance(value, dict):
        dtype, raw = dtype_from_wire(take(value, "dtype", str), _NUMBERS), bytes.fromhex(take(value, "bytes", str))
        if dtype.itemsize == len(raw) <= 8:
            return np.frombuffer(raw, dtype)[0]
    raise MalformedMessage(f"{value!r} is no argument of a kernel")


def dtype_from_wire(name: str, kinds: str = _NUMBERS + "c") -> np.dtype[Any]:
    """Return a dtype of numbers. Raises MalformedMessage for any other."""
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError) as error:
        raise MalformedMessage(f"{name!r} is no dtype") from error
    if dtype.kind not in kinds or dtype.fields is not None or dtype.shape:
        raise MalformedMessage(f"dtype {name!r} is not one of plain numbers")
    return dtype


def access_to_wire(access: str | Sequence[Any]) -> list[Any]:
    """Return an access as plain data."""
    return [access] if isinstance(access, str) else list(access)


def access_from_wire(value: Any) -> Access:
    """Return an access that was well formed."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        kinds = [type(v) for v in value[1:]]
        if kinds in ([], [int]):
            return Access(*value)
        if kinds == [int, str, int]:
            return Access(value[0], value[1], (value[2], value[3]))
    raise MalformedMessage(
        f"access {value!r} is not a buffer's name, or (name, shard), or (name, shard, family, member)"
    )


def call_from_wire(value: Any) -> CallMessage:
    """Return a call that was well formed. Raises MalformedMessage, or ValueError for hexadecimals that are none."""
    if not isinstance(value, dict):
        raise MalformedMessage(f"{value!r} is no call")
    groups = [tuple(map(access_from_wire, take(value, kind, list))) for kind in ("reads", "writes", "updates")]
    grid, block = (tuple(take(value, kind, list)) for kind in ("grid", "block"))
    if any(type(n) is not int for n in grid + block):
        raise MalformedMessage(f"grid {grid} and block {block} are not all whole numbers")
    name, kernel, shared = take(value, "name", str), take(value, "kernel", int), take(value, "shared", int)
    args = tuple(map(argument_from_wire, take(value, "args", list)))
    return CallMessage(name, kernel, args, groups[0], groups[1], groups[2], grid, block, shared)
