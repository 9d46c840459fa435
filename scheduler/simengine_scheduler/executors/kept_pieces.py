"""Graphs of runs of calls that come again, which compiled code launches as pieces; see `native/pieces.h`.

    run of a list --divided--> pieces and single calls --issuer--> streams
         ^                         |
         +-- graphs, built here <--+ runs of calls that came so often that a graph pays

Invariants
    1. Graphs are built between runs, few at a time, so that no run waits long, and in a small share of the time.
    2. A graph holds arguments as they were. It is destroyed once a buffer of its calls has moved or a scalar has
       changed, before anything more is issued. Its calls must then come twice as often before they get another.
    3. The numbers of calls are those of `CompiledCalls`. Once these are forgotten, so are the pieces.
"""

from __future__ import annotations

import weakref

from ..core.calls import KernelCall
from ..core.errors import CallError
from ..cuda.driver import Driver
from ..launch.arguments import BufferSet
from ..native.pieces import Graphs, Pieces
from .base import Options
from .built_graphs import NO_SHAPE, BuiltGraph, GraphBuilder
from .compiled import CompiledCalls

_PRICE = (15, 10)  # launches of graphs that take as long as building one, and more of them for each call in it,
_PRICE_IN_PYTHON = (30, 12)  # if Python builds it
_TOGETHER = 16  # graphs that are built after a run
_SHARE = 0.1  # of the time of runs that graphs may take to be built,
_FIRST = 0.02  # besides what they may take at first [s]
_FOR_EACH = 16  # pieces that are kept for each graph that an executor stores


class KeptPieces:
    """The pieces of an executor.

    Args:
        executor: its name.
        options: of the executor.
        driver: builds graphs.
        calls: of the executor.

    Attributes:
        native: what compiled code knows of them.
    """

    def __init__(self, executor: str, options: Options, driver: Driver, calls: CompiledCalls) -> None:
        functions = driver.functions()
        builds = functions is not None and functions.instantiate
        self.native = Pieces(calls.issuer, *(_PRICE if builds else _PRICE_IN_PYTHON))
        self._graphs_of_calls = Graphs(calls.issuer, functions) if functions is not None and builds else None
        self._calls = calls
        self._driver = driver
        self._builder = GraphBuilder(executor, options, driver)
        self._built = 0
        self._most = _FOR_EACH * options.graphs
        self._spare = _FIRST  # time that graphs may still take [s]
        self._graphs: dict[int, BuiltGraph] = {}
        self._changes = BufferSet.changes
        self._finalizer = weakref.finalize(self, _destroy, driver, self._graphs)

    def __len__(self) -> int:
        return len(self._graphs)

    @property
    def built(self) -> int:
        """How many graphs were built."""
        return self._built

    def look(self) -> None:
        """Drop the pieces whose arguments have changed."""
        if self._changes == BufferSet.changes:
            return
        self._changes = BufferSet.changes
        for piece in [piece for piece, graph in self._graphs.items() if not graph.is_current()]:
            self._drop(piece)

    def build(self, ran: float) -> None:
        """Build some of the graphs that are asked for, after a run that took so long [s]."""
        self._spare = min(self._spare + _SHARE * ran, _FIRST)
        native = self.native
        for _ in range(min(_TOGETHER, native.wanted)):
            if self._spare < 0:
                return
            began = self._driver.now()
            self._build_next(native)
            self._spare -= self._driver.now() - began

    def _build_next(self, native: Pieces) -> None:
        calls = tuple(self._calls.by_number[number] for number in native.first_wanted())
        graph = self._make(native, calls)
        if graph is None:
            native.answer(0)
            return
        self._built += 1
        if len(self._graphs) >= self._most:
            self._drop(native.oldest())
        self._graphs[native.answer(graph.handle)] = graph

    def _make(self, native: Pieces, calls: tuple[KernelCall, ...]) -> BuiltGraph | None:
        """Build a graph. What cannot be one is issued call by call, and names its call if that fails too."""
        if self._graphs_of_calls is None:
            try:
                return self._builder.make(calls, calls)
            except CallError:
                return None
        self._calls.numbers(list(calls))  # defines those again whose buffers have moved
        self._calls.hand_over()
        handle = self._graphs_of_calls.build(native)
        return BuiltGraph(calls, NO_SHAPE, handle, calls) if handle else None

    def forget(self) -> None:
        """Forget all pieces, as the issuer has forgotten all calls."""
        self.native.forget()
        _destroy(self._driver, self._graphs)

    def _drop(self, piece: int) -> None:
        self.native.drop(piece)
        self._driver.destroy_graph(self._graphs.pop(piece).handle)


def _destroy(driver: Driver, graphs: dict[int, BuiltGraph]) -> None:
    while graphs:
        driver.destroy_graph(graphs.popitem()[1].handle)


def make_pieces(executor: str, options: Options, driver: Driver, calls: CompiledCalls) -> KeptPieces | None:
    """Return the pieces of an executor, or None where it launches call by call."""
    functions = driver.functions()
    if not options.pieces or options.record != "off" or options.completion == "polling":
        return None
    return KeptPieces(executor, options, driver, calls) if functions is not None and functions.launch_graph else None
