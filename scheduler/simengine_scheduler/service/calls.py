"""What a client hands to its owner: kernels, calls and lists of calls, by the names of buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .channel import Message
from .wire import access_to_wire, argument_to_wire

Accesses = Sequence[str | Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that the owner has loaded for a client."""

    name: str
    number: int


@dataclass(frozen=True, slots=True)
class ClientList:
    """A list of calls that the owner knows. To submit it takes one small message."""

    number: int
    calls: int


@dataclass(frozen=True, slots=True)
class ClientCall:
    """One call of a client's list, by names of buffers. `wire.py` describes arguments and accesses."""

    name: str
    kernel: Kernel
    args: Sequence[Any] = ()
    reads: Accesses = ()
    writes: Accesses = ()
    updates: Accesses = ()
    grid: Sequence[int] = ()
    block: Sequence[int] = ()
    shared: int = 0

    def to_wire(self) -> Message:
        """Return the call as plain data. Raises TypeError for an argument that no kernel takes."""
        return {
            "name": self.name,
            "kernel": self.kernel.number,
            "args": [argument_to_wire(i, a) for i, a in enumerate(self.args)],
            "reads": [access_to_wire(a) for a in self.reads],
            "writes": [access_to_wire(a) for a in self.writes],
            "updates": [access_to_wire(a) for a in self.updates],
            "grid": [int(n) for n in self.grid],
            "block": [int(n) for n in self.block],
            "shared": int(self.shared),
        }
