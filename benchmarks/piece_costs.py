"""What dividing calls into pieces takes the host: `python -m benchmarks.piece_costs --json FILE`.

Eight emitters have sixteen calls each, of which each touches ten segments. They are divided over and over by compiled
code, without a driver: where all calls of an emitter are one piece, where four calls in a row are, where nothing is
(with graphs that never pay), and where each call is new. Medians over repeats, for a call [ns].
"""

from __future__ import annotations

import statistics
import sys
from array import array
from collections.abc import Callable
from time import perf_counter
from typing import Any

from benchmarks.stepping import print_and_write
from simengine_scheduler import KernelCall, PythonLaunch, Segments
from simengine_scheduler.executors.compiled import CompiledCalls
from simengine_scheduler.native.issuer import Functions, Issuer
from simengine_scheduler.native.pieces import Pieces

_EMITTERS, _EACH, _SEGMENTS = 8, 16, 10
_REPEATS, _OFTEN = 15, 100
_NEVER = 1 << 40  # launches after which a graph would pay


class _Launch(PythonLaunch):
    """A launch of which compiled code has an address."""

    def node(self) -> tuple[int, tuple[int, int, int], tuple[int, int, int], int, int]:
        return 1, (1, 1, 1), (1, 1, 1), 0, 0


class _Calls:
    """Calls of emitters that share nothing, in program order, and their numbers."""

    def __init__(self, sets: int = 1) -> None:
        table = Segments()
        self.issuer = Issuer(Functions(0, 0, 0, 0))
        known = CompiledCalls(self.issuer, table.conflicts, 64)
        self.emitters = array("i", [e for _ in range(_EACH) for e in range(_EMITTERS)])
        self.sets = []
        for _ in range(sets):
            calls = [self._call(table, e, k) for k in range(_EACH) for e in range(_EMITTERS)]
            self.sets.append(known.numbers(calls))
            known.hand_over()
        self._kept = known

    @staticmethod
    def _call(table: Segments, emitter: int, number: int) -> KernelCall:
        ids = [table.intern(f"{emitter} {(number + k) % _EACH}") for k in range(_SEGMENTS)]
        return KernelCall("call", _Launch(lambda: None), tuple(ids[1:]), (), (ids[0],))


def _ns(divide: Callable[[], Any], often: int = _OFTEN) -> float:
    found = []
    for _ in range(_REPEATS):
        began = perf_counter()
        for _ in range(often):
            divide()
        found.append((perf_counter() - began) / often / _EMITTERS / _EACH)
    return round(1e9 * statistics.median(found), 1)


def divided(together: int) -> dict[str, Any]:
    """The time for calls of which so many in a row are a piece; 0 where none are."""
    calls = _Calls()
    numbers = calls.sets[0]
    pieces = Pieces(calls.issuer, *((0, 0) if together else (_NEVER, 0)))
    for first in range(0, _EACH if together else 0, together or 1):
        part = slice(first * _EMITTERS, (first + together) * _EMITTERS)
        for _ in range(3):
            pieces.divide(numbers[part], calls.emitters[part])
            while pieces.wanted:
                pieces.answer(1)
    what = f"{together} calls in a row are a piece" if together else "no piece is known"
    return {"calls": what, "ns": _ns(lambda: pieces.divide(numbers, calls.emitters))}


def new() -> dict[str, Any]:
    """The time for calls that were never seen."""
    calls = _Calls(_REPEATS * 4)
    pieces = Pieces(calls.issuer, _NEVER, 0)
    fresh = iter(calls.sets)
    return {"calls": "each is new", "ns": _ns(lambda: pieces.divide(next(fresh), calls.emitters), 4)}


def measured() -> list[dict[str, Any]]:
    """A row for each way in which calls are divided."""
    return [divided(_EACH), divided(4), divided(0), new()]


if __name__ == "__main__":
    sys.exit(print_and_write("benchmarks.piece_costs", __doc__, measured))
