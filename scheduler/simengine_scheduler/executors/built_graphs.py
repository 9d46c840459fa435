"""Executable CUDA graphs of runs of calls, and a store of those that may be launched again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from ..core.calls import KernelCall
from ..core.dependencies import RunTracker, chains, reduced
from ..core.errors import CallError
from ..cuda.driver import Driver
from ..planning.planners import PLANNERS, plan_chains
from ..planning.profiles import Profile
from .base import Options
from .recorder import Recorder


@dataclass(frozen=True, slots=True)
class Shape:
    """The graph of a run of calls, by their positions in program order.

    Attributes:
        order: the order in which nodes are made.
        waits: for each call those that it comes directly after.
        rows: the row of each call; the calls of a row follow each other.
        asked: how many edges hazards ask for.
        edges: how many edges there are, without those that others imply.
        asked_by: for each call the edges that hazards ask for.
    """

    order: tuple[int, ...]
    waits: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]
    asked: int
    edges: int
    asked_by: tuple[int, ...] = ()

    def sinks(self) -> list[int]:
        """Return the calls that no others wait for."""
        waited = {other for direct in self.waits for other in direct}
        return [seq for seq in range(len(self.waits)) if seq not in waited]


NO_SHAPE = Shape((), (), (), 0, 0)
"""Of a graph that compiled code has built."""


class BuiltGraph:
    """A built graph, and what shows whether it may still be launched."""

    __slots__ = ("calls", "epochs", "handle", "keys", "shape")

    def __init__(self, calls: tuple[KernelCall, ...], shape: Shape, handle: int, keys: Any) -> None:
        self.calls = calls
        self.shape = shape
        self.handle = handle
        self.keys = keys  # kept alive, so that no other object gets their id()
        sets = {id(s): s for call in calls if (s := getattr(call.launch, "buffers", None)) is not None}
        self.epochs = [(s, s.epoch) for s in sets.values()]

    def is_current(self) -> bool:
        """Whether no buffer has moved since it was built."""
        return all(buffers.epoch == epoch for buffers, epoch in self.epochs)


class GraphStore:
    """Stores graphs by key: the `most` that were used latest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._graphs: OrderedDict[tuple[int, ...], BuiltGraph] = OrderedDict()

    def find(self, key: tuple[int, ...]) -> BuiltGraph | None:
        """Return the graph that is stored under a key, unless one of its buffers has moved."""
        graph = self._graphs.get(key)
        if graph is None or not graph.is_current():
            return None
        self._graphs.move_to_end(key)
        return graph

    def add(self, key: tuple[int, ...], make: Callable[[], BuiltGraph], drop: Callable[[int], None]) -> BuiltGraph:
        """Store the graph that `make` returns. Calls `drop` for its predecessor and for graphs beyond the limit."""
        old = self._graphs.pop(key, None)
        if old is not None:
            drop(old.handle)
        graph = self._graphs[key] = make()
        while len(self._graphs) > self._most:
            drop(self._graphs.popitem(last=False)[1].handle)
        return graph

    def close(self, driver: Driver) -> None:
        """Destroy the graphs."""
        for graph in self._graphs.values():
            driver.destroy_graph(graph.handle)
        self._graphs.clear()


class GraphBuilder:
    """Builds graphs of calls.

    Attributes:
        built: how many it has built.
        profile: what calls take.
    """

    def __init__(self, executor: str, options: Options, driver: Driver) -> None:
        self.built = 0
        self._executor = executor
        self._hazards = RunTracker(options.table(executor).conflicts)
        self._planner = PLANNERS.get(options.stream_policy)
        self.profile = options.profile if options.profile is not None else Profile()
        self._driver = driver

    def make(self, calls: tuple[KernelCall, ...], keys: Any, updatable: bool = False) -> BuiltGraph:
        """Build the graph of a run of calls. The graph keeps `keys` alive."""
        shape = self.shape(calls)
        return BuiltGraph(calls, shape, self.instantiate(calls, shape, updatable=updatable), keys)

    def seconds(self, calls: Sequence[KernelCall]) -> float:
        """How long calls take one after another, by the profile. Without one this is good for comparisons only."""
        return sum(self.profile.need(call).seconds for call in calls)

    def shape(self, calls: Sequence[KernelCall], recorder: Recorder | None = None) -> Shape:
        """Work out the shape of the graph of a run of calls. The time for it counts as the time of the hazard check."""
        began = perf_counter()
        upstream = self._hazards.upstream_of(calls)
        waits = tuple(reduced(upstream))
        if self._planner is None:
            order, rows = tuple(range(len(calls))), tuple(chains(waits))
        else:
            order, rows = plan_chains(self._planner, calls, waits, self.profile)
        if recorder is not None:
            recorder.trace.counters.check_seconds += perf_counter() - began
        asked = tuple(map(len, upstream))
        return Shape(order, waits, rows, sum(asked), sum(map(len, waits)), asked)

    def instantiate(
        self,
        calls: Sequence[KernelCall],
        shape: Shape,
        events: Sequence[tuple[int, int]] | None = None,
        updatable: bool = False,
    ) -> int:
        """Build a graph and return its handle. Raises CallError if CUDA refuses it.

        Args:
            calls, shape: what to build.
            events: for each call a pair of events for its start and end, in a graph that is not updatable.
            updatable: whether its nodes may get other arguments later.
        """
        self.built += 1
        place = {seq: number for number, seq in enumerate(shape.order)}
        launches = [calls[seq].launch for seq in shape.order]
        waits = [tuple(place[other] for other in shape.waits[seq]) for seq in shape.order]
        try:
            if updatable:
                return self._driver.build_updatable_graph(launches, waits)
            timed = None if events is None else [events[seq] for seq in shape.order]
            return self._driver.build_graph(launches, waits, timed)
        except Exception as error:
            raise CallError(
                f"executor {self._executor!r} could not build a graph of {len(calls)} calls that ends with "
                f"{calls[-1].name!r}: {type(error).__name__}: {error}",
                calls[-1],
                error,
            ) from error
