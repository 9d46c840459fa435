"""`Lanes`: an array whose first axis is the worlds, as nodes of a graph."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from simengine_envs.lanes.graph import Array, Graph

TYPES = ("float32", "float64", "int32", "uint32", "bool")
CONSTANT_TYPES = (*TYPES, "int64", "uint64")  # of constants, which only conversions and indices use
MOST_LANES = 512  # numbers of a world in an array that has lanes
MOST_CONSTANTS = 4096  # numbers of a constant that is known


class NotInLanes(Exception):
    """An operation cannot be written on lanes. Its text says which."""


class Lanes(NamedTuple):
    """An array whose first axis is the worlds, or a constant.

    Attributes:
        nodes: numbers of nodes, in the shape of an entry of the first axis; of a constant in its own shape.
        dtype: type of the array, or of the words of keys.
        worlds: number of worlds, the length of the first axis; None for a constant.
        keys: the generator of random keys, whose two words are the last axis of `nodes`; None for numbers.
        spread: whether it has the numbers of a smaller array, each of them several times.
    """

    nodes: np.ndarray
    dtype: str
    worlds: int | None
    keys: Any = None
    spread: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array, that of words for keys."""
        return self.nodes.shape if self.worlds is None else (self.worlds, *self.nodes.shape)


def has_few(shape: tuple[int, ...]) -> bool:
    """Whether an array of a shape has few numbers in each world."""
    return int(np.prod(shape[1:])) <= MOST_LANES and 0 not in shape[:1]


def loaded(graph: Graph, array: Array, aval: Any) -> Lanes:
    """An array of JAX that a program loads. Raises NotInLanes if it has no lanes."""
    shape, dtype, keys = tuple(aval.shape), aval.dtype, None
    if not shape or not has_few(shape):
        raise NotInLanes(f"an array of shape {shape}")
    if jax_keys := getattr(dtype, "_impl", None):
        shape, dtype, keys = (*shape, 2), np.dtype(np.uint32), jax_keys
    if dtype.name not in TYPES:
        raise NotInLanes(f"an array of type {dtype.name}")
    columns = int(np.prod(shape[1:]))
    nodes = [graph.load(array, columns, column, dtype.name) for column in range(columns)]
    return Lanes(np.array(nodes, np.int64).reshape(shape[1:]), dtype.name, shape[0], keys)


def constant(graph: Graph, array: Any) -> Lanes:
    """A constant of NumPy. Raises NotInLanes if it is too large or of another type."""
    known = np.asarray(array)
    if known.dtype.name not in CONSTANT_TYPES or known.size > MOST_CONSTANTS:
        raise NotInLanes(f"a constant of {known.size} numbers of type {known.dtype.name}")
    nodes = np.array([graph.constant(value) for value in known.ravel()], np.int64)
    return Lanes(nodes.reshape(known.shape), known.dtype.name, None)


def numbers(graph: Graph, value: Lanes) -> np.ndarray:
    """The numbers of a constant."""
    flat = [graph.number(int(node), value.dtype) for node in value.nodes.ravel()]
    return np.array(flat, value.dtype).reshape(value.nodes.shape)


def expanded(graph: Graph, value: Lanes) -> Lanes:
    """An array of constants that all worlds have, as one constant; other values as they are."""
    if value.worlds is None or value.keys is not None or value.worlds * value.nodes.size > MOST_CONSTANTS:
        return value
    if not all(graph.is_constant(int(node)) for node in value.nodes.ravel()):
        return value
    return Lanes(np.broadcast_to(value.nodes, value.shape), value.dtype, None)


def aligned(graph: Graph, values: tuple[Lanes, ...]) -> tuple[list[np.ndarray], int | None]:
    """Nodes of operands of one shape, or without one, entry by entry, and the length of their first axis.

    Raises:
        NotInLanes: the axes of the worlds differ, or a constant differs between worlds.
    """
    counts = {value.worlds for value in values if value.worlds is not None}
    if len(counts) > 1:
        raise NotInLanes(f"arrays of {sorted(counts)} worlds")
    if not counts:
        return list(np.broadcast_arrays(*(value.nodes for value in values))), None
    (count,) = counts
    return list(np.broadcast_arrays(*(entry(value, count) for value in values))), count


def entry(value: Lanes, count: int) -> np.ndarray:
    """Nodes of an entry of the first axis, of `count` worlds. Raises NotInLanes if a constant's entries differ."""
    if value.worlds is not None or value.nodes.ndim == 0:
        return value.nodes
    if len(value.nodes) not in (1, count) or not (value.nodes == value.nodes[0]).all():
        raise NotInLanes("a constant that differs between worlds")
    first: np.ndarray = value.nodes[0]
    return first
