"""Writes the parts of a chain as programs for `simengine/xla/lanes_host.cpp`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from simengine.xla.chains import OPERATIONS
from simengine_envs.lanes.graph import Array, Graph, Node

_FIELDS = 7  # numbers of an instruction
_SUFFIX = {"bool": "MASK", "float64": "64"}  # of moves; "32" for all other types
_MANY_CHOICES = 8  # by one mask, for which blocks without a world of the mask have instructions of their own

Instruction = list[int]


class Wanted(NamedTuple):
    """An array that a program stores.

    Attributes:
        number: its number among all that the chain stores.
        lanes: the nodes of its columns.
        dtype: type of the array.
        place: the array whose memory it takes, which the program loads before; None for memory of its own.
    """

    number: int
    lanes: list[int]
    dtype: str
    place: Array | None = None


class Writer:
    """Writes programs.

    Args:
        graph: the operations.
        numbers: numbers of the arrays that the programs load.

    Attributes:
        registers: number of registers that the programs need.
    """

    def __init__(self, graph: Graph, numbers: Mapping[Array, int]):
        self._graph = graph
        self._numbers = numbers
        self.registers = 0

    def of_arguments(self, wanted: Sequence[Wanted], mask: Wanted | None) -> list[Instruction]:
        """A program that stores a call's arguments.

        Args:
            wanted: the arguments.
            mask: the worlds for which they matter; blocks without any store nothing else. None for all.
        """
        first = self._section([*wanted, *([mask] if mask else [])], ())
        if mask is None:
            first.store(wanted)
            return self._noted(first)
        first.store([mask], mask.lanes)
        rest = first.followed_by(None)
        rest.store(wanted)
        first.emit("JUMP_IF_NONE", first.registers[mask.lanes[0]], len(rest.instructions) + 1)
        return [*self._noted(first), *self._noted(rest)]

    def of_results(self, wanted: Sequence[Wanted]) -> list[Instruction]:
        """A program that stores arrays.

        Where many results are choices by one mask, such as that of the worlds that start an episode, there are two
        lists of instructions after that mask is known: one for blocks with a world of the mask, and one in which
        nothing is chosen.
        """
        first = self._section(wanted, [array.place for array in wanted])
        mask = self._mask_of_many(first.ordered(node for array in wanted for node in array.lanes))
        if mask is None:
            first.store(wanted)
            return self._noted(first)
        first.store((), [mask])
        chosen, other = first.followed_by(None), first.followed_by(mask)
        chosen.store(wanted)
        other.store(wanted)
        chosen.emit("JUMP", 0, len(other.instructions) + 1)
        first.emit("JUMP_IF_NONE", first.registers[mask], len(chosen.instructions) + 1)
        return [*self._noted(first), *self._noted(chosen), *self._noted(other)]

    def _section(self, wanted: Sequence[Wanted], places: Iterable[Array | None]) -> _Section:
        """The first section of a program, which fills the registers of its constants."""
        section = _Section(self._graph, self._numbers, frozenset(places) - {None})  # type: ignore[arg-type]
        order = section.ordered(node for array in wanted for node in array.lanes)
        section.fill([node for node in order if self._graph.is_constant(node)])
        return section

    def _noted(self, section: _Section) -> list[Instruction]:
        self.registers = max(self.registers, section.count)
        return section.instructions

    def _mask_of_many(self, order: Iterable[int]) -> int | None:
        """The mask by which most numbers are chosen; None if they are few."""
        choices = (self._graph.nodes[node] for node in order)
        found = Counter(node[1] for node in choices if node[0].startswith("SELECT")).most_common(1)
        return found[0][0] if found and found[0][1] >= _MANY_CHOICES else None


class _Section:
    """Writes instructions that a block runs one after another.

    Args:
        graph, numbers: as for `Writer`.
        places: arrays over which the program stores others. What a section needs of these it loads before it stores.
        unset: a mask that no world of the block has; None for none.

    Attributes:
        instructions: the instructions.
        registers: the register of each node that has one.
        count: number of registers.
    """

    def __init__(self, graph: Graph, numbers: Mapping[Array, int], places: frozenset[Array], unset: int | None = None):
        self._graph = graph
        self._numbers = numbers
        self._places = places
        self._same = None if unset is None else _without(graph, unset)
        self._uses: Counter[int] = Counter()
        self._kept: frozenset[int] = frozenset()  # nodes whose registers are not given back
        self._free: dict[int, list[int]] = {4: [], 8: []}
        self.instructions: list[Instruction] = []
        self.registers: dict[int, int] = {}
        self.count = 0

    def followed_by(self, unset: int | None) -> _Section:
        """A section that begins with the registers of this one."""
        other = _Section(self._graph, self._numbers, self._places, unset)
        other._free = {size: list(free) for size, free in self._free.items()}
        other.registers, other.count = dict(self.registers), self.count
        other._kept = frozenset(self.registers)
        return other

    def emit(self, name: str, *numbers: int) -> None:
        """Add an instruction."""
        self.instructions.append([OPERATIONS[name], *numbers, *[0] * (_FIELDS - 1 - len(numbers))])

    def fill(self, constants: Sequence[int]) -> None:
        """Fill registers with constants. They keep them."""
        for node in constants:
            _, size, bits = self._graph.nodes[node]
            low, high = np.frombuffer(bits.to_bytes(8, "little"), np.int32)
            self.emit(f"FILL_{8 * size}", self._allocated(node), low, high)
        self._kept = frozenset(constants)

    def store(self, wanted: Sequence[Wanted], others: Sequence[int] = ()) -> None:
        """Store arrays, and compute other nodes. These nodes keep their registers."""
        stores: dict[int, list[tuple[str, int, int]]] = {}
        copies: list[tuple[int, Array, int]] = []
        for array in wanted:
            if not array.lanes:
                continue
            lanes = [self._resolved(node) for node in array.lanes]
            source = self._whole(lanes, array.dtype)
            if source is not None and source == array.place:
                continue
            if source is not None and (array.place is None or source[0] == "RESULT"):
                copies.append((np.dtype(array.dtype).itemsize * len(lanes), source, array.number))
                continue
            kind = _SUFFIX.get(array.dtype, "32")
            for column, node in enumerate(lanes):
                stores.setdefault(node, []).append((f"STORE_{kind}", array.number, column))
        order = self.ordered([*stores, *others])
        self._uses.update(operand for node in order for operand in self._operands(node))
        self._uses.update([*others, *stores])
        for node in order:
            known = self._graph.nodes[node]
            if known[0] == "LOAD" and known[1] in self._places and node not in self.registers:
                self._compute(node)
        for size, source, number in sorted(copies, key=lambda copy: copy[1]):  # of arguments first
            self.emit("COPY", size, self._numbers[source], number)
        for node in order:
            if node not in self.registers:
                self._compute(node)
            for name, *numbers in stores.get(node, ()):
                self.emit(name, self.registers[node], *numbers)
            self._uses[node] -= node in stores
            self._give_back(node)

    def ordered(self, roots: Iterable[int]) -> list[int]:
        """All nodes on which some depend, each after its operands and soon before its first use."""
        order: dict[int, None] = {}
        stack = list(roots)[::-1]
        while stack:
            node = stack[-1]
            missing = [] if node in order else [other for other in self._operands(node) if other not in order]
            if missing:
                stack.extend(reversed(missing))
            else:
                order[stack.pop()] = None
        return list(order)

    # ------------------------------------------------------------------------------------------------ nodes

    def _node(self, node: int) -> Node:
        return self._graph.nodes[node]

    def _resolved(self, node: int) -> int:
        """A node, or what it is where no world has the mask."""
        return node if self._same is None else self._same[node]

    def _operands(self, node: int) -> tuple[int, ...]:
        name, *operands = self._node(node)
        if name in ("FILL", "LOAD") or node in self.registers:
            return ()
        return tuple(self._resolved(operand) for operand in operands)

    def _whole(self, lanes: list[int], dtype: str) -> Array | None:
        """The array whose columns some lanes are, all of them in order; None if there is none."""
        first = self._node(lanes[0])
        if first[0] != "LOAD" or first[2] != len(lanes) or first[4] != dtype:
            return None
        if any(self._node(node) != (*first[:3], column, dtype) for column, node in enumerate(lanes)):
            return None
        found: Array = first[1]
        return found

    def _compute(self, node: int) -> None:
        name, *known = self._node(node)
        if name == "LOAD":
            array, _, column, dtype = known
            self.emit(f"LOAD_{_SUFFIX.get(dtype, '32')}", self._allocated(node), self._numbers[array], column)
            return
        operands = self._operands(node)
        given = [self.registers[operand] for operand in operands]
        if name == "HASH":  # its second word is a node of its own, for which the register is kept
            self.registers[~node] = self._taken(4)
            self.emit(name, self._allocated(node), *given, self.registers[~node])
        elif name == "SECOND":
            self.registers[node] = self.registers.pop(~operands[0])
        else:
            self.emit(name, self._allocated(node), *given)
        for operand in operands:
            self._uses[operand] -= 1
            self._give_back(operand)

    # ------------------------------------------------------------------------------------------------ registers

    def _give_back(self, node: int) -> None:
        """Give the register of a node back if nothing needs it any more."""
        if self._uses[node] <= 0 and node in self.registers and node not in self._kept:
            self._free[self._graph.sizes[node]].append(self.registers.pop(node))

    def _allocated(self, node: int) -> int:
        self.registers[node] = self._taken(self._graph.sizes[node])
        return self.registers[node]

    def _taken(self, size: int) -> int:
        if self._free[size]:
            return self._free[size].pop()
        self.count += size // 4
        return self.count - size // 4


def _without(graph: Graph, mask: int) -> list[int]:
    """For each node the first one that is the same where no world has a mask."""
    known: dict[Node, int] = {}
    same: list[int] = []
    for number, (name, *operands) in enumerate(graph.nodes):
        if name in ("FILL", "LOAD"):
            same.append(number)
        elif name.startswith("SELECT") and operands[0] == mask:
            same.append(same[operands[2]])
        else:
            same.append(known.setdefault((name, *(same[operand] for operand in operands)), number))
    return same
