"""Buffers of clients at the owner."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .channel import MalformedMessage, Message, take
from .wire import dtype_from_wire


class Block(Protocol):
    """A piece of memory that clients can map: `ptr` is its address at the owner."""

    ptr: int
    descriptor: int | None

    def describe(self) -> Message:
        """Return what a client must know to map it."""
        ...

    def free(self) -> None:
        """Free the memory."""
        ...


@dataclass(eq=False, slots=True)
class SharedArray:
    """An array that one or several clients hold. `key` is the name of its segments."""

    key: str
    block: Block
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    holders: set[int] = field(default_factory=set)  # slots of the sessions that hold it

    @property
    def nbytes(self) -> int:
        """Its size [bytes]."""
        return size_of(self.shape, self.dtype)

    def describe(self) -> Message:
        """Return what a client must know to map it."""
        return {**self.block.describe(), "shape": list(self.shape), "dtype": self.dtype.str}


def size_of(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return the size of an array [bytes]."""
    return math.prod(shape) * dtype.itemsize


def layout_from_wire(message: Message) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and dtype in a message. Raises ValueError for an array without elements."""
    shape = tuple(take(message, "shape", list))
    if any(type(n) is not int for n in shape):
        raise MalformedMessage(f"shape {shape} is not of whole numbers")
    if any(n < 1 for n in shape):
        raise ValueError(f"shape {shape} has no elements; give positive sizes")
    return shape, dtype_from_wire(take(message, "dtype", str))
