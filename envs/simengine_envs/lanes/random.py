"""Random keys and numbers of JAX's Threefry generator as operations on lanes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from simengine_envs.lanes.graph import Graph
from simengine_envs.lanes.values import Lanes, NotInLanes, aligned
from simengine_envs.threefry import is_ours, word_of


def _unwrap(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    return [operands[0]._replace(keys=None)]


def _wrap(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    (value,) = operands
    if value.worlds is None or not value.nodes.ndim or value.nodes.shape[-1] != 2:
        raise NotInLanes
    return [value._replace(keys=params["impl"])]


def _fold_in(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    key, word = operands
    if not is_ours(key.keys) or word_of(key.keys) is not None:
        raise NotInLanes
    parts = [key._replace(nodes=key.nodes[..., i], keys=None) for i in (0, 1)]
    (a, b, words), count = aligned(graph, (*parts, word))
    zero = graph.constant(np.uint32(0))
    made = [graph.hashed(int(x), int(y), zero, int(w)) for x, y, w in _zipped(a, b, words)]
    return [Lanes(np.array(made, np.int64).reshape(*a.shape, 2), "uint32", count, key.keys)]


def _zipped(*arrays: np.ndarray) -> Any:
    return zip(*(array.ravel() for array in arrays), strict=True)


def _bits(graph: Graph, params: Any, operands: list[Lanes], results: Any) -> list[Lanes]:
    (key,) = operands
    shape = tuple(params["shape"])
    if not is_ours(key.keys) or params["bit_width"] != 32 or key.worlds is None or key.nodes.shape != (2,):
        raise NotInLanes
    own = tuple(map(int, key.nodes))
    zero, word = graph.constant(np.uint32(0)), word_of(key.keys)
    if word is not None:
        own = graph.hashed(*own, zero, graph.constant(np.uint32(word)))
    made = []
    for number in range(prod(shape)):
        made.append(graph.operation("XOR", *graph.hashed(*own, zero, graph.constant(np.uint32(number)))))
    return [Lanes(np.array(made, np.int64).reshape(shape), "uint32", key.worlds)]


RANDOM_RULES: dict[str, Callable[..., list[Lanes]]] = {
    "random_unwrap": _unwrap,
    "random_wrap": _wrap,
    "random_fold_in": _fold_in,
    "random_bits": _bits,
}
