"""`HostProgram`: many host calls as one launch, which reads the counts between them itself.

    op ── op ── room? ── op ── op ── room? ── op        one foreign call, the interpreter's lock released
                  └── no: Python makes room, and the program goes on from there

A small batch spends more time on emitting and issuing calls than on running them: some 3 us a call, with the lock held.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from simengine.kernels.host_build import load_runner
from simengine_scheduler import HostLaunch
from simengine_scheduler.launch import BufferSet

_OP = np.dtype([(name, np.int64) for name in ("run", "slots", "counts", "number", "room")])


class CallOp(NamedTuple):
    """A call.

    Attributes:
        launch: of the call.
        units: what it is over.
        counts: where that is counted instead; the call is left out where it is zero.
    """

    launch: HostLaunch
    units: int
    counts: np.ndarray | None


class Arena(Protocol):
    """Something that has room for so many entries, and moves when it makes more."""

    capacity: int

    def reserve(self, need: int) -> None:
        """Make room for `need` entries."""
        ...


class RoomOp(NamedTuple):
    """Behind it an arena must have room for the sum of some counts."""

    counts: np.ndarray
    arena: Arena


def _address(function: Any) -> int:
    """Where a foreign function starts."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class HostProgram:
    """A launch of a list of calls, one after another.

    Attributes:
        over: what each op of the latest run was over; zero for calls that were left out.
    """

    def __init__(self, ops: Sequence[CallOp | RoomOp], buffers: BufferSet):
        self._run = load_runner()
        self._ops = tuple(ops)
        self._buffers = buffers
        self.over = np.zeros(len(self._ops), np.int32)
        self._over_at = self.over.ctypes.data
        self._bound = self._pack()

    def _pack(self) -> tuple[int, int, Any]:
        """The epoch of the buffers, the address of the ops, and what must live with them."""
        epoch = self._buffers.epoch  # read before the pointers: buffers that move meanwhile are packed again
        packed = np.zeros(len(self._ops), _OP)
        kept: list[Any] = [packed]
        for row, op in zip(packed, self._ops, strict=True):
            if isinstance(op, RoomOp):
                row["counts"], row["number"], row["room"] = op.counts.ctypes.data, len(op.counts), op.arena.capacity
                continue
            slots = op.launch.slots()
            kept.append(slots)
            row["run"] = _address(op.launch.function)
            row["slots"], row["number"] = ctypes.addressof(slots), op.units
            row["counts"] = 0 if op.counts is None else op.counts.ctypes.data
        return epoch, packed.ctypes.data, kept

    def issue(self, stream: int) -> None:
        """Run the program to its end; the stream is not used."""
        at, number = 0, len(self._ops)
        while True:
            if self._bound[0] != self._buffers.epoch:
                self._bound = self._pack()
            at = self._run(self._bound[1], number, at, self._over_at)
            if at == number:
                return
            op = self._ops[at]
            assert isinstance(op, RoomOp)
            op.arena.reserve(int(op.counts.sum(dtype=np.int64)))
            self._bound = self._pack()  # the epoch stays where the arena of a model has no fields
