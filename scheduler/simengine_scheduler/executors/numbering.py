"""Numbers of calls, by which compiled code knows them. `native/intake.py` does the same by compiled code."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

from ..core.calls import KernelCall
from ..native.intake import Intake, WrongSegment
from ..native.issuer import Issuer

_Known = tuple[int, Any, int]  # number of a call, the set of its buffers or None, and the moves of the set


class Numbering:
    """Numbers and defines calls.

    Args:
        issuer: gets the definitions.
        conflicts: of the segments of the calls, or None if hazards are not looked for.

    Attributes:
        by_number: the calls, each at the place of its number.
    """

    def __init__(self, issuer: Issuer, conflicts: list[tuple[int, ...]] | None) -> None:
        self.by_number: list[KernelCall] = []
        self._issuer = issuer
        self._conflicts = conflicts
        self._segments = 0  # whose conflicts the issuer has
        self._known: dict[KernelCall, _Known] = {}
        self._combinations: dict[tuple[tuple[int, ...], ...], int] = {}
        self._words = array("q")  # definitions of calls that the issuer does not have yet
        self._segments_of = array("i")  # combinations that it does not have yet

    def numbers(self, calls: Iterable[KernelCall]) -> array[int]:
        """Return the numbers of calls. Raises ValueError if one names a segment that the table lacks."""
        found, known_of, define = array("i"), self._known.get, self._define
        for call in calls:
            known = known_of(call)
            if known is not None and (known[1] is None or known[1].moves == known[2]):
                found.append(known[0])
            else:
                found.append(define(call, None if known is None else known[0]))
        return found

    def hand_over(self) -> None:
        """Give the issuer the definitions and conflicts that it lacks. Call it before numbers are issued."""
        if self._conflicts is not None and len(self._conflicts) != self._segments:
            self._hand_over_conflicts(self._conflicts)
        if self._segments_of:
            self._issuer.add_combinations(self._segments_of)
            self._segments_of = array("i")
        if self._words:
            self._issuer.define(self._words)
            self._words = array("q")

    def forget(self) -> None:
        """Forget all calls, as the issuer does."""
        self._known.clear()
        self.by_number.clear()
        self._combinations.clear()
        self._words, self._segments_of = array("q"), array("i")

    def _hand_over_conflicts(self, conflicts: list[tuple[int, ...]]) -> None:
        """Give the issuer the conflicts of new segments, and of those that conflict with new ones."""
        new = range(self._segments, len(conflicts))
        changed = {other for segment in new for other in conflicts[segment] if other < self._segments}
        words = array("i")
        for segment in (*changed, *new):
            words.extend((segment, len(conflicts[segment]), *conflicts[segment]))
        self._issuer.set_conflicts(words)
        self._segments = len(conflicts)

    def _define(self, call: KernelCall, number: int | None) -> int:
        """Define a call under its number, or under a new one."""
        combination, launch = 0, call.launch
        if self._conflicts is not None:
            key = call.reads, call.writes, call.updates
            found = self._combinations.get(key)
            combination = self._combine(call, key) if found is None else found
        node = getattr(launch, "node", None)
        buffers, moves = None, 0
        words: tuple[int, ...] = (0,) * 9
        if node is not None and getattr(type(launch), "in_graphs", True):
            buffers = getattr(launch, "buffers", None)
            moves = 0 if buffers is None else buffers.moves  # read before the arguments are packed
            function, grid, block, shared, arguments = node()
            words = (function, *grid, *block, shared, arguments)
        if number is None:
            number = len(self.by_number)
            self.by_number.append(call)
        self._known[call] = number, buffers, moves
        self._words.extend((number, *words, combination))
        return number

    def _combine(self, call: KernelCall, key: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]) -> int:
        """Number a new combination of segments."""
        reads, writes, updates = key
        touched, table = (*reads, *writes, *updates), len(self._conflicts or ())
        if touched and not 0 <= min(touched) <= max(touched) < table:
            raise WrongSegment(call, next(segment for segment in touched if not 0 <= segment < table), table)
        number = self._combinations[key] = len(self._combinations)
        self._segments_of.extend((len(reads), len(writes) + len(updates), *touched))
        return number


def make_numbering(issuer: Issuer, conflicts: list[tuple[int, ...]] | None) -> Numbering | Intake:
    """Return what numbers calls: compiled code, or Python where that cannot call Python's functions."""
    try:
        return Intake(issuer, conflicts)
    except (OSError, RuntimeError):
        return Numbering(issuer, conflicts)
