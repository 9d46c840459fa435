"""`Pieces`: runs of calls that are launched as kept graphs, by the compiled code of `pieces.h`."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence

from .issuer import OUTCOMES, Functions, Issuer, Outcome, library


class Pieces:
    """The pieces of an issuer, which it outlives. One thread at a time may use them.

    Args:
        issuer: issues them.
        base, each: how many launches of graphs take as long as building one, and how many more for each call in it.
    """

    def __init__(self, issuer: Issuer, base: int, each: int) -> None:
        self._library = library()
        self._issuer = issuer  # kept alive
        self._handle: int | None = self._library.pieces_make(issuer.handle, base, each)
        self._done = array("q", [0])

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            self._library.pieces_free(handle)

    @property
    def handle(self) -> int | None:
        """Address of the pieces in compiled code."""
        return self._handle

    def begin(self) -> None:
        """Begin a run, after the issuer has begun one."""
        self._library.pieces_begin(self._handle)

    def divide(self, numbers: array[int], emitters: array[int]) -> int:
        """Divide calls, given the emitter of each.

        Returns what it costs to launch them, where a graph costs 1 and a call by itself costs 2.
        """
        at, by = numbers.buffer_info()[0], emitters.buffer_info()[0]
        return int(self._library.pieces_divide(self._handle, at, by, len(numbers)))

    def divide_lists(self, numbers: Sequence[array[int]]) -> int:
        """Divide lists that take turns, given the numbers of their calls, as `divide` does."""
        addresses = array("q", [own.buffer_info()[0] for own in numbers])
        lengths = array("q", map(len, numbers))
        at, sizes = addresses.buffer_info()[0], lengths.buffer_info()[0]
        return int(self._library.pieces_divide_lists(self._handle, at, sizes, len(numbers)))

    def issue(self, done: int) -> tuple[Outcome, int]:
        """Issue what was divided from the piece or call on that is at `done`.

        Returns how it ended, and how many pieces and single calls were issued.
        """
        self._done[0] = done
        code = self._library.pieces_issue(self._handle, self._done.buffer_info()[0])
        return OUTCOMES[code], self._done[0]

    def position_of(self, place: int) -> int:
        """Return the position, as the issuer counts, of a call by its place in the run."""
        return int(self._library.pieces_position(self._handle, place))

    @property
    def launched(self) -> int:
        """How many pieces the run has launched."""
        return int(self._library.pieces_launched(self._handle))

    @property
    def wanted(self) -> int:
        """How many runs of calls ask for a graph."""
        return int(self._library.pieces_wanted(self._handle))

    def first_wanted(self) -> list[int]:
        """Return the numbers of the calls that ask first."""
        key, numbers = ctypes.c_uint64(), ctypes.c_void_p()
        size = self._library.pieces_first_wanted(self._handle, ctypes.byref(key), ctypes.byref(numbers))
        return ctypes.cast(numbers, ctypes.POINTER(ctypes.c_int32))[:size]

    def answer(self, graph: int) -> int:
        """Give the calls that ask first a graph, or 0 if they get none. Returns the number of the piece, or -1."""
        return int(self._library.pieces_answer(self._handle, graph))

    def drop(self, piece: int) -> None:
        """Forget the graph of a piece."""
        self._library.pieces_drop(self._handle, piece)

    def oldest(self) -> int:
        """Return the number of the piece that was launched longest ago, or -1."""
        return int(self._library.pieces_oldest(self._handle))

    def forget(self) -> None:
        """Forget everything, as the issuer has forgotten all calls."""
        self._library.pieces_forget(self._handle)


class Graphs:
    """Builds graphs of runs that ask for one, by compiled code. One thread at a time may use it, between runs.

    Args:
        issuer: knows the calls.
        functions: of the driver, with those that build graphs.
    """

    def __init__(self, issuer: Issuer, functions: Functions) -> None:
        self._library = library()
        self._issuer = issuer  # kept alive
        table = array("q", functions[-4:])
        self._handle: int | None = self._library.graphs_make(issuer.handle, table.buffer_info()[0])

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            self._library.graphs_free(handle)

    def build(self, pieces: Pieces) -> int:
        """Build a graph of the calls that ask first, with their present arguments. Returns 0 if the driver refuses."""
        return int(self._library.graphs_build(self._handle, pieces.handle))
