"""Kept graphs of fixed lists, in which a list that does not run is switched off.

    lists of a run --overlaps--> independent --packed--> graph 0: list 0, list 1, (list 2), list 3
                                                         graph 1: list 4, ...            └── switched off

Invariants
    1. Lists of one graph run together only if none of them must wait for another. So no edge leads from list to list.
    2. A list is in one graph. A list that is new gets a place in a new graph, and no other list is touched.
    3. Before a graph is launched, the nodes of exactly those of its lists that run are enabled. A launch that is under
       way keeps the nodes that it had. So graphs that need no change are launched first, and the device runs them while
       nodes of the others are switched.
    4. Lists that take longest are first in a graph, and in the first of several. Otherwise the device would end with
       them alone. Lists of many calls are in two graphs, of which the device runs one while the other is launched.
    5. A node has the arguments of its launch as they are. They are set again once a buffer of the list has moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from ..core.calls import FixedList, KernelCall
from ..core.overlaps import Overlaps, bits_of
from ..cuda.driver import Driver
from ..launch.arguments import BufferSet
from .built_graphs import GraphBuilder
from .list_places import ListGraph, ListRun, Place, Weights

_HALVED = 96  # calls, from which on lists are put into two graphs; the host launches so many in about 40 us
_SPREAD = 8  # graphs that a run may have beyond the fewest, before its lists are packed anew
_SPARSE = 4  # lists are packed anew if their graphs hold more than so many times the calls that run,
_SETTLED = 8  # and if the same lists have run so many times in a row


class ListGraphs:
    """The graphs of an executor.

    Args:
        builder: builds graphs.
        driver: switches lists on and off.
        conflicts: of the segments table.
        most: how many graphs are stored. Those that a run needs are stored in any case.
        together: how many calls lists may have that share a graph.
    """

    def __init__(
        self, builder: GraphBuilder, driver: Driver, conflicts: list[tuple[int, ...]], most: int, together: int
    ) -> None:
        self._builder = builder
        self._driver = driver
        self._overlaps = Overlaps(conflicts)
        self._most = most
        self._together = together
        self._places: dict[int, Place] = {}  # by the id() of their lists
        self._graphs: list[ListGraph] = []
        self._free: list[int] = []  # numbers of lists that were forgotten
        self._runs = 0
        self._alike = 0  # runs of the same lists since others ran
        self._latest: ListRun | None = None
        self._weights = Weights()
        self._buffers: list[Any] = []  # of all lists,
        self._epochs: list[int] = []  # and the epochs for which their nodes have arguments
        self._changes = -1  # of all sets of buffers when the epochs were compared

    def __len__(self) -> int:
        return len(self._graphs)

    def prepare(self, lists: Sequence[FixedList]) -> ListRun | None:
        """Find graphs of exactly these lists, for `switch`.

        Returns None if one of the lists must wait for another, or comes twice.
        """
        key = tuple(map(id, lists))
        latest = self._latest
        self._alike = self._alike + 1 if latest is not None and latest.key == key else 0
        if latest is not None and self._alike != _SETTLED and not self._have_moved():
            if self._alike:
                return latest
            if (run := self._change(latest, key)) is not None:
                return run
        return self._prepare_all(lists, key)

    def _change(self, latest: ListRun, key: tuple[int, ...]) -> ListRun | None:
        """Find graphs by what differs from the latest run.

        Returns None, and changes nothing, where that does not suffice: a list is new, or waits for another, or lists
        should be packed anew, or graphs dropped.
        """
        try:
            total = self._weights.total(key)
        except KeyError:
            return None
        members, overlaps = total.members, self._overlaps
        if members.bit_count() < len(key):
            return None
        joined = members & ~latest.total.members & overlaps.some
        if joined and any(overlaps.conflicting[number] & members for number in bits_of(joined)):
            return None
        graphs = [graph for graph in self._graphs if graph.members & members]
        too_many = len(self._graphs) > self._most and set(graphs) != set(latest.graphs)
        if too_many or self._are_scattered(graphs, len(key), total.calls):
            return None
        self._runs += 1
        self._latest = run = ListRun(key, self._in_turn(graphs, members), total)
        return run

    def _in_turn(self, graphs: Sequence[ListGraph], running: int) -> list[ListGraph]:
        """Note which lists of some graphs run. Returns the graphs, those first whose nodes need not be switched."""
        for graph in graphs:
            graph.used = self._runs
            graph.wanted = graph.members & running
        return sorted(graphs, key=ListGraph.must_switch)

    def _prepare_all(self, lists: Sequence[FixedList], key: tuple[int, ...]) -> ListRun | None:
        """Find graphs of lists, and look at each list."""
        lists = [fixed for fixed in lists if fixed]
        ids = {id(fixed) for fixed in lists}
        if len(ids) < len(lists):
            return None
        self._latest = None
        self._runs += 1
        places = [self._places.get(id(fixed)) or self._enter(fixed) for fixed in lists]
        running = 0
        for place in places:
            running |= place.bit
        conflicting = self._overlaps.conflicting
        if any(conflicting[place.number] & running for place in places):
            for place in places:
                if place.graph is None:
                    self._forget(place)
            return None
        if homeless := [place for place in places if place.graph is None]:
            self._pack(homeless)
        graphs = self._of(places)
        if self._are_scattered(graphs, len(places), sum(len(place.nodes) for place in places)):
            self._pack(places)
            graphs = self._of(places)
        graphs = self._in_turn(graphs, running)
        for place in places:
            if place.has_moved():
                self._set_arguments(place)
        self._drop_others()
        self._note_buffers()
        self._latest = run = ListRun(key, graphs, self._weights.total(ids))
        return run

    def _have_moved(self) -> bool:
        """Whether a buffer of a list has moved since its arguments were set last, also of a list that does not run."""
        changes = BufferSet.changes
        if changes == self._changes:
            return False
        moved = [buffers.epoch for buffers in self._buffers] != self._epochs
        if not moved:
            self._changes = changes
        return moved

    def _note_buffers(self) -> None:
        self._changes = -1
        places = self._places.values()
        self._buffers = [buffers for place in places for buffers in place.buffers]
        self._epochs = [epoch for place in places for epoch in place.epochs]

    def _enter(self, fixed: FixedList) -> Place:
        place = Place(fixed, self._free.pop() if self._free else len(self._places))
        try:
            self._overlaps.add(place.number, fixed)
        except ValueError:
            self._free.append(place.number)
            raise
        self._places[id(fixed)] = place
        return place

    def _of(self, places: Sequence[Place]) -> list[ListGraph]:
        """Return the graphs of some lists, in the order in which they were made."""
        wanted = {place.graph for place in places}
        return [graph for graph in self._graphs if graph in wanted]

    def _are_scattered(self, graphs: Sequence[ListGraph], lists: int, calls: int) -> bool:
        """Whether lists would be launched with much fewer graphs, or far smaller ones, if they were packed anew.

        Args:
            graphs: of the lists.
            lists, calls: how many there are.
        """
        if len(graphs) <= 1 and lists == sum(len(graph.places) for graph in graphs):
            return False
        fewest = -(-calls // min(self._together, self._share(calls)))
        most = min(lists, fewest + _SPREAD)  # lists of more than half the room have a graph each
        full = 2 * fewest
        sparse = self._alike >= _SETTLED and sum(graph.size for graph in graphs) > _SPARSE * calls
        return sparse or len(graphs) > max(most, full)

    @staticmethod
    def _share(calls: int) -> int:
        """How many calls each graph should have, if lists have so many together."""
        return calls if calls < _HALVED else -(-calls // 2)

    def _pack(self, places: Sequence[Place]) -> None:
        """Put lists into new graphs, as many into each as there is room for, those first that take longest."""
        share = self._share(sum(len(place.fixed) for place in places))
        group, calls = list[Place](), 0
        for place in sorted(places, key=lambda place: -self._builder.seconds(place.fixed)):
            if group and (calls >= share or calls + len(place.fixed) > self._together):
                self._build(group)
                group, calls = [], 0
            group.append(place)
            calls += len(place.fixed)
        self._build(group)

    def _build(self, places: Sequence[Place]) -> None:
        """Build the graph of some lists, call by call in turn, as a run of them has its program order."""
        rows = zip_longest(*(place.fixed for place in places))
        turns = [(place, call) for row in rows for place, call in zip(places, row, strict=True) if call is not None]
        calls: tuple[KernelCall, ...] = tuple(call for _, call in turns)
        built = self._builder.make(calls, places, updatable=True)
        for place in places:
            place.note_epochs()
            if place.graph is not None:
                self._leave(place)
        self._graphs.append(ListGraph(built, places, [place for place, _ in turns]))
        self._weights.of.update((id(place.fixed), place.weight()) for place in places)

    def _leave(self, place: Place) -> None:
        """Take a list out of its graph, whose nodes are switched off for good."""
        graph = place.graph
        assert graph is not None
        if graph.on & place.bit:
            self._driver.switch_nodes(graph.built.handle, (), place.nodes)
        del graph.places[place.bit]
        graph.on &= ~place.bit
        graph.wanted &= ~place.bit
        graph.members ^= place.bit
        place.graph = None
        if not graph.places:
            self._destroy(graph)

    def _set_arguments(self, place: Place) -> None:
        assert place.graph is not None
        for node, call in zip(place.nodes, place.fixed, strict=True):
            self._driver.update_graph(place.graph.built.handle, node, call.launch)
        place.note_epochs()

    def switch(self, graph: ListGraph) -> None:
        """Enable the nodes of the lists that run in a graph, and disable all others. Only what changes is touched."""
        wanted = graph.wanted
        changed = graph.on ^ wanted
        if not changed:
            return
        on, off, places = list[int](), list[int](), graph.places
        while changed:
            bit = changed & -changed
            changed ^= bit
            (on if bit & wanted else off).extend(places[bit].nodes)
        self._driver.switch_nodes(graph.built.handle, on, off)
        graph.on = wanted

    def _drop_others(self) -> None:
        """Forget the graphs unused for longest, beyond the number that is stored, but none of the latest run."""
        if len(self._graphs) <= self._most:
            return
        for graph in sorted(self._graphs, key=lambda graph: graph.used)[: len(self._graphs) - self._most]:
            if graph.used < self._runs:
                for place in graph.places.values():
                    self._forget(place)
                self._destroy(graph)

    def _forget(self, place: Place) -> None:
        self._overlaps.remove(place.number)
        del self._places[id(place.fixed)]
        self._weights.of.pop(id(place.fixed), None)
        self._free.append(place.number)

    def _destroy(self, graph: ListGraph) -> None:
        self._graphs.remove(graph)
        self._driver.destroy_graph(graph.built.handle)

    def close(self) -> None:
        """Destroy the graphs, and forget all lists."""
        for graph in self._graphs:
            self._driver.destroy_graph(graph.built.handle)
        self._graphs.clear()
        self._places.clear()
        self._weights.of.clear()
        self._latest = None
