"""Where fixed lists are in graphs that are kept by list; see `list_graphs.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..core.calls import FixedList
from .built_graphs import BuiltGraph

_FIELD = 32  # bits of a count in the weight of a list
_COUNT = (1 << _FIELD) - 1
_COUNTS = 3 * _FIELD


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

    def weight(self) -> int:
        """A number whose sum over lists says which lists they are, and what they have in all: see `Weights`."""
        return self.bit << _COUNTS | self.edges << 2 * _FIELD | self.asked << _FIELD | self.size

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
        places: its lists by their bits.
        size: how many nodes it has.
        members: the same, as a bit set of their numbers.
        on: those of them whose nodes are enabled.
        wanted: those of them that run, whose nodes must be enabled before the graph is launched.
        used: number of the run that launched it last.
    """

    __slots__ = ("built", "members", "on", "places", "size", "used", "wanted")

    def __init__(self, built: BuiltGraph, places: Sequence[Place], owners: Sequence[Place]) -> None:
        self.built = built
        self.places = {place.bit: place for place in places}
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

    def must_switch(self) -> bool:
        """Whether lists must be switched on or off before the graph is launched."""
        return self.on != self.wanted


class Weights:
    """Weights of lists by their id(), so that one sum tells all of many lists.

    Attributes:
        of: the weight of each list.
    """

    def __init__(self) -> None:
        self.of: dict[int, int] = {}

    def total(self, key: Iterable[int]) -> Total:
        """Add up the weights of lists. Raises KeyError for a list that has none."""
        total = sum(map(self.of.__getitem__, key))
        calls, asked, edges = total & _COUNT, total >> _FIELD & _COUNT, total >> 2 * _FIELD & _COUNT
        return Total(total >> _COUNTS, calls, asked, edges)


class Total(NamedTuple):
    """Some lists: their numbers as a bit set, their calls, the waits that hazards ask for, and their edges.

    A list that was added twice carries into another bit, so there are fewer bits than lists then.
    """

    members: int
    calls: int
    asked: int
    edges: int


class ListRun(NamedTuple):
    """What runs: the id() of each list in the order in which they were given, the graphs to launch, and the total."""

    key: tuple[int, ...]
    graphs: list[ListGraph]
    total: Total
