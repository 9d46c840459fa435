"""Where fixed lists are in graphs that are kept by list; see `list_graphs.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.calls import FixedList
from .built_graphs import BuiltGraph


class Place:
    """Where a list is: its number, its graph, and its nodes and edges there."""

    __slots__ = ("asked", "bit", "buffers", "edges", "epochs", "fixed", "graph", "nodes", "number", "size")

    def __init__(self, fixed: FixedList, number: int) -> None:
        self.fixed = fixed  # kept alive, so that no other list gets its id()
        self.number = number
        self.bit = 1 << number
        self.graph: ListGraph | None = None
        self.nodes: list[int] = []
        self.size = len(fixed)
        self.asked = self.edges = 0
        sets = {id(s): s for call in fixed if (s := getattr(call.launch, "buffers", None)) is not None}
        self.buffers = list(sets.values())
        self.note_epochs()

    def has_moved(self) -> bool:
        """Whether a buffer of the list has moved since its arguments were set last."""
        return [buffers.epoch for buffers in self.buffers] != self.epochs

    def note_epochs(self) -> None:
        """Note that the arguments are set for the buffers as they are."""
        self.epochs = [buffers.epoch for buffers in self.buffers]


class ListGraph:
    """One graph of several lists.

    Attributes:
        built: the graph.
        places: its lists.
        size: how many nodes it has.
        members: the same, as a bit set of their numbers.
        on: those of them whose nodes are enabled.
        wanted: those of them that run, whose nodes must be enabled before the graph is launched.
        used: number of the run that launched it last.
    """

    __slots__ = ("built", "members", "on", "places", "size", "used", "wanted")

    def __init__(self, built: BuiltGraph, places: Sequence[Place], owners: Sequence[Place]) -> None:
        self.built = built
        self.places = {place.number: place for place in places}
        self.size = len(owners)
        self.used = 0
        self.members = sum(place.bit for place in places)
        self.on = self.wanted = self.members
        for place in places:
            place.graph, place.nodes = self, []
            place.asked = place.edges = 0
        shape = built.shape
        node_of = {seq: node for node, seq in enumerate(shape.order)}
        for seq, owner in enumerate(owners):  # in program order, as the list has its calls
            owner.nodes.append(node_of[seq])
            owner.asked += shape.asked_by[seq]
            owner.edges += len(shape.waits[seq])

    def to_switch(self) -> int:
        """How many lists must be switched on or off before the graph is launched."""
        return (self.on ^ self.wanted).bit_count()


class ListRun(NamedTuple):
    """What runs: the graphs to launch, and the calls, the waits that hazards ask for and the edges that are enabled."""

    graphs: list[ListGraph]
    calls: int
    asked: int
    edges: int


class Running:
    """The lists that are switched on.

    Attributes:
        key: the id() of each, in the order in which they were given.
        ids: the same as a set.
        members: their numbers, as a bit set.
        run: what runs.
    """

    __slots__ = ("ids", "key", "members", "run")

    def __init__(self, key: tuple[int, ...], ids: set[int], members: int, run: ListRun) -> None:
        self.key = key
        self.ids = ids
        self.members = members
        self.run = run
