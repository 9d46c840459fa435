"""Records the calls of a workload's steps, so that a program in C++ can issue them without Python.

Between two waits of the host the calls of all emitters form a batch. The recorder runs them in program order, and notes
functions, launches, arguments, what each call touches and which calls of its batch it must come after. From the same
memory the same calls come again, so that the recorded ones may be issued in place of those of the emitters.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from simengine_scheduler import Executor, KernelCall, Segments, Trace
from simengine_scheduler.core import Emitter
from simengine_scheduler.core.dependencies import dependencies
from simengine_scheduler.core.emission import Feeder

CALL = np.dtype(
    [
        *((name, "u8") for name in ("function", "kernel")),
        *((name, "u4", 3) for name in ("grid", "block")),
        *(("shared", "u4"), ("num_arguments", "i4"), ("arguments", "u8")),
        *((name, "i4") for name in ("first_wait", "num_waits", "first_token", "num_tokens")),
    ]
)
BATCH = np.dtype([("first", "i4"), ("count", "i4")])


class Program(ctypes.Structure):
    """The structure `Program` of calls.h. `arrays` keeps what it points to."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("calls", "waits", "tokens", "batches", "steps")),
        ("num_tokens", ctypes.c_int),
    ]
    arrays: Any


class Code(NamedTuple):
    """Machine code, and the name of a kernel in it."""

    code: bytes
    name: str


@contextmanager
def noting_code() -> Iterator[dict[int, Code]]:
    """Note the machine code of kernels that are loaded meanwhile, by their functions."""
    from cupy.cuda import function  # type: ignore[import-untyped]

    found: dict[int, Code] = {}
    plain = function.Module

    class Module(plain):  # type: ignore[misc, valid-type]
        def load(self, code: bytes) -> None:
            self._code = bytes(code)
            super().load(code)

        def get_function(self, name: str) -> Any:
            made = super().get_function(name)
            found[int(made.ptr)] = Code(getattr(self, "_code", b""), name)
            return made

    function.Module = Module
    try:
        yield found
    finally:
        function.Module = plain


class Noted(NamedTuple):
    """A call as it was issued."""

    call: KernelCall
    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: tuple[int, ...]


def noted(call: KernelCall) -> Noted:
    """The call with its arguments as they are. Raises ValueError if one of them is a structure."""
    launch: Any = call.launch
    function, grid, block, shared, table = launch.node()
    starts = launch._packed._starts
    if any(b - a != 8 for a, b in pairwise(starts)):
        raise ValueError(f"call {call.name!r} takes a structure; peers issue calls whose arguments are single words")
    places = (ctypes.c_uint64 * len(launch.arguments)).from_address(table)
    words = tuple(ctypes.c_uint64.from_address(place).value for place in places)
    return Noted(call, function, grid, block, shared, words)


class RecordingExecutor(Executor):
    """Runs calls in program order on the current stream, and keeps them by batch."""

    name = "recording"

    def __init__(self) -> None:
        self.batches: list[list[Noted]] = []

    def run(self, emitters: Iterable[Emitter]) -> Trace:
        """Run the emitters' calls."""
        import cupy

        stream, trace = cupy.cuda.get_current_stream(), Trace(self.name, "off")
        feeder = Feeder(emitters, lambda seq: False)
        while not feeder.exhausted:
            batch = []
            while (call := feeder.pull()) is not None:
                batch.append(noted(call))
                call.launch.issue(stream.ptr)
            if batch:
                self.batches.append(batch)
            stream.synchronize()
            for seq in list(feeder.waiting):
                feeder.release(seq)
        trace.counters.calls, trace.counters.awaits = feeder.calls, feeder.awaits
        return trace

    def synchronize(self) -> None:
        """Return at once: a run has ended when it returns."""

    def close(self) -> None:
        """Do nothing: there is nothing to free."""


def _touched(call: KernelCall, conflicts: Sequence[Sequence[int]]) -> dict[tuple[int, int], bool]:
    """The pairs of segments in conflict of which a call touches one, and whether it writes that one.

    A system that knows no parts of a buffer is told of such a pair as of one thing. Calls that touch different parts
    have no pair in common.
    """
    written = {*call.writes, *call.updates}
    found: dict[tuple[int, int], bool] = {}
    for segment in {*call.reads, *written}:
        for other in conflicts[segment]:
            pair = (segment, other) if segment <= other else (other, segment)
            found[pair] = found.get(pair, False) or segment in written
    return found


def _tokens(batch: Sequence[Noted], conflicts: Sequence[Sequence[int]]) -> tuple[list[list[int]], int]:
    """For each call of a batch what it touches, as calls.h has it, and how many things there are.

    Things that the same calls touch in the same way are one thing, and those that one call touches, or none writes, are
    left out: a program would not tell a system of more than it needs to know.
    """
    users: dict[tuple[int, int], list[tuple[int, bool]]] = {}
    for position, one in enumerate(batch):
        for pair, writes in _touched(one.call, conflicts).items():
            users.setdefault(pair, []).append((position, writes))
    kinds = {tuple(own) for own in users.values() if len(own) > 1 and any(writes for _, writes in own)}
    found: list[list[int]] = [[] for _ in batch]
    for token, own in enumerate(sorted(kinds)):
        for position, writes in own:
            found[position].append(2 * token + writes)
    return found, len(kinds)


def program_of(
    steps: Sequence[Sequence[Sequence[Noted]]], segments: Segments, kernel_of: Callable[[int], int]
) -> Program:
    """The program of recorded steps, each of which has batches.

    Args:
        kernel_of: returns the kernel of a function, as the CUDA runtime knows it; 0 if it knows none.
    """
    rows: list[tuple[Any, ...]] = []
    batches: list[tuple[int, int]] = []
    waits, tokens, words, firsts = list[int](), list[int](), list[int](), [0]
    most = 0
    for step in steps:
        for batch in step:
            touched, count = _tokens(batch, segments.conflicts)
            most = max(most, count)
            batches.append((len(rows), len(batch)))
            before = dependencies([one.call for one in batch], segments.conflicts)
            for one, own_waits, own_tokens in zip(batch, before, touched, strict=True):
                shape = one.grid, one.block, one.shared, len(one.arguments), 8 * len(words)
                lists = len(waits), len(own_waits), len(tokens), len(own_tokens)
                rows.append((one.function, kernel_of(one.function), *shape, *lists))
                waits += own_waits
                tokens += own_tokens
                words += one.arguments
        firsts.append(len(batches))
    calls, memory = np.array(rows, CALL), np.array(words or [0], np.uint64)
    calls["arguments"] += memory.ctypes.data
    arrays = (
        *(calls, np.array(waits or [0], np.int32), np.array(tokens or [0], np.int32)),
        *(np.array(batches, BATCH), np.array(firsts, np.int32)),
    )
    program = Program(*(array.ctypes.data for array in arrays), most)
    program.arrays = (*arrays, memory)
    return program
