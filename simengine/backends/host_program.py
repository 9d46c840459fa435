"""`HostProgram`: many host calls as one launch, which reads the counts between them itself.

    call ── call ── capacity? ── call ── call ── capacity? ── call
                        └── too small: Python grows the arena, and the program goes on from there

A program is one foreign call, during which Python's interpreter lock is released. Emitting and issuing a single call
takes some 3 us with the lock held, which is more than a small batch needs to run it. `RepeatedProgram` is one foreign
call for several runs, so that shards do not wait for one another between steps.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from simengine.kernels.host_build import load_repeater, load_runner
from simengine_scheduler import HostLaunch
from simengine_scheduler.launch import BufferSet

_OP = np.dtype([(name, np.int64) for name in ("run", "slots", "counts", "number", "room")])


class CallOp(NamedTuple):
    """A call of a program.

    Attributes:
        launch: the launch of the call.
        units: number of units.
        counts: int32 array whose first entry is the number of units instead; None if `units` gives it. The call is left
            out if that number is zero.
    """

    launch: HostLaunch
    units: int
    counts: np.ndarray | None


class Arena(Protocol):
    """Memory for `capacity` entries, which may move when it grows."""

    capacity: int

    def reserve(self, need: int) -> None:
        """Raise the capacity to at least `need` entries."""
        ...


class CapacityOp(NamedTuple):
    """A check of an arena's capacity, after which the arena holds at least the sum of some counts.

    Attributes:
        counts: (n,) int32.
        arena: the arena.
    """

    counts: np.ndarray
    arena: Arena


def _address(function: Any) -> int:
    """The address of a foreign function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class HostProgram:
    """A launch that runs a list of calls in order.

    Args:
        ops: calls, and checks of capacities.
        buffers: the buffers among the arguments of the calls.
        memory: what has the memory of the calls and arenas, which lives as long as the program.

    Attributes:
        over: (len(ops),) int32, number of units of each call in the latest run; zero for calls that were left out.
    """

    def __init__(self, ops: Sequence[CallOp | CapacityOp], buffers: BufferSet, memory: object = None):
        self._run = load_runner()
        self._memory = memory
        self._ops = tuple(ops)
        self._buffers = buffers
        self.over = np.zeros(len(self._ops), np.int32)
        self._over_at = self.over.ctypes.data
        self._bound = self._pack()

    def _pack(self) -> tuple[int, int, Any]:
        """The epoch of the buffers, the address of the packed ops, and the objects that must live as long as these."""
        epoch = self._buffers.epoch  # read before the addresses, so that a buffer that moves meanwhile is packed again
        packed = np.zeros(len(self._ops), _OP)
        kept: list[Any] = [packed]
        for row, op in zip(packed, self._ops, strict=True):
            if isinstance(op, CapacityOp):
                row["counts"], row["number"], row["room"] = op.counts.ctypes.data, len(op.counts), op.arena.capacity
                continue
            slots = op.launch.slots()
            kept.append(slots)
            row["run"] = _address(op.launch.function)
            row["slots"], row["number"] = ctypes.addressof(slots), op.units
            row["counts"] = 0 if op.counts is None else op.counts.ctypes.data
        return epoch, packed.ctypes.data, kept

    def packed(self) -> tuple[int, int, int]:
        """The addresses and number that the runner takes: of the ops, their number, and of `over`.

        They are valid until a buffer moves.
        """
        if self._bound[0] != self._buffers.epoch:
            self._bound = self._pack()
        return self._bound[1], len(self._ops), self._over_at

    def grow(self, at: int) -> None:
        """Grow the arena whose check, op `at`, failed."""
        op = self._ops[at]
        assert isinstance(op, CapacityOp)
        op.arena.reserve(int(op.counts.sum(dtype=np.int64)))
        self._bound = self._pack()  # the epoch does not change if the arena of a model has no fields

    def issue(self, stream: int) -> None:
        """Run the program to its end. The stream is ignored."""
        at, number = 0, len(self._ops)
        while True:
            ops, _, over = self.packed()
            at = self._run(ops, number, at, over)
            if at == number:
                return
            self.grow(at)

    def timed(self) -> Iterator[tuple[int, float]]:
        """Run the program op by op, and yield the index and the time [s] of each call that has units."""
        at = 0
        while at < len(self._ops):
            ops, _, over = self.packed()
            began = perf_counter()
            reached = self._run(ops, at + 1, at, over)
            seconds = perf_counter() - began
            if reached == at:
                self.grow(at)
                continue
            if isinstance(self._ops[at], CallOp) and self.over[at]:
                yield at, seconds
            at = reached


class Rows(NamedTuple):
    """What is copied before each run of a repeated program.

    Attributes:
        rows: contiguous along all axes but the first; row k is copied before run k.
        to: the contiguous array of the same type and size as a row.
    """

    rows: np.ndarray
    to: np.ndarray


class RepeatedProgram:
    """A launch that runs a program several times. `set` says how often.

    Args:
        program: the program.
    """

    def __init__(self, program: HostProgram):
        self._run = load_repeater()
        self._program = program
        self._repeats = 1
        self._rows: Rows | None = None

    def set(self, repeats: int, rows: Rows | None) -> None:
        """Say how often the next launch runs the program, and what it copies before each run.

        Args:
            repeats: number of runs.
            rows: at least `repeats` rows; None to copy nothing.
        """
        self._repeats, self._rows = repeats, rows

    def issue(self, stream: int) -> None:
        """Run the program. The stream is ignored."""
        copied = (0, 0, 0, 0)
        if self._rows is not None:
            rows, to = self._rows
            copied = rows.ctypes.data, rows.strides[0], to.ctypes.data, to.nbytes
        done, at = np.zeros(1, np.int64), 0
        while True:
            ops, number, over = self._program.packed()
            at = self._run(ops, number, at, over, done.ctypes.data, self._repeats, *copied)
            if at == number:
                return
            self._program.grow(at)
